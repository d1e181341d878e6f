#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tools that try andiron on other kernels: what they read, and that their judges can fail."""

import gzip
import json
import os
import sys

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../packaging/cross")
)
import plan  # noqa: E402
from machine import Outcome, Run  # noqa: E402
from packages import Missing, of_lines, of_stanzas, own_source  # noqa: E402

CASES = []


def case(function):
    CASES.append(function)
    return function


STANZAS = """\
Types: deb
# a comment within
URIs: https://one.example/debian
Suites: aspen aspen-updates
Components: main contrib
Signed-By:
 -----BEGIN-----
 .
 -----END-----

Types: deb
URIs: https://two.example/security
Suites: aspen-security
Components: main

Enabled: no
Types: deb
URIs: https://off.example/debian
Suites: birch
Components: main
"""
LINES = """\
# deb https://off.example/debian aspen main
deb-src https://source.example/debian aspen main
deb [arch=amd64 signed-by=/keys/a.gpg] https://one.example/debian aspen main
deb https://two.example/debian aspen-updates main
"""


@case
def sources():
    """The machine's own source is found in both forms, and nothing else is taken for it."""
    uris, signed = own_source("aspen", of_stanzas(STANZAS))
    assert (
        uris == "https://one.example/debian" and signed == "\n -----BEGIN-----\n .\n -----END-----"
    ), (uris, signed)
    assert own_source("aspen", of_lines(LINES)) == ("https://one.example/debian", "/keys/a.gpg")
    for suite, known in (
        ("birch", of_stanzas(STANZAS)),
        ("aspen-security", of_lines(LINES)),
        ("aspen", []),
    ):
        try:
            raise AssertionError(own_source(suite, known))
        except Missing:
            pass


def packed(text):
    data = gzip.compress(text.encode())
    return b"%d\n" % len(data) + data


@case
def results_that_end_early():
    """Wherever the guest stops speaking, what came before counts, and the end is missed."""
    told = (
        b"up 1.50\nstep 00-a 0 0.25 "
        + packed("said\nso")
        + b"file kept "
        + packed("left")
        + b"step 01-b 3 1 "
        + packed("")
        + b"done\n"
    )
    for n in range(len(told) + 1):
        run = Run()
        run.take(told[:n])
        assert run.finished == (n >= len(told) - 1), n
        assert len(run.outcomes) <= 2 and all(
            o.text in ("said\nso", "") for o in run.outcomes.values()
        )
    assert (
        run.up == 1.5
        and run.outcomes["00-a"].files == {"kept": b"left"}
        and run.outcomes["01-b"].code == 3
    )
    for noise in (
        b"\xff\xfe\n",
        b"step\n",
        b"file x 3\nabc",
        b"step a b c d\n",
        b"step a 0 1 -5\n",
        b"\n",
        b"up x\n",
    ):
        run = Run()
        run.take(noise + told)
        assert not run.finished and not run.outcomes, noise


PROGRAM = plan.Program(
    "p",
    chains=[["start", "a", "b"], ["other", "c"]],
    entries=["start"],
    share=0.9,
    strange=0.1,
    samples=10,
)
PROCESS = "p"


def verdict(**stacks):
    try:
        return PROGRAM.judge({(PROCESS, *name.split("_")): n for name, n in stacks.items()})
    except AssertionError:
        return None


@case
def stacks():
    """Whole stacks pass; short, cut, too few and foreign ones do not."""
    assert verdict(start_a_b=95, start_a_b_irq=5) == (100, 100)
    assert verdict(start_a_b=60, start_a_syscall=40) == (100, 100)
    assert verdict(start_a_b=91, a_b=9) == (91, 100)
    assert verdict(start_a_b=89, a_b=11) is None
    assert verdict(start_b=100) is None and verdict(x_start_a_b=100) is None
    assert verdict(start_a_b=9) is None
    assert (
        verdict(start_a_b=60, start_other_c=40) == (100, 100)
        and verdict(start_other_c_a=100) is None
    )
    assert verdict(start_a_b=91, x=9) == (91, 91) and verdict(start_a_b=80, x=20) is None


@case
def early():
    """Samples from before something was read are left aside, up to a part of them."""
    recording = plan.Recording("r", 97, [PROGRAM], early=0.3)
    late = {(PROCESS, "start", "a"): 70}
    assert recording.settled(late | {(PROCESS, "[new process]", "a"): 30, ("q", "x"): 9}) == {
        PROGRAM: late
    }
    try:
        raise RuntimeError(recording.settled(late | {(PROCESS, "[new process]", "a"): 31}))
    except AssertionError:
        pass


@case
def judges():
    """No step passes that ended badly or said nothing."""
    for step in plan.STEPS:
        for code, text in (
            (1, "ok 1 - a\n"),
            (0, ""),
            (0, json.dumps({"can_sample": True, "points": []})),
        ):
            try:
                step.judge(Outcome(code, text, 1.0), {"cpus": 2})
            except (AssertionError, KeyError, ValueError, IndexError, StopIteration):
                continue
            raise AssertionError(f"{step.name} takes {code} {text!r}")


def main():
    print(f"1..{len(CASES)}")
    for number, function in enumerate(CASES, 1):
        function()
        print(f"ok {number} - {function.__name__}", flush=True)


main()
