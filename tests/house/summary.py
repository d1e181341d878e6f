#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""summary.py SUMMARY: the last line of ./check counts right, whatever the programs did."""

import json
import os
import subprocess
import sys
import tempfile

NOT_CI = {k: v for k, v in os.environ.items() if k != "CI"}


def log(name, result, *lines):
    return {"name": name, "result": result, "stdout": "\n".join(lines)}


def last_line(*tests, listed=None, ci=False):
    """Exit code and last line of the summary over one log of these tests."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/check.json"
        with open(path, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(test) + "\n" for test in tests)
        arguments = [path]
        if listed is not None:
            os.mkdir(f"{folder}/meson-info")
            for kind, of_kind in (("tests", listed), ("benchmarks", [])):
                with open(f"{folder}/meson-info/intro-{kind}.json", "w", encoding="utf-8") as out:
                    json.dump(of_kind, out)
            arguments = ["--all-of", folder, path]
        done = subprocess.run(
            [sys.argv[1], *arguments],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            env={**NOT_CI, **({"CI": "true"} if ci else {})},
        )
        return done.returncode, done.stdout.splitlines()[-1]


GOOD = log("a:unit / good", "OK", "1..2", "ok 1 - x", "ok 2 y")
SKIP = log("a:unit / some", "OK", "1..2", "ok 1 x", "# skip: needs root; use sudo", "ok 2 y # SKIP")
NONE = log("a:unit / none", "SKIP", "1..0 # SKIP no browser: install one")
REAL = log("a:servers / real", "OK", "1..1", "ok 1 - x # SKIP set ANDIRON_PYROSCOPE to a real one")
CASES = [
    ("each test point counts", (0, "2 passed, 0 failed, 0 skipped"), last_line(GOOD)),
    (
        "a program without points counts once",
        (0, "1 passed, 0 failed, 0 skipped"),
        last_line(log("a / b", "OK")),
    ),
    (
        "a failed point fails",
        (1, "1 passed, 1 failed, 0 skipped"),
        last_line(log("a / b", "FAIL", "1..2", "ok 1 x", "not ok 2 y")),
    ),
    (
        "a crash after good points fails",
        (1, "1 passed, 1 failed, 0 skipped"),
        last_line(log("a / b", "FAIL", "1..2", "ok 1 x")),
    ),
    (
        "a hang fails",
        (1, "2 passed, 1 failed, 0 skipped"),
        last_line({**GOOD, "result": "TIMEOUT"}),
    ),
    (
        "a program that says nothing and fails",
        (1, "0 passed, 1 failed, 0 skipped"),
        last_line(log("a / b", "ERROR")),
    ),
    ("skips count", (0, "1 passed, 0 failed, 2 skipped"), last_line(SKIP, NONE)),
    ("in CI a skip fails", (1, "1 passed, 2 failed, 0 skipped"), last_line(SKIP, NONE, ci=True)),
    (
        "save for want of a real Pyroscope",
        (0, "0 passed, 0 failed, 1 skipped"),
        last_line(REAL, ci=True),
    ),
    ("an empty log fails", (1, "0 passed, 1 failed, 0 skipped"), last_line()),
    (
        "all that is listed was run",
        (0, "2 passed, 0 failed, 0 skipped"),
        last_line(GOOD, listed=[{"name": "good", "suite": ["a:unit"]}]),
    ),
    (
        "what no suite runs fails",
        (1, "2 passed, 1 failed, 0 skipped"),
        last_line(
            GOOD,
            listed=[
                {"name": "good", "suite": ["a:unit"]},
                {"name": "lost", "suite": ["a:new", "a:unit"]},
            ],
        ),
    ),
]

print(f"1..{len(CASES)}")
for number, (title, want, got) in enumerate(CASES, 1):
    print("ok" if got == want else "not ok", number, "-", title)
    if got != want:
        print(f"# {got}, wanted {want}")
sys.exit(any(got != want for _, want, got in CASES))
