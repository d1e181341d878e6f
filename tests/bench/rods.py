# SPDX-License-Identifier: Apache-2.0
"""The measuring rods: CPU, memory and BPF time of a running agent, and loads to measure under.

Everything is read from /proc, so a rod costs the same whoever is measured.
CPU is user plus system time in % of one core; BPF time comes on top of it.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

TICK = os.sysconf("SC_CLK_TCK")
CPUS = os.cpu_count()
STATS = "/proc/sys/kernel/bpf_stats_enabled"
# One short window for each figure, or the windows of docs/figures.md.
LONG = os.environ.get("ANDIRON_BENCH") == "long"
PR_SET_PDEATHSIG = 1

# A bench that is ended, or whose starter is, takes its loads with it: they would be busy for ever.
signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def busy_seconds():
    """CPU time of everything on the machine."""
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(
            int, stat.readline().split()[1:9]
        )
    return (user + nice + system + irq + softirq + steal) / TICK


def children(pid):
    """The processes that it has started."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            found += map(int, file.read().split())
    return found


def pss_kb(pid):
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        return next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))


def bpf_objects(pid):
    """({program id: (type, run ns, runs)}, {map id: bytes}) that the process holds."""
    programs, maps = {}, {}
    for name in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{name}") as info:
                fields = dict(line.split(":", 1) for line in info if ":" in line)
        except OSError:
            continue
        fields = {key: value.strip() for key, value in fields.items()}
        if "prog_id" in fields and "run_cnt" in fields:
            programs[fields["prog_id"]] = (
                int(fields["prog_type"]),
                int(fields["run_time_ns"]),
                int(fields["run_cnt"]),
            )
        if "map_id" in fields:
            maps[fields["map_id"]] = int(fields["memlock"])
    return programs, maps


def held_mb(pid):
    """All its BPF maps."""
    return sum(bpf_objects(pid)[1].values()) / 2**20


def own_mb(pid):
    """PSS without maps that the process has mapped: held_mb has them already."""
    kb, is_map = 0, False
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as smaps:
        for line in smaps:
            word = line.split()[0]
            if "-" in word and not word.endswith(":"):
                is_map = "bpf-map" in line
            elif word == "Pss:" and not is_map:
                kb += int(line.split()[1])
    return kb / 1024


def verified_instructions(pid):
    """What the verifier went through for all programs that the process holds."""
    counts = {}
    for name in os.listdir(f"/proc/{pid}/fdinfo"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/fdinfo/{name}") as info:
            fields = dict(line.split(":", 1) for line in info if ":" in line)
            if "prog_id" in fields:
                counts[fields["prog_id"]] = int(fields.get("verified_insns", 0))
    return sum(counts.values())


def sampling_ns(before, after, kind=7):
    """ns per sample of the perf_event programs between two readings, and the samples: runs of the
    one that takes most of the time, for there may be others, run by hand, that sample nothing."""
    spent = [
        (a[1] - before.get(i, (0, 0, 0))[1], a[2] - before.get(i, (0, 0, 0))[2])
        for i, a in after.items()
        if a[0] == kind
    ]
    _, runs = max(spent, default=(0, 0))
    return (sum(ns for ns, _ in spent) / runs if runs else 0.0), runs


@contextlib.contextmanager
def bpf_stats():
    """Run-time counters of BPF programs on, for the block."""
    with open(STATS) as handle:
        old = handle.read()
    with open(STATS, "w") as handle:
        handle.write("1")
    try:
        yield
    finally:
        with open(STATS, "w") as handle:
            handle.write(old)


def until(condition, seconds=200, every=0.002):
    """Polls a condition; its truthy value, or an error when time is up."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(every)  # poll
    raise TimeoutError(f"waited {seconds} s in vain for {condition}")


def window(seconds):
    """Lets a measuring window pass; the load is the subject, not a condition."""
    time.sleep(seconds)  # poll: the window itself


def ask(path, what):
    """GET over the agent's status socket."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(path)
        s.sendall(f"GET {what} HTTP/1.0\r\n\r\n".encode())
        chunks = []
        while chunk := s.recv(65536):
            chunks.append(chunk)
    return b"".join(chunks).decode().split("\r\n\r\n", 1)[-1]


LOADS = {
    "openssl": ["openssl", "speed", "-seconds", "600", "sha256"],
    "python3": [
        "python3",
        "-c",
        "d={}\nwhile True:\n d[len(d)%999]=sorted(range(999), key=lambda x:-x)",
    ],
    "perl": [
        "perl",
        "-e",
        "while(1){ my %h; $h{$_ % 97} .= join ',', map { $_ * 2 } 1..50 for 1..99 }",
    ],
    "gzip": ["sh", "-c", "exec gzip -9 </dev/urandom >/dev/null"],
    "awk": ["awk", "BEGIN { for (;;) { s = s + length(sprintf(\"%d-%s\", i++, \"xyz\")) } }"],
    "sha256sum": ["sha256sum", "/dev/zero"],
    "sort": [
        "sh",
        "-c",
        "while :; do head -c 4000000 /dev/urandom | od -An -x | sort >/dev/null; done",
    ],
    "gcc": [
        "sh",
        "-c",
        "while :; do echo 'int main(void){return 0;}' | gcc -O2 -x c -include stdio.h -include "
        "stdlib.h - -o /dev/null; done",
    ],
}


@contextlib.contextmanager
def load(commands=tuple(LOADS.values())):
    """Several different programs at once; the cores are never idle."""
    running = [
        subprocess.Popen(
            c, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        for c in commands
        if shutil.which(c[0])
    ]
    try:
        yield running
    finally:
        for p in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, 9)
            p.wait()


@contextlib.contextmanager
def queue(n):
    """n loops for each CPU. They are of our session: where each session has its group of the
    scheduler (autogroup), the measured one would else compete as one with each loop."""
    running = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(n * CPUS)]
    try:
        yield
    finally:
        for p in running:
            p.kill()
            p.wait()


@contextlib.contextmanager
def crowd(n):
    """n processes that wait: what a host has of them anyway."""
    running = [
        subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for _ in range(n)
    ]
    try:
        yield
    finally:
        for p in running:
            p.stdin.close()
            p.wait()
