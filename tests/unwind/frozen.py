#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same stacks as the oracles, frame by frame, at frozen points.

gdb stops a program at random moments and lets one thread spin at the very instruction where it was,
under a name of its own (freeze.py); the agent samples all the while. So every sample of that name
shows one state, and its stack has to be gdb's, perf's DWARF mode's over the same state, and, where
code keeps frame pointers (Go, node), that which these give: each address of each frame.

An oracle is asked only within its reach: where its own stack ends where threads begin. What differs
is put into classes, and all of them are printed.

UNWIND_DEPTH: fast (default), full or all. UNWIND_WALKER: tables, or frame-pointers, under which the
oracles are held against each other.

frozen.py [PROGRAM…|N/M]: these programs alone, or every M-th from the N-th on. Each has an agent of
its own that samples nothing else, and what is asked of it are addresses, so two may run at once.
"""

import collections
import contextlib
import json
import os
import subprocess
import sys

import entries
import perf
from freezing import command, freeze, need_gdb
from running import PATIENT, Agent, cpu_seconds
from stacks import Profile, address_in_file, perf_stacks
from tap import case, cases, main, need_root, read, until, write, Skip

DEPTH = os.environ.get("UNWIND_DEPTH", "fast")
WALKER = os.environ.get("UNWIND_WALKER", "tables")
POINTS = {"fast": 24, "full": 24, "all": 400}[DEPTH]
BAR = 99.0
HIDDEN_MAX = 4  # frames that frame pointers cannot see

CONFIG = """
pyroscope.ebpf "f" {{
  forward_to  = [profile.file.out.receiver]
  targets     = [{{"__process_pid__" = "{pid}"}}]
  sample_rate = 999
  comm        = "label"
  collect_interval = "1s"
}}
profile.file "out" {{ paths = ["out.pb.gz"] }}
"""


def observe(name):
    """(points, our stacks by name, perf's by name) of one program."""
    process = subprocess.Popen(
        command(name),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: cpu_seconds(process.pid) >= 0.1, f"{name} has begun")
        with Agent(
            write("f.alloy", CONFIG.format(pid=process.pid)), *PATIENT
        ) as agent, contextlib.ExitStack() as beside:
            agent.until_metric("andiron_samples_taken_total")
            if perf.HERE:
                beside.enter_context(
                    perf.perf("dwarf", 499, "-p", str(process.pid), "--call-graph", "dwarf,32768")
                )
            points = freeze(process.pid, POINTS)
            agent.stop()
    finally:
        process.kill()
        process.wait()
    ours = by_name(Profile("out.pb.gz").stacks())
    return points, ours, by_name(perf_stacks("dwarf.data", by_thread=True)) if perf.HERE else {}


def by_name(stacks):
    found = collections.defaultdict(list)
    for stack in stacks:
        if stack.comm.startswith("frozen-"):
            found[stack.comm].append(stack)
    return found


# --- Judging ---


def addresses(frames):
    """Of an oracle's frames [file, offset, returned]: (file, address, returned)."""
    return [(f, address_in_file(f, a) if f[:1] == "/" else a, r) for f, a, r in frames]


def same(ours, oracle):
    """A caller is told by the call's last byte by us, by its return address by some."""
    file, address, returned = oracle
    there = ours[1] in ((address, address - 1) if returned else (address,))
    if file[:1] == "/" and ours[0][:1] == "/":
        return there and os.path.realpath(file) == os.path.realpath(ours[0])
    if file == ours[0] == "[anon]":
        return there
    return file[:1] != "/" and ours[0][:1] != "/"


def told(frame):
    return f"{os.path.basename(frame[0]) or '?'}+{frame[1]:#x}"


def difference(stack, oracle):
    """None, or the class that the difference belongs to."""
    for i, frame in enumerate(oracle):
        if i >= len(stack.frames):
            return f"ends early: {stack.marker or 'as if whole'} at {told(stack.frames[-1])}"
        if not same(stack.frames[i], frame):
            return (
                f"frame {i} above {told(oracle[i - 1])} is {told(stack.frames[i])}, not "
                f"{told(frame)}"
            )
    if len(stack.frames) > len(oracle):
        return f"goes on behind {told(oracle[-1])}"
    return f"whole, and says {stack.marker}" if stack.marker else None


def differs_from_frame_pointers(stack, oracle):
    """As difference(), but functions that have no frame yet, or never one, hide their callers from
    frame pointers: one in assembly that was called by another hides two, and a signal's handler at
    its first instruction hides the trampoline and what was interrupted besides. Whether those are
    right is gdb's to say. And they end in C's own start code, which keeps none: what ours has
    behind that has to be where threads begin."""
    for hidden in range(HIDDEN_MAX + 1):
        chain = (
            oracle[:1] + [frame + (False,) for frame in stack.frames[1 : 1 + hidden]] + oracle[1:]
        )
        begins = all(map(entries.is_entry, stack.frames[len(chain) :]))
        if begins and difference(stack._replace(frames=stack.frames[: len(chain)]), chain) is None:
            return None
    return difference(stack, oracle)


def reaches(frames):
    return bool(frames) and entries.is_entry(frames[-1][:2])


def frame_pointers_reach(frames):
    """Also to where C's own start code called the program; a function of the C library proper
    breaks the chain."""
    files = [os.path.basename(f) for f, _, _ in frames[-2:]]
    return (
        reaches(frames)
        or len(files) == 2
        and files[1].startswith("libc.so")
        and files[0] != files[1]
    )


class Agreement:
    """Of one program with one oracle, in samples."""

    def __init__(self):
        self.same = self.compared = self.beyond = 0
        self.classes = collections.Counter()

    def add(self, stacks, leaf, oracle, differs=difference, reach=reaches):
        for stack in stacks:
            if not stack.frames or not same(stack.frames[0], leaf):
                continue
            if not reach(oracle):
                self.beyond += stack.weight
                continue
            self.compared += stack.weight
            why = differs(stack, oracle)
            if why:
                self.classes[why] += stack.weight
            else:
                self.same += stack.weight

    def percent(self):
        return 100 * self.same / self.compared if self.compared else 0.0


def compare(points, ours, dwarf):
    """{oracle: Agreement}; "gdb/dwarf" holds one oracle against the other."""
    found = collections.defaultdict(Agreement)
    for point in points:
        name, by_gdb, by_fp = point["name"], addresses(point["gdb"]), addresses(point["fp"])
        if not by_gdb:
            continue
        leaf = by_gdb[0]
        found["gdb"].add(ours.get(name, []), leaf, by_gdb)
        found["fp"].add(
            ours.get(name, []), leaf, by_fp, differs_from_frame_pointers, frame_pointers_reach
        )
        copied = [s for s in dwarf.get(name, []) if s.frames and same(s.frames[0], leaf)]
        found["gdb/dwarf"].add([s for s in copied if reaches(s.frames)], leaf, by_gdb)
        if copied:
            stack = collections.Counter(s.frames for s in copied).most_common(1)[0][0]
            found["dwarf"].add(ours.get(name, []), leaf, [frame + (False,) for frame in stack])
    return found


# "none": printed, not judged: gdb finds no way out of musl, which has neither call-frame
# information nor frame pointers.
ORACLES = {"none": [], "gdb": ["gdb"], "dwarf": ["gdb", "dwarf"], "fp": ["fp"], "go": ["gdb", "fp"]}
SUBJECTS = {
    "openssl": "dwarf",
    "python3": "dwarf",
    "perl": "dwarf",
    "sqlite3": "dwarf",
    "cc1plus": "dwarf",
    "rust-work": "dwarf",
    "throws": "dwarf",
    "threads": "dwarf",
    "plt": "gdb",
    "cfi": "gdb",
    "realign": "gdb",
    "realign-clang": "gdb",
    "realign-each": "gdb",
    "altstack": "gdb",
    "longjmps": "gdb",
    "recurse": "gdb",
    "big-frame": "gdb",
    "vdso": "gdb",
    "threads-static": "gdb",
    "threads-musl": "none",
    "fortran-work": "gdb",
    "go-work": "go",
    "node": "fp",
}
FAST = ["openssl", "python3", "rust-work", "cfi", "go-work"]


def judge(name, oracles):
    beside = oracles
    points, ours, dwarf = observe(name)
    found = compare(points, ours, dwarf)
    for oracle, a in found.items():
        print(
            "# "
            + json.dumps(
                {
                    "program": name,
                    "oracle": oracle,
                    "points": len(points),
                    "compared": a.compared,
                    "same": a.same,
                    "percent": round(a.percent(), 2),
                    "beyond_reach": a.beyond,
                }
            )
        )
        for why, n in a.classes.most_common(12):
            print(f"#   {n} {why}")
    assert len(points) >= POINTS * 3 // 4, f"only {len(points)} points:\n{read('gdb.log')[-2000:]}"
    assert ours, "no sample of a frozen point"
    if WALKER == "frame-pointers":
        oracles = [o for o in oracles if o == "fp"]
        assert (
            "fp" in oracles or found["gdb"].percent() < 99
        ), "walks by frame pointers are taken for whole ones"
    if "dwarf" in beside and found["gdb/dwarf"].compared:
        assert (
            found["gdb/dwarf"].percent() >= BAR
        ), f"the oracles agree in {found['gdb/dwarf'].percent():.2f} % only"
    for oracle in oracles:
        assert found[oracle].compared > 0, f"nothing to compare with {oracle}"
        assert (
            found[oracle].percent() >= BAR
        ), f"{oracle} agrees with {found[oracle].percent():.2f} % of {found[oracle].compared}"


def subject(name, oracles):
    def agrees():
        need_root()
        need_gdb(name)
        judge(name, oracles)

    agrees.__doc__ = (
        f"{name}: {'the same stacks as ' + ' and '.join(oracles) if oracles else 'stacks'} at "
        f"frozen points"
    )
    case(agrees)


for program, kind in SUBJECTS.items():
    if DEPTH != "fast" or program in FAST:
        subject(program, ORACLES[kind])
chosen = sys.argv[1:]
if chosen and "/" in chosen[0]:
    first, step = map(int, chosen[0].split("/"))
    cases[:] = cases[first - 1 :: step]
elif chosen:
    cases[:] = [c for c in cases if c.__doc__.split(":")[0] in chosen]
main()
