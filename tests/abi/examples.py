#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples.py ANDIRON TARGETS WRITE, and the folder of the examples' sources in EXAMPLES.

The hosts of host-abi/examples do what they say with the plugins as they are, and are small.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from answers import TAKEN, Server

ANDIRON, TARGETS, WRITE = sys.argv[1:4]
EXAMPLES = pathlib.Path(os.environ["EXAMPLES"])
PLUGINS = [pathlib.Path(p) for p in os.environ["PLUGINS"].split(":")]
LINES = 200


def plugin(name):
    return str(next(p for p in PLUGINS if p.name == f"andiron-{name}.so"))


def run(*argv):
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    for line in (ran.stdout + ran.stderr).splitlines():
        print(f"# {line}")
    return ran


def small():
    """A stranger reads each in one go."""
    lines = {p.name: len(p.read_text().splitlines()) for p in EXAMPLES.glob("*.c")}
    print(f"# {lines}")
    return len(lines) >= 3 and all(n <= LINES for n in lines.values())


def targets():
    """Targets go in and come out as the rules say: this process alone, which has a name by a rule.
    By a name of its own, since the command lines of others may have any text."""
    name = f"hosts-{os.getpid()}"
    with open("/proc/self/comm", "w", encoding="ascii") as handle:
        handle.write(name)
    ran = run(TARGETS, plugin("process"), plugin("relabel"), name)
    (line,) = ran.stdout.splitlines()
    said = (f'__process_pid__="{os.getpid()}"', f'service_name="{name}"')
    return ran.returncode == 0 and all(words in line for words in said)


def mistaken():
    """What a plugin refuses is said in its words, and by an exit status."""
    ran = run(TARGETS, plugin("process"), plugin("relabel"), "(")
    return ran.returncode == 1 and 'regex "("' in ran.stderr


def file():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "example.pb.gz")
        ran = run(WRITE, plugin("file"), path)
        report = run(ANDIRON, "report", path)
    return ran.stdout == "delivered 97, dropped 0\n" and "main" in report.stdout


def refused():
    """Arguments are checked before anything is made."""
    ran = run(WRITE, plugin("file"), "example.txt")
    return ran.returncode == 1 and "suffix that is not known" in ran.stderr


def lost():
    """A batch that could not be written is no success."""
    ran = run(WRITE, plugin("file"), "/proc/no/such/folder.pb.gz")
    return ran.returncode == 1 and "dropped 97" in ran.stdout


def pushed():
    with Server(TAKEN) as server:
        ran = run(WRITE, plugin("pyroscope"), f"http://127.0.0.1:{server.port}")
    ((_, path, _, body),) = server.seen
    print(f"# {path}, {len(body)} bytes")
    return ran.returncode == 0 and path.endswith("/Push") and b"service_name" in body


CHECKS = [small, targets, mistaken, file, refused, lost, pushed]
failed = False
print(f"1..{len(CHECKS)}")
for number, check in enumerate(CHECKS, 1):
    ok = check()
    failed |= not ok
    print(f"{'ok' if ok else 'not ok'} {number} - {check.__name__}")
sys.exit(failed)
