#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPython's own frames: a program of known call tree under each interpreter that can be had."""

import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(HERE, "../../scenario")]
import profiles  # noqa: E402
import registries  # noqa: E402
import runtimes  # noqa: E402
import stacks  # noqa: E402
from profiles import Judged  # noqa: E402
from running import cpu_seconds  # noqa: E402
from tap import Skip, case, case_of_full, main, run, write  # noqa: E402


def judged(pythons, *arguments):
    """calls.py under each of them at the same time: [(interpreter, Judged)], printed."""
    shutil.copy(stacks.CALLS, ".")
    commands = [[*python.command, "calls.py", *arguments] for python in pythons]
    ret = []
    for python, profile in zip(pythons, profiles.of_programs(commands)):
        assert profile.runtime == f"CPython {python.version}", (profile.runtime, str(python))
        told = Judged(profile, stacks.Tree(python.minor >= 11).judge)
        ret.append(told.expect(f"{python} {' '.join(arguments)}"))
    return ret


@case
def lines_and_order():
    """Functions, lines and native frames stand in their order, with the shares that they have."""
    pythons = list(runtimes.pythons())
    run(runtimes.system_python().command[0], "-m", "venv", "--without-pip", "venv").expect(0)
    version = runtimes.system_python().version
    virtual = runtimes.Runtime("a virtual environment's", version, ["venv/bin/python"])
    for told in judged([*pythons, virtual], "300"):
        three = told.counts["three"] / max(1, told.counts["one"] + told.counts["three"])
        assert abs(three - 0.75) <= 0.03 + 2 / told.samples**0.5, three


@case
def many_calls():
    """Where functions begin and return most of the time, no frame is taken for another's."""
    judged(runtimes.pythons(), "3")


@case
def threads():
    """Each thread has its own frames."""
    judged(runtimes.pythons(), "100", "3")


@case
def awaited():
    """Coroutines stand in the order in which they await each other."""
    judged(runtimes.pythons(), "-300")


@case
def await_chain():
    """Behind a task's coroutines stand those of the tasks that await it, with marks between them.

    Where several do, or more than are read, a mark ends the chain. All other frames stay."""
    pythons = [python for python in runtimes.pythons() if python.minor == 14]
    if not pythons:
        raise Skip("needs CPython 3.14: `./check --full` fetches it")
    shutil.copy(stacks.AWAITS, ".")
    commands = [[*python.command, "awaits.py"] for python in pythons]
    for python, profile in zip(pythons, profiles.of_programs(commands)):
        told = Judged(profile, stacks.Awaits().judge).expect(f"{python}, awaits", beside=0.4)
        for kind in ("a task", "h\xe4ndler", "several tasks", "more tasks"):
            assert told.counts[f"[awaited by {kind}]"] > 0, told
        loops = sum(
            n
            for frames, n, _ in profile.stacks
            if any(f.function.startswith("[awaited") for f in frames)
            and not any(f.function == "Handle._run" for f in frames)
        )
        assert loops == 0, loops


@case
def trampolines():
    """With `-X perf` each function is called through code that CPython has written for perf."""
    pythons = [python for python in runtimes.pythons() if python.minor >= 12]
    if not pythons:
        raise Skip("needs CPython 3.12 or later: `./check --full` fetches it")
    for_perf = [
        runtimes.Runtime(f"{p.origin} for perf", p.version, [*p.command, "-X", "perf"])
        for p in pythons
    ]
    judged(for_perf, "30")


SUB = """
try:
    import _interpreters as subs
except ImportError:
    import _xxsubinterpreters as subs
def spin(n):
    while True:
        n += 1
def enter(text):
    subs.run_string(subs.create(), text)
enter("def inner(n):\\n  while True:\\n    n += 1\\ninner(1)\\n")
"""


def judge_sub(frames):
    names = [f.function for f in frames if f.function in ("<module>", "enter", "inner")]
    if "inner" not in names:
        return None
    if names != ["<module>", "enter", "<module>", "inner"]:
        raise profiles.Wrong(str(names))
    return "inner"


@case
def subinterpreters():
    """Frames of an interpreter stand behind those of the one that runs it, in one thread."""
    pythons = [python for python in runtimes.pythons() if python.minor >= 8]
    write("sub.py", SUB)
    commands = [[*python.command, "sub.py"] for python in pythons]
    for python, profile in zip(pythons, profiles.of_programs(commands)):
        Judged(profile, judge_sub).expect(f"{python}, subinterpreter")


@case
def embedded():
    """A program that has an interpreter in it, here gdb, shows its frames."""
    if not shutil.which("gdb"):
        raise Skip("needs gdb: apt-get install gdb")
    shutil.copy(stacks.CALLS, ".")
    profile = profiles.of_program("gdb", "-nx", "-batch", "-x", "calls.py")
    Judged(profile, stacks.Tree(True).judge).expect(f"gdb with {profile.runtime}")


UNKNOWN = "[CPython 3.16.0: not known"


def judge_unknown(frames):
    names = [f.function for f in frames]
    if "_PyEval_EvalFrameDefault" not in names:
        return None
    if not any(name.startswith("[CPython") for name in names):
        return None  # walked from a copy, before the process was known
    if sum(name.startswith(UNKNOWN) for name in names) != 1 or "spin" in names:
        raise profiles.Wrong(str(names))
    return "marked"


@case_of_full
def not_known():
    """Of a version that is not known native frames are right, and one marked frame names it."""
    try:
        folder = registries.debian(runtimes.SUITES[13], "python3.13")
    except registries.Missing as why:
        raise Skip(str(why)) from why
    with open(os.path.join(folder, "usr/bin/python3.13"), "rb") as f:
        whole = bytearray(f.read())
    # The debug offsets begin with a cookie and the version as PY_VERSION_HEX.
    at = re.search(rb"xdebugpy..\r\x03", whole, re.S).start()
    whole[at + 9 : at + 11] = 0, 16
    os.chmod(write("python3.16", bytes(whole)), 0o755)
    shutil.copy(stacks.CALLS, ".")
    command = registries.inside(folder, "./python3.16", "calls.py")
    profile = profiles.of_program("env", "PYTHONHOME=/usr", *command)
    assert profile.runtime.startswith("CPython 3.16.0: not known"), profile.runtime
    Judged(profile, judge_unknown).expect(f"3.13 as {profile.runtime}")


def shares(found):
    """{function of calls.py: its part of the samples, itself or what it calls}, and how many."""
    ret, total = {}, 0
    for names, n in found:
        total += n
        for name in set(names):
            ret[name] = ret.get(name, 0) + n
    return {name: n / total for name, n in ret.items()}, total


@case_of_full
def agreement():
    """py-spy, beside it in the same seconds, gives the ten hottest functions the same shares."""
    spy = (runtimes.py_spy(), "record", "-d", "5", "-r", "200", "-f", "raw", "-o", "spy.txt", "-p")
    used = []

    def spied(pids):
        before = cpu_seconds(pids[0])
        run(*spy, str(pids[0])).expect(0)
        used.append(cpu_seconds(pids[0]) - before)

    shutil.copy(stacks.CALLS, ".")
    profile = profiles.of_program(
        *runtimes.system_python().command, "calls.py", rate=397, beside=spied
    )
    with open("spy.txt", encoding="utf-8") as f:
        lines = [line.rpartition(" ") for line in f]
    theirs, n = shares(
        ([x.split(" (")[0] for x in text.split(";") if "calls.py" in x], int(count))
        for text, _, count in lines
    )
    ours, m = shares(
        ([stacks.short(f.function) for f in frames if "calls.py" in f.file], count)
        for frames, count, _ in profile.stacks
        if any("calls.py" in f.file for f in frames)
    )
    # It looks by the clock of the wall: where others work, again and again at a program that waits.
    looked, worst = n * min(1, used[0] / 5), 0
    for name in sorted(theirs, key=lambda name: -theirs[name])[:14]:
        p = theirs[name]
        if p < 0.99:
            spread = (p * (1 - p) * (1 / looked + 1 / m)) ** 0.5
            worst = max(worst, abs(p - ours.get(name, 0)) / (4 * spread + 0.01))
    print(f"# {m} samples, py-spy {n}: largest difference {worst:.2f} of what may be", flush=True)
    assert n > 300 and looked > 100 and worst <= 1, (n, looked, ours, theirs)


if __name__ == "__main__":
    case(runtimes.expect_all)
    main()
