#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""unwinding.py ANDIRON BASELINE: what whole stacks cost, all in one run of a few minutes.

Eight different programs and more keep the machine busy; the agent samples all of it at 97 Hz, names
frames from symbol tables, collects every 15 s and pushes to a server on this machine. Its CPU time
is that of the second minute, the other figures are of the minutes after; of an interval each where
ANDIRON_BENCH is not `long`. The measure of BPF time is
a plain profiler's walk of both stacks by frame pointers, run in the same minutes:
tests/bpf/baseline.bpf.c, and where there is bpftrace, what that makes of `@[ustack, kstack] =
count()`. They run at other rates than ours: at the same one the two keep their distance, and the
one that comes second finds the caches warm.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import entries
import programs
import rods
from agents import EBPF, FILE, PUSH, agent, server
from figures import failed, figure, finish
from stacks import Profile

ANDIRON, BASELINE = sys.argv[1:]
WARM, WINDOW = (60, 60) if rods.LONG else (16, 15)
BASELINE_SECONDS, STARTS = (10, 5) if rods.LONG else (8, 3)
FOREVER = "100000"


def loads():
    """Native without frame pointers, hand-written assembly, a compiler, an SQL engine, Python,
    Perl, Go, Rust, node, …"""
    found = [
        ["openssl", "speed", "-seconds", "600", "sha256"],
        ["sh", "-c", "exec gzip -9 </dev/urandom >/dev/null"],
        rods.LOADS["gcc"],
        programs.sql(2_000_000_000),
    ]
    for name, command in programs.system(True):
        if name in ("python3", "perl", "node"):
            found.append([FOREVER if w == "%s" else w for w in command])
    own = dict(programs.own())
    return found + [
        [own[name], FOREVER]
        for name in ("rust-work", "go-work", "throws", "syscalls")
        if name in own
    ]


def baseline():
    out = subprocess.run(
        [BASELINE, "101", str(BASELINE_SECONDS)], capture_output=True, text=True, check=True
    ).stdout
    return tuple(map(float, out.split()))


def by_bpftrace():
    """As baseline(), or None where there is no bpftrace."""
    if not shutil.which("bpftrace"):
        return None
    process = subprocess.Popen(
        ["bpftrace", "-e", "profile:hz:103 { @[ustack, kstack] = count(); }"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        rods.until(lambda: rods.sampling_ns({}, rods.bpf_objects(process.pid)[0])[1])
        before = rods.bpf_objects(process.pid)[0]
        rods.window(BASELINE_SECONDS)
        return rods.sampling_ns(before, rods.bpf_objects(process.pid)[0])
    finally:
        process.kill()  # what it counted would be printed otherwise
        process.wait()


def cpu_percent(pid):
    """Of a core, over a minute that has no other profiler in it: one that comes or goes changes the
    kernel's own symbols, which are read again then."""
    began, before = time.monotonic(), rods.cpu_seconds(pid)
    rods.window(WINDOW)
    return (rods.cpu_seconds(pid) - before) / (time.monotonic() - began) * 100


def mean(rows):
    return sum(n * r for n, r in rows) / sum(r for _, r in rows)


def pushing():
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        url = stack.enter_context(server())
        stack.enter_context(rods.load(loads()))
        config = EBPF.format(
            to="pyroscope.write.server.receiver", interval="15s", comm="none", more=""
        ) + PUSH.format(url=url)
        with agent(ANDIRON, folder, config) as process:
            rods.window(WARM)
            figure(
                "97 Hz, mixed load, pushing: agent CPU",
                cpu_percent(process.pid),
                "% of a core",
                0.7,
                "1.3–2.8",
            )
            stack.enter_context(rods.bpf_stats())
            began, before = time.monotonic(), rods.bpf_objects(process.pid)[0]
            rows, traced = [], []
            while time.monotonic() - began < WINDOW:
                rows.append(baseline())
                traced.append(by_bpftrace())
                rods.window(5)
            wall = time.monotonic() - began
            programs_now, maps = rods.bpf_objects(process.pid)
            ns, runs = rods.sampling_ns(before, programs_now)
            figure("97 Hz: BPF time per sample", ns, "ns", None, "41,600–45,400")
            figure(
                "97 Hz: the same ÷ frame-pointer row of the same minutes",
                ns / mean(rows),
                "×",
                1.0,
                "2.4–4.0",
            )
            if all(traced):
                figure(
                    "97 Hz: the same ÷ that row as bpftrace writes it",
                    ns / mean(traced),
                    "×",
                    1.0,
                    "2.4–4.0",
                )
            figure(
                "97 Hz: BPF time of sampling",
                ns * runs / wall / 1e7,
                "% of a core",
                None,
                "0.8–0.9",
            )
            others = sum(
                a[1] - before.get(i, (0, 0, 0))[1] for i, a in programs_now.items() if a[0] != 7
            )
            figure("BPF time of everything else", others / wall / 1e7, "% of a core")
            pss = rods.pss_kb(process.pid) / 1024
            held, own = sum(maps.values()) / 2**20, rods.own_mb(process.pid)
            figure("PSS", pss, "MB", None, "50–70")
            figure("BPF maps held", held, "MB", None, "36–105")
            figure("PSS and maps, mapped ones once", own + held, "MB", 48, "96–185")
            figure(
                "verified instructions of all programs",
                rods.verified_instructions(process.pid),
                "",
                100_000,
                "27,600; 2,040,000",
            )
        with open(f"{folder}/ledger.json", encoding="utf-8") as file:
            ledger = json.load(file)
    writer = ledger["writers"]["pyroscope.write.server"]
    figure(
        "samples taken but not delivered",
        ledger["taken"] - writer["delivered"],
        f"of {ledger['taken']}",
        None,
        "7–24 %",
    )
    if ledger["taken"] != sum(
        writer[k] for k in ("delivered", "spooled", "uncertain", "in_flight")
    ) + sum(writer["dropped"].values()):
        failed.append("samples have no account")


def first_whole_stack():
    """ms from the agent's exec to the first sample that has a whole stack, by the sample's own
    clock."""
    taken = []
    stamp = dict(programs.built())["stamp"]
    with rods.load([[stamp, FOREVER]] * (os.cpu_count() or 1)):
        for _ in range(STARTS):
            with tempfile.TemporaryDirectory() as folder:
                out = f"{folder}/out.pb.gz"
                config = EBPF.format(
                    to="profile.file.out.receiver", interval="1s", comm="label", more=""
                ) + FILE.format(path=out)
                began = time.clock_gettime_ns(time.CLOCK_MONOTONIC) / 1e6
                with agent(ANDIRON, folder, config):
                    rods.window(2.5)
                times = [
                    float(s.comm[2:]) - began
                    for s in Profile(out).stacks()
                    if s.comm.startswith("t-") and entries.whole(s)
                ]
            if times:
                taken.append(min(times))
    if taken:
        figure(
            f"exec to the first whole stack (median of {len(taken)})",
            sorted(taken)[len(taken) // 2],
            "ms",
            300,
            "330; 3,600–50,000",
        )
    elif os.environ.get("UNWIND_WALKER") != "frame-pointers":
        failed.append("no whole stack within 2.5 s")


first_whole_stack()
pushing()
finish()
