#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPython's own frames: a program of known call tree under each interpreter that can be had."""

import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../scenario")]
import interpreters  # noqa: E402
import pprof  # noqa: E402
import stacks  # noqa: E402
from running import PATIENT, Agent  # noqa: E402
from tap import DEPTH, Background, Skip, case, main, need_root, run, write  # noqa: E402

CONFIG = """discovery.relabel "python" {
  targets = [{"__process_pid__" = "%d", "service_name" = "python"}]
}
pyroscope.ebpf "python" {
  forward_to       = [profile.file.out.receiver]
  targets          = discovery.relabel.python.output
  sample_rate      = 997
  collect_interval = "1s"
  kernel_frames    = false
}
profile.file "out" {
  paths = ["out.pb.gz"]
}
"""
ALL = """discovery.process "all" { }
pyroscope.ebpf "python" {
  forward_to       = [profile.file.out.receiver]
  targets          = discovery.process.all.targets
  sample_rate      = 397
  collect_interval = "1s"
}
profile.file "out" {
  paths = ["out.pb.gz"]
}
"""
SAMPLES = 2000 if DEPTH == "fast" else 6000


def profile(interpreter, *arguments, samples=SAMPLES):
    """Stacks of calls.py, and what the agent said."""
    need_root()
    shutil.copy(stacks.CALLS, os.path.join(interpreter.root, "tmp/calls.py"))
    with Background(*interpreter.command, "/tmp/calls.py", *arguments) as program, Agent(
        write("c.alloy", CONFIG % program.pid), *PATIENT
    ) as agent:
        agent.until_metric("andiron_samples_taken_total", samples)
        agent.stop()
        said = agent.text()
    return pprof.stacks("out.pb.gz"), said


def expect_right(interpreter, *arguments, early=0.15, samples=SAMPLES):
    """The run's figures, printed."""
    tree = stacks.Tree(interpreter.minor >= 11)
    told = stacks.Told(profile(interpreter, *arguments, samples=samples)[0], tree)
    print(f"# {interpreter} {' '.join(arguments)}: {told}", flush=True)
    assert told.samples >= samples / 2 and told.early <= early * told.samples, told.early
    assert told.right >= 0.995, sorted(told.wrong.items(), key=lambda item: -item[1])[:5]
    assert told.whole >= 0.999 * told.later, (told.whole, told.later)
    return told


@case
def lines_and_order():
    """Functions, lines and native frames stand in their order, with the shares that they have."""
    for interpreter in interpreters.all_of(DEPTH):
        told = expect_right(interpreter, "300")
        assert abs(told.share - 0.75) <= 0.03 + 2 / told.samples**0.5, told.share


@case
def many_calls():
    """Where functions begin and return most of the time, no frame is taken for another's."""
    for interpreter in interpreters.all_of(DEPTH):
        expect_right(interpreter, "3")


@case
def threads():
    """Each thread has its own frames."""
    for interpreter in interpreters.all_of(DEPTH):
        expect_right(interpreter, "100", "3")


@case
def awaited():
    """Coroutines stand in the order in which they await each other."""
    for interpreter in interpreters.all_of(DEPTH):
        expect_right(interpreter, "-300", early=0.3)


def stacks_of(command, samples=500, env=None):
    """Stacks of any program."""
    need_root()
    with Background(*command, env=env) as program, Agent(
        write("c.alloy", CONFIG % program.pid), *PATIENT
    ) as agent:
        agent.until_metric("andiron_samples_taken_total", samples)
        agent.stop()
    return pprof.stacks("out.pb.gz")


def of_minor(minor):
    for one in interpreters.all_of("quick"):
        if one.minor == minor and one.origin == "pyenv":
            return one
    raise Skip(f"needs CPython 3.{minor} of pyenv")


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


@case
def subinterpreters():
    """Frames of an interpreter stand behind those of the one that runs it, in one thread."""
    wanted = ["<module>", "enter", "<module>", "inner"]
    for interpreter in interpreters.all_of("quick"):
        if interpreter.minor < 8:
            continue
        total = right = 0
        for frames, n, _ in stacks_of([*interpreter.command, write("sub.py", SUB)]):
            if not any(f.function == "inner" for f in frames):
                continue
            names = [f.function for f in frames if f.function in wanted]
            total += n
            right += n * (names == wanted)
        print(f"# {interpreter}: {total} samples, {right / max(1, total):.2%} right", flush=True)
        assert total > 300 and right >= 0.995 * total, (total, right)


@case
def embedded():
    """A program that has an interpreter in it, here gdb, shows its frames."""
    if not shutil.which("gdb"):
        raise Skip("needs gdb: apt-get install gdb")
    shutil.copy(stacks.CALLS, "/tmp/calls.py")
    found = stacks_of(["gdb", "-nx", "-batch", "-x", "/tmp/calls.py"], 1000)
    told = stacks.Told(found, stacks.Tree(True))
    print(f"# gdb: {told}", flush=True)
    assert told.later > 300 and told.right >= 0.995, told.wrong


@case
def not_known():
    """Of a version that is not known native frames are right, and one marked frame names it."""
    interpreter = of_minor(13)
    home = os.path.dirname(os.path.dirname(os.path.realpath(interpreter.command[0])))
    name = "libpython3.13.so.1.0"
    with open(os.path.join(home, "lib", name), "rb") as f:
        whole = bytearray(f.read())
    at = whole.index(b"xdebugpy" + (0x030D00F0).to_bytes(8, "little"))
    whole[at + 10] = 16
    write(name, bytes(whole))
    shutil.copy(stacks.CALLS, "/tmp/calls.py")
    env = dict(os.environ, LD_LIBRARY_PATH=os.getcwd())
    total = right = 0
    for frames, n, _ in stacks_of([*interpreter.command, "/tmp/calls.py"], env=env):
        names = [f.function for f in frames]
        marks = [name for name in names if name.startswith("[CPython 3.16.0: not known")]
        if names[0] == "[runtime]" or "_PyEval_EvalFrameDefault" not in names:
            continue
        total += n
        right += n * (len(marks) == 1 and names[0] == "_start" and "spin" not in names)
    print(f"# {marks}: {right / max(1, total):.2%} of {total} right", flush=True)
    assert total > 300 and right >= 0.99 * total, names


@case
def stripped():
    """Without any symbol that linking does not need the frames are the same."""
    interpreter = of_minor(12)
    home = os.path.dirname(os.path.dirname(os.path.realpath(interpreter.command[0])))
    name = "libpython3.12.so.1.0"
    run("strip", "-o", name, os.path.join(home, "lib", name)).expect(0)
    env = dict(os.environ, LD_LIBRARY_PATH=os.getcwd())
    shutil.copy(stacks.CALLS, "/tmp/calls.py")
    told = stacks.Told(
        stacks_of([*interpreter.command, "/tmp/calls.py"], 1000, env), stacks.Tree(True)
    )
    print(f"# {interpreter}, stripped: {told}", flush=True)
    assert told.later > 300 and told.right >= 0.995 and told.whole >= 0.999 * told.later, told.wrong


def shares(found):
    """{function of calls.py: its part of the samples, itself or what it calls}, and how many."""
    ret, total = {}, 0
    for names, n in found:
        total += n
        for name in set(names):
            ret[name] = ret.get(name, 0) + n
    return {name: n / total for name, n in ret.items()}, total


@case
def agreement():
    """py-spy, beside it in the same seconds, gives the ten hottest functions the same shares."""
    need_root()
    spy = interpreters.py_spy()
    if not spy:
        raise Skip("needs py-spy of PyPI")
    shutil.copy(stacks.CALLS, "/tmp/calls.py")
    with Background(interpreters.asked_path(), "/tmp/calls.py") as program, Agent(
        write("c.alloy", CONFIG.replace("997", "397") % program.pid), *PATIENT
    ) as agent:
        agent.until_metric("andiron_samples_taken_total", 100)
        record = (spy, "record", "-d", "8", "-r", "200", "-f", "raw", "-o", "spy.txt")
        run(*record, "-p", str(program.pid)).expect(0)
        agent.stop()
    with open("spy.txt", encoding="utf-8") as f:
        lines = [line.rpartition(" ") for line in f]
    theirs, n = shares(
        ([x.split(" (")[0] for x in text.split(";") if "calls.py" in x], int(count))
        for text, _, count in lines
    )
    ours, m = shares(
        ([stacks.short(f.function) for f in frames if "calls.py" in f.file], count)
        for frames, count, _ in pprof.stacks("out.pb.gz")
        if any("calls.py" in f.file for f in frames)
    )
    worst = 0
    for name in sorted(theirs, key=lambda name: -theirs[name])[:14]:
        p = theirs[name]
        if p < 0.99:
            spread = (p * (1 - p) * (1 / n + 1 / m)) ** 0.5
            worst = max(worst, abs(p - ours.get(name, 0)) / (4 * spread + 0.01))
    print(f"# {m} samples, py-spy {n}: largest difference {worst:.2f} of what may be", flush=True)
    assert worst <= 1, (ours, theirs)


@case
def outlived():
    """Names are there when the process is not: programs of 50 ms of CPU, one after the other."""
    need_root()
    short = write("short.py", "def burn():\n  for i in range(900000): pass\nburn()\n")
    with Agent(write("c.alloy", ALL), *PATIENT) as agent:
        agent.until_metric("andiron_samples_taken_total", 1)
        for _ in range(100):
            run(interpreters.asked_path(), short).expect(0)
        agent.stop()
    total = named = 0
    for frames, n, _ in pprof.stacks("out.pb.gz"):
        names = [f.function for f in frames]
        if not any("short.py" in f.file for f in frames) and "Py_BytesMain" not in names:
            continue
        loop = [i for i, x in enumerate(names) if x in ("_PyEval_EvalFrameDefault", "[runtime]")]
        if not loop and "<module>" not in names:
            continue
        total += n
        named += n * (not loop)
    print(f"# {total} samples in the loop, {named / max(1, total):.1%} named", flush=True)
    assert named >= 0.9 * total, (named, total)


if __name__ == "__main__":
    main()
