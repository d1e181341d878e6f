#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks of processes that nobody knows yet: deep ones and such as go on elsewhere, of large files,
of one program after the other, of code that is new. They are copied, in parts if need be, and are
whole."""

import collections
import contextlib
import os
import shutil
import subprocess

import entries
from running import PATIENT, Agent
from stacks import Profile
from tap import DEADLINE, Skip, case, main, need_root, write

PROGRAMS, ROOT = os.environ["PROGRAMS"], os.environ["SOURCE_ROOT"]
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
    print(
        f"# {program}: {sum(s.weight for s in stacks)} stacks, {whole} whole, {cut} cut off; "
        f"{ends.most_common(4)}"
    )
    return stacks, cut


def need_task_work():
    need_root()
    with open(BTF, "rb") as types:
        if TASK_WORK not in types.read():
            raise Skip("this kernel has no task work: Linux 6.18 has")


@contextlib.contextmanager
def sampling():
    """An agent that samples; what it has taken is written behind the block."""
    need_task_work()
    with Agent(write("b.alloy", CONFIG), *PATIENT) as agent:
        agent.until_metric("andiron_samples_taken_total")
        yield agent
        agent.stop()


def run_until(agent, kind, at_least, program):
    """Runs it for a moment, again and again, until so many of its stacks are copied, of that
    kind."""
    metric = f"andiron_ebpf_snapshots_{kind}total"
    before = agent.metric(metric)

    def copied():
        subprocess.run([f"{PROGRAMS}/{program}", "0.05"], check=True, timeout=DEADLINE)
        return agent.metric(metric) - before >= at_least

    agent.until(copied, f"{program}'s stacks are copied")


@case
def first_samples_are_whole():
    """A recursion of a thousand frames, sampled for the first time, is a whole stack: no copy of
    it is cut off."""
    with sampling() as agent:
        run_until(agent, "deep_", 10, "recurse")
    stacks, cut = of("recurse")
    deepest = max(len(s.frames) for s in stacks)
    print(f"# up to {deepest} frames")
    assert deepest >= 1000 and cut == 0, (deepest, cut)


@case
def one_frame_may_be_larger_than_the_copy():
    """Of a stack with a frame of 1 MiB both ends are copied."""
    with sampling() as agent:
        run_until(agent, "deep_", 10, "big-frame")
    _, cut = of("big-frame")
    assert cut == 0, cut


@case
def walks_go_on_on_another_stack():
    """Go that calls C that calls Go is on its thread's stack and on its goroutine's, as its
    runtime is: both are copied."""
    with sampling() as agent:
        run_until(agent, "other_", 40, "cgo-work")
    stacks, cut = of("cgo-work")
    # Who cannot ask for the thread's mappings, since another thread changes them, has one of the
    # two. How many stacks there are until so many are copied is the machine's.
    assert cut <= 4 + sum(s.weight for s in stacks) // 1000, cut


@case
def signals_interrupt_another_stack():
    """A handler on a stack of its own is called by the kernel's frame alone: what it has
    interrupted is copied with it."""
    with sampling() as agent:
        run_until(agent, "other_", 20, "altstack")
    stacks, cut = of("altstack")
    assert len(stacks) >= 10 and cut == 0, (len(stacks), cut)


@case
def large_files_need_not_be_read_first():
    """A compiler's stacks are whole while its libraries, of 350 MB, are still read."""
    if not shutil.which("rustc"):
        raise Skip("needs rustc")
    with sampling() as agent:
        subprocess.run(
            [
                "rustc",
                "-O",
                "--emit",
                "obj",
                "-o",
                "/dev/null",
                f"{ROOT}/tests/unwind/programs/work.rs",
            ],
            check=True,
            timeout=DEADLINE,
        )
        unwound_by_file = agent.metric("andiron_ebpf_snapshots_file_unwind_total")
    stacks = [
        s
        for s in Profile("out.pb.gz").stacks()
        if any("librustc_driver" in file for file, _ in s.frames)
    ]
    n, whole = (
        sum(s.weight for s in of_these)
        for of_these in (stacks, [s for s in stacks if entries.whole(s)])
    )
    print(
        f"# {n} stacks, {whole} whole; {unwound_by_file:.0f} of all were unwound by file; "
        f"{collections.Counter(s.marker for s in stacks).most_common(4)}"
    )
    assert n >= 100 and unwound_by_file >= 10 and whole >= 0.95 * n, (n, unwound_by_file, whole)


@case
def programs_that_follow_each_other_are_told_apart():
    """A process becomes another program again and again, and is known each time."""
    with sampling() as agent:
        run_until(agent, "", 100, "execs")
        subprocess.run([f"{PROGRAMS}/execs", "1"], check=True, timeout=DEADLINE)
    stacks, _ = of("execs")
    n, whole = (
        sum(s.weight for s in of_these)
        for of_these in (stacks, [s for s in stacks if entries.whole(s)])
    )
    assert n >= 500 and whole >= 0.95 * n, (n, whole)


@case
def code_may_be_mapped_piece_by_piece():
    """A runtime that begins maps memory for its code again and again: stacks through the newest of
    it are whole."""
    with sampling() as agent:
        run_until(agent, "", 10, "maps-code")
        for _ in range(2):
            subprocess.run([f"{PROGRAMS}/maps-code", "0.4"], check=True, timeout=DEADLINE)
    stacks, _ = of("maps-code")
    n, whole = (
        sum(s.weight for s in of_these)
        for of_these in (stacks, [s for s in stacks if entries.whole(s)])
    )
    assert n >= 300 and whole >= 0.95 * n, (n, whole)


@case
def what_is_no_stack_is_not_read():
    """A program says that its stack goes on in a file's memory: nobody reads that, as they do
    plain memory."""

    def read(*where):
        done = subprocess.run(
            [f"{PROGRAMS}/forged", "0.05", *where],
            check=True,
            timeout=DEADLINE,
            capture_output=True,
            text=True,
        )
        return int(done.stdout)

    with open("mapped", "wb") as mapped:
        mapped.write(bytes(1 << 20))
    with sampling() as agent:
        for _ in range(10):
            agent.until(
                lambda: read() == 15,
                "what is said to be another stack is read from where it was left",
            )
            assert read("mapped") == 0


@case
def copies_end_with_the_stack():
    """Threads' stacks and goroutines' lie amid other memory, which is not copied with them."""
    with sampling() as agent:
        for program in ("threads", "go-work"):
            before = {n: agent.metric(f"andiron_ebpf_snapshots_{n}total") for n in ("", "deep_")}
            run_until(agent, "", 100, program)
            now = {n: agent.metric(f"andiron_ebpf_snapshots_{n}total") - before[n] for n in before}
            print(f"# {program}: {now['']} copies, {now['deep_']} in parts")
            assert now["deep_"] <= now[""] / 3, (program, now)


main()
