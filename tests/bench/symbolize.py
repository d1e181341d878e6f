#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""symbolize.py ANDIRON FRAMES SOURCE_DIR: what names, lines and inlined calls cost.

A program of 256 MB or more with debug information: 160 copies of a real unit, each with symbols of
its own, linked. Then
  - the first look at it: time and anonymous memory, its pages not in the cache;
  - addresses a second, beside llvm-symbolizer and eu-addr2line, the same addresses in one run;
  - the CPU of an agent and its parser with lines and inlined calls, less that without, on a busy
    machine at a 15 s interval: pairs one after
    the other, each begun the other way round than the last, since the machine changes more than the
    difference is.
"""

import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import rods
from figures import failed, figure, finish

ANDIRON, FRAMES, SOURCE = sys.argv[1:4]
COPIES = 160
PAIRS = 3 if rods.LONG else 1
ALONE = {**os.environ, "DEBUGINFOD_URLS": ""}


def run(*command, **options):
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env=ALONE, **options
    ).stdout


def build(folder):
    """A unit, and many under other names: the debug information of each is its own."""
    run(
        "g++",
        "-std=c++17",
        "-O2",
        "-g",
        "-DPART=1",
        "-c",
        os.path.join(SOURCE, "program.cc"),
        "-o",
        "unit.o",
        cwd=folder,
    )
    names, defined = [], []
    for i in range(COPIES):
        run("objcopy", f"--prefix-symbols=u{i}_", "unit.o", f"{i}.o", cwd=folder)
        names.append(f"{i}.o")
        defined += ["--defsym", f"u{i}___dso_handle=0"]
    # It is only read.
    run(
        "ld",
        "-static",
        "--unresolved-symbols=ignore-all",
        "-e",
        "0",
        *defined,
        "-o",
        "large",
        *names,
        cwd=folder,
    )
    return os.path.join(folder, "large")


def text_of(path):
    m = re.search(
        r"\] \.text\s+PROGBITS\s+([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", run("readelf", "-SW", path)
    )
    return int(m[1], 16), int(m[2], 16)


def addresses(path, n):
    """Rising, as a batch has them. Profiles are of few places: these lie in a tenth of the text."""
    start, size = text_of(path)
    rng = random.Random(7)
    return "".join(
        f"0x{a:x}\n" for a in sorted(start + rng.randrange(size // 10) for _ in range(n))
    )


def forget(path):
    """The file's pages leave the cache."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def cpu_of(command, asked):
    """CPU seconds: the machine is shared."""
    before = os.times()
    subprocess.run(
        command,
        input=asked,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        env=ALONE,
    )
    after = os.times()
    return (
        after.children_user + after.children_system - before.children_user - before.children_system
    )


def first_look(path):
    forget(path)
    asked = addresses(path, 200)
    cold = cpu_of([FRAMES, "--quiet", path], asked)
    said = run(FRAMES, "--quiet", path, input=asked)
    figure(
        f"a cold binary of {os.path.getsize(path) / 2 ** 20:.0f} MB with DWARF, 200 addresses: "
        f"CPU time",
        cold,
        "s",
        1,
    )
    figure(
        "the same: memory, peak resident",
        float(re.search(r"peak resident ([\d.]+)", said)[1]),
        "MB",
        60,
    )


def throughput(path):
    asked = addresses(path, 20000)
    n = asked.count("\n")
    tools = {
        "andiron": [FRAMES, "--quiet", path],
        "llvm-symbolizer": ["llvm-symbolizer", "--inlines", "--no-demangle", "--obj=" + path],
    }
    for name, command in tools.items():
        if os.path.exists(command[0]) or shutil.which(command[0]):
            figure(
                f"addresses a CPU second, the first look included: {name}",
                n / cpu_of(command, asked),
                "/s",
            )
    if shutil.which("eu-addr2line"):
        # It searches a unit from its start for each: fewer are enough.
        few = "".join(asked.splitlines(True)[::400])
        figure(
            "the same: eu-addr2line",
            few.count("\n") / cpu_of(["eu-addr2line", "-f", "-i", "-e", path], few),
            "/s",
        )


CONFIG = """
pyroscope.ebpf "all" {{
  forward_to       = [profile.symbolize.s.receiver]
  targets_only     = false
  default_target   = {{"service_name" = "host"}}
  collect_interval = "15s"
}}
profile.symbolize "s" {{
  forward_to = [profile.file.out.receiver]
  lines      = {on}
  inlines    = {on}
}}
profile.file "out" {{ paths = ["{folder}/out.pb.gz"] }}
"""


def tree_cpu(pid):
    """The agent and the processes that it has started."""
    found = run("ps", "--ppid", str(pid), "-o", "pid=").split()
    return rods.cpu_seconds(pid) + sum(rods.cpu_seconds(p) for p in found)


def named(status):
    """Whether frames have got names."""
    try:
        return re.search(r"frames_resolved_total\{[^}]*\} [1-9]", rods.ask(status, "/metrics"))
    except OSError:
        return None


def agent_cpu(on, seconds=30 if rods.LONG else 15):
    """% of a core over whole intervals; the first one, which has everything to learn, is left
    out."""
    with tempfile.TemporaryDirectory() as folder:
        return agent_cpu_in(folder, on, seconds)


def agent_cpu_in(folder, on, seconds):
    config, status = f"{folder}/agent.alloy", f"{folder}/status"
    with open(config, "w") as f:
        f.write(CONFIG.format(on=on, folder=folder))
    process = subprocess.Popen(
        [ANDIRON, "run", config, "--status", status], stderr=subprocess.DEVNULL
    )
    try:
        rods.until(lambda: named(status) or None, 120, 0.1)
        before, began = tree_cpu(process.pid), time.monotonic()
        rods.until(lambda: time.monotonic() - began >= seconds or None, seconds + 30)
        return (tree_cpu(process.pid) - before) / (time.monotonic() - began) * 100
    finally:
        process.terminate()
        process.wait()


def lines_cost():
    with_lines, without = [], []
    for i in range(PAIRS):
        for on in (i % 2 == 0, i % 2 == 1):
            (with_lines if on else without).append(agent_cpu("true" if on else "false"))
    more = [a - b for a, b in zip(with_lines, without)]
    what = "agent and parser on a busy machine at a 15 s interval"
    figure(
        f"{what}: CPU with lines and inlined calls, median of {PAIRS} runs",
        statistics.median(with_lines),
        "% of a core",
    )
    figure("the same without", statistics.median(without), "% of a core")
    figure(
        f"the difference, median of {PAIRS} pairs",
        statistics.median(more),
        "% of a core",
        0.5,
        signed=True,
    )
    figure("the same: the least", min(more), "% of a core", signed=True)
    figure("the same: the greatest", max(more), "% of a core", signed=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = build(folder)
        if os.path.getsize(path) < 256 << 20:
            failed.append("the program is too small")
        first_look(path)
        throughput(path)
        if os.geteuid() == 0:
            spin = os.path.join(folder, "spin")
            run(
                "g++",
                "-std=c++17",
                "-O2",
                "-g",
                "-DPART=0",
                os.path.join(SOURCE, "program.cc"),
                "-c",
                "-o",
                "0.o",
                cwd=folder,
            )
            run(
                "g++",
                "-std=c++17",
                "-O2",
                "-g",
                "-DPART=1",
                os.path.join(SOURCE, "program.cc"),
                "0.o",
                "-o",
                spin,
                cwd=folder,
            )
            loads = [
                subprocess.Popen(
                    ["sh", "-c", f"while :; do {spin}; done"], stdout=subprocess.DEVNULL
                )
                for _ in range(2)
            ]
            try:
                lines_cost()
            finally:
                for load in loads:
                    load.kill()
                    load.wait()
    finish()


main()
