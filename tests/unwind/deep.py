#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks of processes that nobody knows yet, deep ones and such as go on elsewhere: they are copied in parts, and are whole."""
import collections
import os
import subprocess

import entries
from running import PATIENT, Agent
from stacks import Profile
from tap import DEADLINE, Skip, case, main, need_root, write

PROGRAMS = os.environ["PROGRAMS"]
BTF, TASK_WORK = "/sys/kernel/btf/vmlinux", b"bpf_task_work_schedule_resume"
CONFIG = """
pyroscope.ebpf "b" {
  forward_to       = [profile.file.out.receiver]
  targets_only     = false
  default_target   = {"service_name" = "host"}
  sample_rate      = 999
  collect_interval = "2s"
  comm             = "label"
}
profile.file "out" { paths = ["out.pb.gz"] }
"""


def of(program):
    """The stacks of a program, and how many samples of it have such as are cut off."""
    path = f"{PROGRAMS}/{program}"
    stacks = [s for s in Profile("out.pb.gz").stacks() if any(file == path for file, _ in s.frames)]
    whole = sum(s.weight for s in stacks if entries.whole(s))
    cut = sum(s.weight for s in stacks if s.marker == "[stack cut off]")
    ends = collections.Counter()
    for s in stacks:
        if not entries.whole(s):
            ends[s.marker, s.frames[-1:]] += s.weight
    print(f"# {program}: {sum(s.weight for s in stacks)} stacks, {whole} whole, {cut} cut off; {ends.most_common(4)}")
    return stacks, cut


def need_task_work():
    need_root()
    with open(BTF, "rb") as types:
        if TASK_WORK not in types.read():
            raise Skip("this kernel has no task work: Linux 6.18 has")


@case
def first_samples_are_whole():
    """A recursion of a thousand frames, sampled for the first time, is a whole stack: no copy of it is cut off."""
    need_task_work()
    with Agent(write("b.alloy", CONFIG), *PATIENT) as agent:
        agent.until_metric("andiron_samples_taken_total")

        def copied():
            subprocess.run([f"{PROGRAMS}/recurse", "0.05"], check=True, timeout=DEADLINE)
            return agent.metric("andiron_ebpf_captures_deep_total") >= 10

        agent.until(copied, "stacks are copied in parts")
        agent.stop()
    stacks, cut = of("recurse")
    deepest = max(len(s.frames) for s in stacks)
    print(f"# up to {deepest} frames")
    assert deepest >= 1000 and cut == 0, (deepest, cut)


@case
def walks_go_on_on_another_stack():
    """Go that calls C that calls Go is on its thread's stack and on its goroutine's, as its runtime is: both are copied."""
    need_task_work()
    with Agent(write("b.alloy", CONFIG), *PATIENT) as agent:
        agent.until_metric("andiron_samples_taken_total")

        def copied():
            subprocess.run([f"{PROGRAMS}/cgo-work", "0.05"], check=True, timeout=DEADLINE)
            return agent.metric("andiron_ebpf_captures_other_total") >= 100

        agent.until(copied, "other stacks are copied")
        agent.stop()
    _, cut = of("cgo-work")
    # Who cannot ask for the thread's mappings, since another thread changes them, has one of the two.
    assert cut <= 10, cut


@case
def what_is_no_stack_is_not_read():
    """A program says that its stack goes on in a file's memory: nobody reads that, as they do plain memory."""
    need_task_work()

    def read(*where):
        done = subprocess.run([f"{PROGRAMS}/forged", "0.05", *where], check=True, timeout=DEADLINE, capture_output=True, text=True)
        return int(done.stdout)

    with open("mapped", "wb") as mapped:
        mapped.write(bytes(1 << 20))
    with Agent(write("b.alloy", CONFIG), *PATIENT) as agent:
        agent.until_metric("andiron_samples_taken_total")
        for _ in range(10):
            agent.until(lambda: read() == 15, "what is said to be another stack is read from where it was left")
            assert read("mapped") == 0
        agent.stop()


@case
def copies_end_with_the_stack():
    """Threads' stacks and goroutines' lie amid other memory, which is not copied with them."""
    need_task_work()
    with Agent(write("b.alloy", CONFIG), *PATIENT) as agent:
        agent.until_metric("andiron_samples_taken_total")
        for program in ("threads", "go-work"):
            before = {n: agent.metric(f"andiron_ebpf_captures_{n}total") for n in ("", "deep_")}

            def copied():
                subprocess.run([f"{PROGRAMS}/{program}", "0.05"], check=True, timeout=DEADLINE)
                return agent.metric("andiron_ebpf_captures_total") - before[""] >= 100

            agent.until(copied, f"{program}'s stacks are copied")
            now = {n: agent.metric(f"andiron_ebpf_captures_{n}total") - before[n] for n in before}
            print(f"# {program}: {now['']} copies, {now['deep_']} in parts")
            assert now["deep_"] <= now[""] / 3, (program, now)
        agent.stop()


main()
