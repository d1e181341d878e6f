#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs the sampler to ask a language runtime for its code in a process: the first of a
binary, at most 50 ms of CPU, and a further one, at most 2 ms. The figures are printed. A busy
machine doubles them, so what fails is ten times as much."""

import contextlib
import os
import signal

import profiles
import runtimes
from running import PATIENT, Agent, cpu_seconds
from tap import Background, case, main, need_root, write

FIRST, FURTHER = 50, 2  # ms
JAVA = """public class Spin {
    public static void main(String[] arguments) {
        for (int s = 0;; s++) if (s == arguments.length - 1) Thread.yield();
    }
}
"""


def claims(agent):
    """How often runtimes were asked, and the ms of CPU for that."""
    n, ns = [agent.metric(f"andiron_ebpf_runtime_claim{what}_total") for what in ("s", "_cpu_ns")]
    return n, ns / 1e6


def cost_of(what, command):
    need_root()
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(Background(*command)) for _ in range(2)]
        for one in programs:
            one.until(lambda one=one: cpu_seconds(one.pid) > 1, "it works")
        programs[1].signal(signal.SIGSTOP)
        targets = ", ".join(profiles.TARGET % (one.pid, i) for i, one in enumerate(programs))
        config = write("c.alloy", profiles.CONFIG % (targets, 97, ""))
        agent = stack.enter_context(Agent(config, *PATIENT))

        def named(program):
            return (profiles.processes(agent) or {}).get(program.pid)

        agent.until(lambda: named(programs[0]), "the status names the first one")
        n_first, first = claims(agent)
        programs[1].signal(signal.SIGCONT)
        agent.until(lambda: named(programs[1]), "the status names the other one")
        n_all, cpu = claims(agent)
        agent.stop()
    further = cpu - first
    print(
        f"# {what}: the first process {first:.1f} ms in {n_first:.0f} claims, a further one "
        f"{further:.2f} ms in {n_all - n_first:.0f}",
        flush=True,
    )
    assert first <= 10 * FIRST and further <= 10 * FURTHER, (first, further)


def newest(found):
    """Of those that need no root of their own."""
    return [one for one in found if len(one.command) == 1][-1:]


@case
def python():
    """Claims of CPython cost little."""
    script = write("spin.py", "while True: pass\n")
    for python in newest(runtimes.pythons()):
        cost_of(str(python), [*python.command, script])


@case
def node():
    """Claims of V8 cost little."""
    for node in newest(runtimes.nodes()):
        cost_of(str(node), [*node.command, "-e", "for (;;);"])


@case
def java():
    """Claims of HotSpot cost little."""
    classes = os.path.abspath(runtimes.compiled_java(write("Spin.java", JAVA)))
    for java in newest(runtimes.javas()):
        cost_of(str(java), [*java.command, "-cp", classes, "Spin"])


main()
