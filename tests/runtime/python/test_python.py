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
from tap import DEPTH, Background, case, main, need_root, write  # noqa: E402

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


def expect_right(interpreter, *arguments, early=0.05, samples=SAMPLES):
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


if __name__ == "__main__":
    main()
