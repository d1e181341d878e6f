#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""damaged.py ANDIRON DYING.so PLUGIN.so…: commands that only look survive every plugin file.

`inspect` is run on copies of the real plugins with some bytes changed, or cut short. `validate`
runs a component's own check, here of a plugin that dies in it.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile

ANDIRON, DYING, PLUGINS = sys.argv[1], sys.argv[2], sys.argv[3:]
N = int(os.environ.get("ANDIRON_FUZZ_RUNS", "2000")) // 50  # of each plugin
SEED = 17


def run(*arguments):
    """(exit status, what it says); a negative status is a signal, None a hang."""
    try:
        done = subprocess.run([ANDIRON, *arguments], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout + done.stderr


def damaged(content, random_of):
    content = bytearray(content)
    if random_of.random() < 0.1:
        return content[: random_of.randrange(len(content))]
    # Half of the changes meet the tables of the loader, which stand in front and at the end.
    low, high = random_of.choice(
        [(0, len(content)), (0, 16384), (len(content) - 16384, len(content))]
    )
    for _ in range(random_of.choice([1, 4, 64])):
        content[random_of.randrange(max(low, 0), high)] = random_of.randrange(256)
    return content


def inspect_survives(plugin, folder):
    """What `inspect` makes of damaged copies: counts by exit code, and what is wrong."""
    random_of = random.Random(f"{SEED} {os.path.basename(plugin)}")
    path = os.path.join(folder, os.path.basename(plugin))
    with open(plugin, "rb") as file:
        content = file.read()
    codes, wrong = {}, []
    for number in range(N):
        with open(path, "wb") as file:
            file.write(damaged(content, random_of))
        code, said = run("inspect", path)
        codes[code] = codes.get(code, 0) + 1
        if code not in (0, 1) or not said:
            wrong.append(f"copy {number} of seed {SEED}: exit status {code}, {said[:200]!r}")
    return codes, wrong


def validate_survives(folder):
    with open(os.path.join(folder, "andiron-dying.so"), "wb") as copy, open(DYING, "rb") as plugin:
        copy.write(plugin.read())
    config = os.path.join(folder, "dying.alloy")
    with open(config, "w") as file:
        file.write('test.thing "it" {}\n')
    code, said = run("validate", "--plugin-dir", folder, config)
    if code == 1 and f"signal {int(signal.SIGABRT)}" in said and "install that plugin" in said:
        return []
    return [f"exit status {code}, {said!r}"]


def main():
    number, failed = 0, False
    print(f"1..{len(PLUGINS) + 1}")
    with tempfile.TemporaryDirectory() as folder:
        checks = [(f"inspect survives damaged copies of {os.path.basename(p)}", p) for p in PLUGINS]
        for name, plugin in checks:
            number += 1
            codes, wrong = inspect_survives(plugin, folder)
            print(f"# exit codes: {codes}")
            for line in wrong[:5]:
                print(f"# {line}")
            print(f"{'not ' if wrong else ''}ok {number} - {name}")
            failed = failed or bool(wrong)
        os.mkdir(os.path.join(folder, "plugins"))
        wrong = validate_survives(os.path.join(folder, "plugins"))
        for line in wrong:
            print(f"# {line}")
        name = "validate survives a plugin that dies in its own check, and says so"
        print(f"{'not ' if wrong else ''}ok {number + 1} - {name}")
    return failed or bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
