#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole stacks: the programs of this machine and of programs/ under `andiron record`, judged by
addresses.

A stack is whole when its outermost frame lies in a function where threads begin (entries.py) and no
marker frame follows. All programs run at once, each for so many CPU seconds, in one recording;
beside it perf walks the same programs by frame pointers and, where there is time, by DWARF over
copied stacks.

With few stacks a program the first moment, in which its files are read, would weigh many times what
it does over 10,000: below "all" each program therefore runs for a moment beforehand under another
name. What is whole of that moment is told as "first moments", and judged by brief.py.

UNWIND_DEPTH: fast (default), full or all (at least 10,000 stacks a program).
UNWIND_WALKER: tables, or frame-pointers, under which the walker is shown to be judged as it must
be.
"""

import collections
import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile

import entries
import perf
import programs as judged
from chance import reaches
from stacks import Profile, perf_stacks
from tap import ANDIRON, environment

DEPTH = os.environ.get("UNWIND_DEPTH", "fast")
WALKER = os.environ.get("UNWIND_WALKER", "tables")
SECONDS = {"fast": 0.3, "full": 3, "all": 12}[DEPTH]
ENOUGH = {"fast": 100, "full": 1000, "all": 10000}[DEPTH]
RATE, DWARF_RATE = 999, {"full": 49, "all": 19}.get(DEPTH)
ALL_AIM, PROGRAM_AIM = 99.9, 99.0  # % of the stacks, however few there are: see chance.py
# Code that nothing describes: its stacks have to say so, and are not counted with the others.
UNDESCRIBED = {"node": "the runtime's built-in functions have no call-frame information"}


def record(programs):
    """Runs all of them at once under the recorder; its own stacks by process name."""
    with open("all.sh", "w", encoding="utf-8") as script:
        if DEPTH != "all":
            for command in judged.beforehand(os.path.abspath("beforehand"), set(programs)):
                script.write(f"{shlex.join(command)} >/dev/null 2>&1 </dev/null\n")
        for i, command in enumerate(programs.values()):
            script.write(
                f"{shlex.join(command)} >/dev/null 2>&1 </dev/null || echo {i} >>failed &\n"
            )
        script.write("wait\n")
    done = subprocess.run(
        [
            ANDIRON,
            "record",
            "-F",
            str(RATE),
            "-o",
            "all.pb.gz",
            "--ledger",
            "ledger.json",
            "--",
            "sh",
            "all.sh",
        ],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=1500,
    )
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    failed = []
    if os.path.exists("failed"):
        with open("failed", encoding="utf-8") as listed:
            failed = [list(programs)[int(i)] for i in listed.read().split()]
    return Profile("all.pb.gz"), failed


class Tally:
    """What is counted of one program by one walker."""

    def __init__(self):
        self.n = self.whole = self.lies = 0
        self.depths, self.why = collections.Counter(), collections.Counter()

    def add(self, stack):
        self.n += stack.weight
        self.depths[len(stack.frames)] += stack.weight
        if entries.whole(stack):
            self.whole += stack.weight
        elif stack.marker:
            self.why[stack.marker] += stack.weight
        else:
            self.lies += stack.weight
            file, address = stack.frames[-1]
            self.why[f"looks whole at {os.path.basename(file) or '?'}+{address:#x}"] += stack.weight

    def percent(self):
        return 100 * self.whole / self.n if self.n else 0.0

    def depth(self, part):
        seen = 0
        for depth in sorted(self.depths):
            seen += self.depths[depth]
            if seen >= part * self.n:
                return depth
        return 0


def tally(stacks, names):
    tallies = collections.defaultdict(Tally)
    for stack in stacks:
        if stack.process in names:
            tallies[stack.process].add(stack)
    return tallies


def print_table(names, ours, beside):
    print(
        f"# {'program':16}{'stacks':>8}{'whole %':>9}{'p50':>5}{'p90':>5}{'max':>6}"
        + "".join(f"{name + ' n, %':>18}" for name in beside)
        + "  commonest other ends"
    )
    for name in names:
        t = ours[name]
        print(
            f"# {name:16}{t.n:8}{t.percent():9.2f}{t.depth(.5):5}{t.depth(.9):5}{t.depth(1):6}"
            + "".join(f"{b[name].n:9}{b[name].percent():9.1f}" for b in beside.values())
            + "  "
            + ", ".join(f"{n} {why}" for why, n in t.why.most_common(3))
        )
        print(
            "# "
            + json.dumps(
                {
                    "program": name,
                    "stacks": t.n,
                    "whole_percent": round(t.percent(), 3),
                    "lies": t.lies,
                    **{f"{b}_percent": round(beside[b][name].percent(), 1) for b in beside},
                }
            )
        )


def verdicts(names, ours, failed):
    """(passed, title, why) for each program and for all."""
    described = [n for n in names if n not in UNDESCRIBED]
    total, whole = sum(ours[n].n for n in described), sum(ours[n].whole for n in described)
    for name in names:
        t = ours[name]
        enough = t.n >= ENOUGH and name not in failed
        if WALKER == "frame-pointers":
            yield enough, f"{name} is sampled", (
                f"{t.n} stacks, {'failed' if name in failed else 'ended well'}"
            )
        elif name in UNDESCRIBED:
            yield enough and t.lies <= t.n / 100, (
                f"{name}: {UNDESCRIBED[name]}, and stacks say so"
            ), (f"{t.lies} of {t.n} do not")
        else:
            yield enough and reaches(
                t.whole, t.n, PROGRAM_AIM
            ), f"{name}: whole stacks", f"{t.percent():.2f} % of {t.n}"
    overall = 100 * whole / max(total, 1)
    if WALKER == "frame-pointers":
        blind = [n for n in ("openssl", "python3", "sqlite3") if n in names]
        yield all(
            ours[n].percent() < 5 for n in blind
        ), "without frame pointers, walks by them are told to be short", str(
            {n: ours[n].percent() for n in blind}
        )
        yield "go-work" not in names or ours[
            "go-work"
        ].percent() > 95, "with frame pointers they are told to be whole", (
            f"{ours['go-work'].percent():.1f} %"
        )
    else:
        yield reaches(
            whole, total, ALL_AIM
        ), "all programs: whole stacks", f"{overall:.3f} % of {total}"
        total, lies = sum(ours[n].n for n in names), sum(ours[n].lies for n in names)
        yield lies <= total / 1000, "a short stack never looks whole", f"{lies} of {total} do"


def main():
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root: run it by `sudo ./check`")
        return 0
    programs = judged.all_for(SECONDS, DEPTH == "fast")
    with tempfile.TemporaryDirectory(prefix="unwind-") as folder, contextlib.ExitStack() as stack:
        os.chdir(folder)
        stack.callback(os.chdir, "/")
        beside = {}
        with contextlib.ExitStack() as perfs:
            if perf.HERE:
                beside["fp"] = perfs.enter_context(perf.perf("fp", 97, "-a", "--call-graph", "fp"))
                if DWARF_RATE:
                    beside["dwarf"] = perfs.enter_context(
                        perf.perf("dwarf", DWARF_RATE, "-a", "--call-graph", "dwarf,16384")
                    )
            profile, failed = record(programs)
        ours = tally(profile.stacks(), programs)
        beside = {name: tally(perf_stacks(f"{name}.data"), programs) for name in beside}
        with open("ledger.json", encoding="utf-8") as ledger:
            print("# ledger", json.dumps(json.load(ledger)))
        print_table(programs, ours, beside)
        first = Tally()
        for stacks in profile.stacks():
            if stacks.process.startswith("_"):
                first.add(stacks)
        print(
            f"# first moments: {first.n} stacks, {first.percent():.2f} % whole; "
            f"{first.why.most_common(4)}"
        )
    found = list(verdicts(list(programs), ours, failed))
    print(f"1..{len(found)}")
    for number, (passed, title, why) in enumerate(found, 1):
        print(f"{'ok' if passed else 'not ok'} {number} - {title}")
        if not passed:
            print(f"# {why}")
    return not all(passed for passed, _, _ in found)


sys.exit(main())
