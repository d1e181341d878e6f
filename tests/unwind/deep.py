#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Deep stacks of processes that nobody knows yet: they are copied in parts, and are whole."""
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
    stacks = [s for s in Profile("out.pb.gz").stacks() if s.comm == "recurse"]
    deepest = max(len(s.frames) for s in stacks)
    cut = sum(s.weight for s in stacks if s.marker == "[stack cut off]")
    whole = sum(s.weight for s in stacks if entries.whole(s))
    print(f"# {sum(s.weight for s in stacks)} stacks, up to {deepest} frames; {whole} whole, {cut} cut off")
    assert deepest >= 1000 and cut == 0, (deepest, cut)


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
