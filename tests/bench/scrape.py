#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scrape.py ANDIRON FARM: what scraping 5,000 targets costs, one profile of each every 15 s.

The agent is counted with the process that makes its requests. The targets are
tests/scenario/target-farm.c, on loopback: of the time in the kernel, part is the farm's, whose side
of a connection is opened where the other connects. Figures, in one run; never a timed test.
"""

import gzip
import subprocess
import sys
import tempfile
import time

import rods
from agents import agent
from figures import figure, finish

ANDIRON, FARM = sys.argv[1:3]
N = 5000
SECONDS = 60 if rods.LONG else 15

CONFIG = """
pyroscope.scrape "s" {
  targets    = [%s]
  forward_to = []
  profiling_config {
    profile.goroutine {
      enabled = true
      path    = "/profile"
    }
    profile.memory { enabled = false }
    profile.block { enabled = false }
    profile.mutex { enabled = false }
    profile.process_cpu { enabled = false }
  }
}
"""


def message(field, body):
    assert len(body) < 1 << 14
    return bytes((field << 3 | 2, len(body) & 127 | 128, len(body) >> 7)) + body


def profile():
    """As large as that of the goroutines of a small program: 60 stacks, about 1 KiB."""
    samples = [
        b"\x0a\x06" + bytes((i % 50, i % 41, i % 17, 3, 2, 1)) + b"\x12\x01\x01" for i in range(60)
    ]
    names = [b"", b"goroutine", b"count"] + [f"main.function{i}".encode() for i in range(50)]
    return (
        message(1, b"\x08\x01\x10\x02")
        + b"".join(message(2, s) for s in samples)
        + b"".join(message(6, name) for name in names)
    )


def measure(folder, farm, n):
    """CPU seconds a second, and MiB, of an agent with n targets."""
    targets = ",\n".join(
        f'{{"__address__" = "127.1.{i >> 8}.{i & 255}:{farm}", "pod" = "pod-{i}"}}'
        for i in range(1, n + 1)
    )
    with agent(ANDIRON, folder, CONFIG % targets) as process:
        rods.window(16)  # the first turn, in which states are made
        both = [process.pid, *rods.children(process.pid)]
        assert len(both) == 2, both
        before, start = sum(map(rods.cpu_seconds, both)), time.monotonic()
        rods.window(SECONDS)
        used = sum(map(rods.cpu_seconds, both)) - before
        return used / (time.monotonic() - start), sum(map(rods.pss_kb, both)) / 1024


def main():
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/profile", "wb") as file:
            file.write(gzip.compress(profile()))
        farm = subprocess.Popen([FARM, f"{folder}/profile"], stdout=subprocess.PIPE, text=True)
        try:
            port = int(farm.stdout.readline())
            one = measure(folder, port, 1)[1]
            cores, mib = measure(folder, port, N)
        finally:
            farm.kill()
            farm.wait()
            farm.stdout.close()
    figure("5,000 targets at 15 s: CPU", 100 * cores, "% of a core", 5)
    figure("… a scrape", cores / (N / 15) * 1e6, "µs")
    figure("… memory (PSS), more than with one target", mib - one, "MiB", 64)
    finish()


main()
