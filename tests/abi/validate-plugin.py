#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""validate-plugin.py ANDIRON FILE.so=CHECK… -- PLUGIN.so…

`andiron validate-plugin` finds the one fault of each broken plugin, by the check of that name, and
none in a plugin that has none or in ours. Ours run without privileges: what needs some is skipped
by name, and sampled for real by tests/bpf in our own host.
"""

import concurrent.futures
import ctypes
import json
import os
import subprocess
import sys

from answers import TAKEN, Server

ANDIRON = sys.argv[1]
BROKEN = [a.split("=") for a in sys.argv[2 : sys.argv.index("--")]]
PLUGINS = sys.argv[sys.argv.index("--") + 1 :]
LIBC = ctypes.CDLL(None)
PR_CAPBSET_DROP = 24
AT_ONCE = 4  # a check of a plugin mostly waits

# What is skipped, and by which words of the reason: a host, a server, a privilege.
NEEDS = {
    "status.http": "andiron.status/1",
    "pyroscope.receive_http": "offer_batch",
    "otlp.receive": "offer_batch",
    "process.events": "CAP_",
    "profile.self": "perf_event_paranoid",
    "pyroscope.ebpf": "CAP_",
    "discovery.kubernetes": "KUBERNETES_SERVICE_HOST",
    "discovery.kubelet": "localhost:10250",
    "discovery.docker": "Docker engine",
    "discovery.dockerswarm": "Docker engine",
    "discovery.http": "127.0.0.1:9",
    "pyroscope.java": "async-profiler's library",
    "pyroscope.scrape": "cannot be asked",
    "parca.write": "somebody who takes it",
    "otlp.write": "somebody who takes it",
}


def arguments(port):
    """What a component cannot guess."""
    return [
        f"--with={argument}"
        for argument in (
            'profile.file:paths=["out.folded"]',
            'discovery.file:files=["none.yml"]',
            'discovery.docker:host="unix:///nothing.sock"',
            'discovery.dockerswarm:host="unix:///nothing.sock"',
            'discovery.dockerswarm:role="tasks"',
            f'pyroscope.write:endpoint.url="http://127.0.0.1:{port}"',
        )
    ]


def unprivileged():
    """No capability after exec; and the user whose build it is, who can read it."""
    if os.geteuid() != 0:
        return
    for capability in range(64):
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    owner = os.stat(ANDIRON)
    if owner.st_uid != 0:
        os.setgroups([])
        os.setgid(owner.st_gid)
        os.setuid(owner.st_uid)


def validate(file, *extra):
    ran = subprocess.run(
        [ANDIRON, "validate-plugin", "--format=json", *extra, file],
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=unprivileged,
        check=False,
    )
    result = json.loads(ran.stdout)
    assert (ran.returncode == 1) == (result["failed"] > 0), ran
    return result["checks"]


def say(line):
    """In one piece, since threads do at the same time."""
    sys.stdout.write(line + "\n")


def show(checks):
    for c in checks:
        if c["outcome"] != "ok":
            say(f"# {c['check']} {c['component']} {c['outcome']}: {c['text']}")


def judge_broken(file, expected):
    """Fails by that name and by no other that comes before it."""
    checks = validate(file)
    found = [c["check"] for c in checks if c["outcome"] == "failed" and c["check"] != "file-name"]
    show(checks)
    if not expected:
        named = not any("without a name" in c["text"] for c in checks)
        return not found and named != ("lingers" in file)
    return bool(found) and found[0] == expected and all(c["why"] and c["remedy"] for c in checks)


def judge_own(file, port):
    checks = validate(file, *arguments(port))
    skipped = [
        c
        for c in checks
        if c["outcome"] == "skipped" and NEEDS.get(c["component"], "\0") not in c["text"]
    ]
    show(checks)
    return not skipped and all(c["outcome"] != "failed" for c in checks)


def no_plugin():
    """A file of another kind fails once, by the check whether it loads."""
    checks = validate(os.path.abspath(__file__))
    return [c["check"] for c in checks if c["outcome"] == "failed"] == ["loads"]


def forms():
    """The three forms say the same."""
    file = BROKEN[1][0]
    checks = validate(file)
    outputs = {
        form: subprocess.run(
            [ANDIRON, "validate-plugin", f"--format={form}", file],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.splitlines()
        for form in ("tap", "text")
    }
    tap = [line for line in outputs["tap"] if line.startswith(("ok", "not ok"))]
    text = [line for line in outputs["text"] if line.startswith(("ok  ", "FAILED", "skipped"))]
    bad = [line for line in tap if line.startswith("not ok")]
    return (
        len(tap) == len(text) == len(checks)
        and len(bad) == sum(line.startswith("FAILED") for line in text)
        and f"1..{len(checks)}" in outputs["tap"]
        and sum(line.startswith("         do:") for line in outputs["text"]) == len(bad)
    )


def main():
    failed = False
    with Server(TAKEN) as server, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        cases = [
            (
                f"{os.path.basename(file)}: {expected or 'nothing'}",
                pool.submit(judge_broken, file, expected),
            )
            for file, expected in BROKEN
        ]
        cases += [
            (os.path.basename(file), pool.submit(judge_own, file, server.port)) for file in PLUGINS
        ]
        cases += [("forms", pool.submit(forms)), ("no plugin", pool.submit(no_plugin))]
        say(f"1..{len(cases)}")
        for number, (name, case) in enumerate(cases, 1):
            ok = case.result()
            failed |= not ok
            say(f"{'ok' if ok else 'not ok'} {number} - {name}")
    sys.exit(failed)


main()
