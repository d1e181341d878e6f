#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Short lives: what is kept of processes that use 5, 20 and 100 ms of CPU each, and of a storm of
forks.

Each kind has a name of its own. count.bpf.c counts in the kernel, by itself, how many samples
there are of each name; the agent's profile has to have them under that name, with whole stacks. The
two do not sample at the same instants, so the numbers of samples differ by chance: what 5 standard
deviations, which is one run in some millions, explain is no loss. Whether a stack is whole is not
left to chance. The count has another rate than the agent: at the same one the two keep their
distance, and the count would see the agent work after each of its samples, or never.

UNWIND_DEPTH: fast (default; more samples a second), full or all. UNWIND_WALKER: tables or
frame-pointers.
"""

import contextlib
import json
import math
import os
import shutil
import subprocess

import entries
from running import PATIENT, Agent
from stacks import Profile
from tap import DEADLINE, case, main, need_root, write

COUNT, PROGRAMS = os.environ["COUNT"], os.environ["PROGRAMS"]
DEPTH = os.environ.get("UNWIND_DEPTH", "fast")
WALKER = os.environ.get("UNWIND_WALKER", "tables")
RATE = 999 if DEPTH == "fast" else 97
COUNT_RATE = RATE + 4
SECONDS = {"fast": 4, "full": 32, "all": 150}[DEPTH]  # of CPU, for each kind
BARS = {5: 80, 20: 95, 100: 99}
STORM_BAR = 95

CONFIG = f"""
pyroscope.ebpf "b" {{
  forward_to       = [profile.file.out.receiver]
  targets_only     = false
  default_target   = {{"service_name" = "host"}}
  sample_rate      = {RATE}
  collect_interval = "2s"
  comm             = "label"
}}
profile.file "out" {{ paths = ["out.pb.gz"] }}
"""


@contextlib.contextmanager
def counting():
    """Yields a dictionary that holds the counts by name after the block."""
    process = subprocess.Popen(
        [COUNT, str(COUNT_RATE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    found = {}
    try:
        assert process.stdout.readline() == "counting\n", "the count does not begin"
        yield found
        process.stdin.close()
        for line in process.stdout:
            n, _, name = line.rstrip("\n").partition(" ")
            found[name] = int(n) * RATE / COUNT_RATE
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def observe(*commands):
    """Runs them at once beside the agent and the count: (profile, counts, what they wrote)."""
    with Agent(write("b.alloy", CONFIG), *PATIENT) as agent:
        agent.until_metric("andiron_samples_taken_total")
        with counting() as counts:
            running = [subprocess.Popen(c, stdout=subprocess.PIPE, text=True) for c in commands]
            wrote = [p.communicate(timeout=10 * DEADLINE)[0] for p in running]
        assert all(p.returncode == 0 for p in running), [p.returncode for p in running]
        agent.stop()
        print(
            "\n".join(
                "# " + line
                for line in agent.text().splitlines()
                if line.startswith("samples: ") or " warn" in line
            )
        )
    return Profile("out.pb.gz"), counts, wrote


def kept(profile, name, counted, right=lambda frames: True):
    """% of the counted samples that are there with a whole stack, and how that comes about."""
    there = whole = bare = 0
    why = {}
    for weight, labels, locations in profile.samples:
        if labels.get("comm") != name:
            continue
        there += weight
        if any(file == "[andiron]" for file, _, _ in locations):
            marker = next(n for f, _, n in locations if f == "[andiron]")
            why[marker] = why.get(marker, 0) + weight
        elif all(file.startswith("[kernel") for file, _, _ in locations):
            bare += weight  # before there is a program, or after: nothing of it is missing
        else:
            user = [(f, a) for f, a, _ in locations if not f.startswith("[kernel")]
            good = entries.is_entry(user[-1]) and right(user)
            whole += weight * good
            if not good:
                end = f"{os.path.basename(user[-1][0]) or '?'}+{user[-1][1]:#x}"
                why[end] = why.get(end, 0) + weight
    chance = 5 * math.sqrt(1 / max(there, 1) + 1 / max(counted, 1))
    named = min(1.0, there / max(counted, 1) + chance)
    share = 100 * named * (whole + bare) / max(there, 1)
    print(
        "# "
        + json.dumps(
            {
                "name": name,
                "rate": RATE,
                "counted": round(counted),
                "there": there,
                "whole": whole,
                "kernel_only": bare,
                "chance_percent": round(100 * chance, 1),
                "kept_percent": round(share, 2),
            }
        )
    )
    for end, n in sorted(why.items(), key=lambda x: -x[1])[:4]:
        print(f"#   {n} {end}")
    return share


@case
def short_lives_are_kept():
    """Of processes that use 5, 20 and 100 ms, as many samples are kept with whole stacks as are
    wanted."""
    need_root()
    for ms in BARS:
        shutil.copy(f"{PROGRAMS}/brief", f"brief-{ms}")
    os.environ["PATH"] = os.getcwd() + ":" + os.environ["PATH"]
    profile, counts, _ = observe(
        *(
            [f"{PROGRAMS}/repeat", str(SECONDS), os.path.abspath(f"brief-{ms}"), str(ms / 1000)]
            for ms in BARS
        )
    )
    shares = {ms: kept(profile, f"brief-{ms}", counts.get(f"brief-{ms}", 0)) for ms in BARS}
    for ms in BARS:
        assert (
            counts.get(f"brief-{ms}", 0) > SECONDS * RATE / 2
        ), f"the count saw {counts.get(f'brief-{ms}')} samples of brief-{ms}"
    if WALKER == "frame-pointers":
        assert all(share < BARS[ms] for ms, share in shares.items()), shares
        return
    short = {ms: share for ms, share in shares.items() if share < BARS[ms]}
    assert not short, f"kept % by ms of CPU: {short}, wanted {BARS}"


@case
def storms_are_attributed():
    """In a storm of 1,000 processes a second, or as many as the machine can, 95 % of CPU time is
    told rightly."""
    need_root()
    profile, counts, wrote = observe([f"{PROGRAMS}/storm", str(SECONDS)])
    n, seconds = (float(w) for w in wrote[0].split())
    print(f"# {n / seconds:.0f} processes a second")
    where = {name: (a, a + size) for a, size, name in entries.symbols(f"{PROGRAMS}/storm")}
    total = right = 0
    for kind in ("a", "b"):
        low, high = where[f"storm_{kind}"]
        count = counts.get(f"storm-{kind}", 0)
        inside = lambda frames, low=low, high=high: any(
            low <= a < high for f, a in frames if f.endswith("/storm")
        ) or not any(
            "storm_" in name
            for name, (s, e) in where.items()
            for f, a in frames
            if f.endswith("/storm") and s <= a < e
        )
        total += count
        right += count * kept(profile, f"storm-{kind}", count, inside) / 100
    share = 100 * right / max(total, 1)
    assert total > 0, "nothing was counted"
    if WALKER == "frame-pointers":
        assert share < STORM_BAR, share
        return
    assert share >= STORM_BAR, f"{share:.1f} % of {total} samples"


main()
