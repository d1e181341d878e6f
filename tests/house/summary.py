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


def write_logs(folder, suite, tests, again):
    """One log of these tests, and one for each of `again`, as ./check names them."""
    os.mkdir(f"{folder}/meson-logs")
    paths = []
    for name, logged in (
        (suite, tests),
        *((f"again-{n}-{suite}", [test]) for n, test in enumerate(again, 1)),
    ):
        paths.append(f"{folder}/meson-logs/check-{name}.json")
        with open(paths[-1], "w", encoding="utf-8") as out:
            out.writelines(json.dumps(test) + "\n" for test in logged)
    return paths


def summary(*arguments, ci=False):
    return subprocess.run(
        [sys.argv[1], *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={**NOT_CI, **({"CI": "true"} if ci else {})},
    )


def last_line(*tests, listed=None, timed=(), of="--all-of", ci=False, suite="unit", again=()):
    """Exit code and last line of the summary over one log of these tests."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = write_logs(folder, suite, tests, again)
        if listed is not None:
            os.mkdir(f"{folder}/meson-info")
            for kind, of_kind in (("tests", listed), ("benchmarks", timed)):
                with open(f"{folder}/meson-info/intro-{kind}.json", "w", encoding="utf-8") as out:
                    json.dump(of_kind, out)
            arguments = [of, folder, *arguments]
        done = summary(*arguments, ci=ci)
        return done.returncode, done.stdout.splitlines()[-1]


def unsteady(*tests, again):
    """The lines that name what failed first and passed then."""
    with tempfile.TemporaryDirectory() as folder:
        text = summary(*write_logs(folder, "scenario", tests, again)).stdout
        return [line for line in text.splitlines() if line.startswith("unsteady: ")]


def run_again(*tests, suite="scenario"):
    """What ./check is told to try once more: suite and name of each."""
    with tempfile.TemporaryDirectory() as folder:
        text = summary("--failed", *write_logs(folder, suite, tests, ())).stdout
        return [line.partition(" ")[2] for line in text.splitlines()]


GOOD = log("a:unit / good", "OK", "1..2", "ok 1 - x", "ok 2 y")
TIMED = [{"name": "push", "suite": ["a"]}]
SKIP = log("a:unit / some", "OK", "1..2", "ok 1 x", "# skip: needs root; use sudo", "ok 2 y # SKIP")
NONE = log("a:unit / none", "SKIP", "1..0 # SKIP no browser: install one")
FAILED = [log(f"a:scenario / {name}", "FAIL", "1..1", "not ok 1 x") for name in "abcdefg"]
MENDED = [log(f"a:scenario / {name}", "OK", "1..1", "ok 1 x") for name in "abcdefg"]
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
    (
        "benchmarks are of all",
        (1, "2 passed, 1 failed, 0 skipped"),
        last_line(GOOD, listed=[], timed=TIMED),
    ),
    (
        "and no tests",
        (0, "2 passed, 0 failed, 0 skipped"),
        last_line(GOOD, listed=[], timed=TIMED, of="--tests-of"),
    ),
    (
        "what waits or samples for real is tried again",
        [f"scenario {name}" for name in "abcdef"],
        run_again(*FAILED[:6]),
    ),
    ("but not seven of them", [], run_again(*FAILED)),
    ("nor what computes", [], run_again(FAILED[0], suite="golden")),
    (
        "nor what crashed",
        [],
        run_again(log("a:scenario / a", "FAIL", "not ok 1 x", "# exit code -11, expected 0")),
    ),
    ("nor what passed", [], run_again(*MENDED)),
    (
        "what passes then has passed",
        (0, "2 passed, 0 failed, 0 skipped"),
        last_line(FAILED[0], MENDED[1], suite="scenario", again=MENDED[:1]),
    ),
    (
        "what fails twice has failed",
        (1, "0 passed, 1 failed, 0 skipped"),
        last_line(FAILED[0], suite="scenario", again=FAILED[:1]),
    ),
    (
        "each is tried for itself",
        (1, "1 passed, 1 failed, 0 skipped"),
        last_line(*FAILED[:2], suite="scenario", again=[MENDED[0], FAILED[1]]),
    ),
    ("it is named", 1, len(unsteady(FAILED[0], again=MENDED[:1]))),
]

print(f"1..{len(CASES)}")
for number, (title, want, got) in enumerate(CASES, 1):
    print("ok" if got == want else "not ok", number, "-", title)
    if got != want:
        print(f"# {got}, wanted {want}")
sys.exit(any(got != want for _, want, got in CASES))
