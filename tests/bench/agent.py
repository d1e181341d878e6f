#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""agent.py ANDIRON BASELINE PLUGIN…: what the agent costs, as the README's table.

Prints a line per figure, led by "|". Times are printed, never judged, save at
ten times what is aimed at. ANDIRON_BENCH=long takes longer windows, and load at four sample
rates.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import rods
from figures import failed, figure, finish

ANDIRON, BASELINE, PLUGINS = sys.argv[1], sys.argv[2], sys.argv[3:]
INTERVAL = 16  # seconds in which an interval ends
WINDOW = 45 if rods.LONG else INTERVAL
CONFIG = """
pyroscope.ebpf "all" {{
  forward_to       = [profile.file.out.receiver]
  targets_only     = false
  default_target   = {{"service_name" = "host"}}
  demangle         = "full"
  sample_rate      = {rate}
  collect_interval = "15s"
}}
profile.file "out" {{ paths = ["{folder}/out.pb.gz"] }}
"""


@contextlib.contextmanager
def agent(rate, folder):
    config, status = f"{folder}/agent.alloy", f"{folder}/status"
    with open(config, "w") as handle:
        handle.write(CONFIG.format(rate=rate, folder=folder))
    process = subprocess.Popen(
        [ANDIRON, "run", config, "--status", status, "--ledger", f"{folder}/ledger.json"],
        stderr=subprocess.PIPE,
        text=True,
    )

    def live():
        if process.poll() is not None:
            raise RuntimeError(process.stderr.read())
        with contextlib.suppress(OSError):
            return (
                '"pyroscope.ebpf.all"' in (text := rods.ask(status, "/health"))
                and "unhealthy" not in text
                and "unknown" not in text
            )

    rods.until(live)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def starts():
    """Of 7 starts, from exec of the agent to exec of the command that waits for live sampling:
    the median."""
    all_ms = []
    for _ in range(7):
        with tempfile.TemporaryDirectory() as folder:
            began = time.time_ns()
            out = subprocess.run(
                [
                    ANDIRON,
                    "record",
                    "-F",
                    "97",
                    "-o",
                    f"{folder}/x.folded",
                    "--",
                    "date",  # starts in a millisecond, and waits for little where CPUs are busy
                    "+%s%N",
                ],
                capture_output=True,
                text=True,
                check=True,
            )
            all_ms.append((int(out.stdout) - began) / 1e6)
    return sorted(all_ms)[3]


def start_up():
    what = "exec to live sampling (median of 7, the command's own start included)"
    figure(what, starts(), "ms", 100, "330; 3,600")
    with rods.queue(10):
        figure(f"{what}, 10 loops on each CPU", starts(), "ms", 300)


def idle():
    """Of the windows the one in which the rest of the host did least, whatever the agent cost."""
    with tempfile.TemporaryDirectory() as folder, agent(97, folder) as process:
        rods.window(INTERVAL)
        windows = []
        for _ in range(3 if rods.LONG else 1):
            began, cpu, busy = time.monotonic(), rods.cpu_seconds(process.pid), rods.busy_seconds()
            rods.window(WINDOW)
            wall = time.monotonic() - began
            share = (rods.cpu_seconds(process.pid) - cpu) / wall * 100
            windows.append((share, (rods.busy_seconds() - busy) / wall * 100 - share))
        share, rest = min(windows, key=lambda window: window[1])
        if rest < 10:
            figure("idle host, 97 Hz: agent CPU", share, "% of a core", 0.05, "1.1")
        else:  # what a busy host costs says nothing of an idle one
            figure(f"host with {rest:.0f} % of a core busy, 97 Hz: agent CPU", share, "% of a core")


def memory():
    with tempfile.TemporaryDirectory() as folder, rods.crowd(200), agent(97, folder) as process:
        rods.window(INTERVAL)
        _, maps = rods.bpf_objects(process.pid)
        figure("PSS with 200 processes", rods.pss_kb(process.pid) / 1024, "MB", 24, "50–70")
        figure("BPF maps held", sum(maps.values()) / 2**20, "MB", 12, "36–105")


def baseline():
    """ns per sample of a frame-pointer walk of both stacks into stack maps, counted: the row to
    compare with."""
    out = subprocess.run([BASELINE, "99", "8"], capture_output=True, text=True, check=True).stdout
    return float(out.split()[0])


def under_load():
    for rate in (19, 49, 97, 100):
        with tempfile.TemporaryDirectory() as folder:
            with rods.load(), rods.bpf_stats():
                with agent(rate, folder) as process:
                    rods.window(INTERVAL)
                    programs, _ = rods.bpf_objects(process.pid)
                    began, cpu = time.monotonic(), rods.cpu_seconds(process.pid)
                    rods.window(WINDOW)
                    wall = time.monotonic() - began
                    ns, runs = rods.sampling_ns(programs, rods.bpf_objects(process.pid)[0])
                    figure(
                        f"{rate} Hz, mixed load: agent CPU",
                        (rods.cpu_seconds(process.pid) - cpu) / wall * 100,
                        "% of a core",
                        0.7 if rate == 97 else None,
                        "1.3–2.8" if rate == 97 else "",
                    )
                    if rate == 97:
                        row = baseline()
                        figure("97 Hz: BPF time per sample", ns, "ns", None, "41,600–45,400")
                        figure(
                            "97 Hz: the same ÷ frame-pointer row of the same minute",
                            ns / row,
                            "×",
                            1.0,
                            "2.4–4.0",
                        )
                    figure(f"{rate} Hz: BPF time", ns * runs / wall / 1e7, "% of a core")
            with open(f"{folder}/ledger.json") as handle:
                ledger = json.load(handle)
            writer = ledger["writers"]["profile.file.out"]
            why = ", ".join(f"{n} {reason}" for reason, n in writer["dropped"].items())
            figure(
                f"{rate} Hz: samples taken but not written{' (' + why + ')' if why else ''}",
                ledger["taken"] - writer["delivered"],
                "samples",
                None,
                "7–24 % of all",
            )
            missing = ledger["taken"] - writer["delivered"] - sum(writer["dropped"].values())
            if missing:
                failed.append(f"{missing} samples have no account at {rate} Hz")


def sizes():
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in [ANDIRON] + PLUGINS:
            subprocess.run(["strip", "-o", f"{folder}/x", path], check=True)
            total += os.path.getsize(f"{folder}/x")
    figure(
        "andiron and all plugins, stripped",
        total / 1e6,
        "MB",
        3,
        "19–22 (31 with symbols); Alloy 285–516",
    )


for measure in (sizes, start_up, idle, memory):
    measure()
if rods.LONG:  # unwinding.py has 97 Hz under load, pushing
    under_load()
finish()
