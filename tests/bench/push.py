#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""push.py ENCODE HARNESS: what encoding and pushing cost. Figures, in one run; never a timed test.

The same profile by our encoder and by google/pprof's, which Go's senders use; then the writer
pushing 100 profiles a second for 5 s (ANDIRON_BENCH=long: 20), each of 50 stacks of 20 frames, with
a spool and without, to the stand-in for Pyroscope.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "servers"))

import rods  # noqa: E402
from pyroscope import Pyroscope, get  # noqa: E402

ENCODE, HARNESS = sys.argv[1:3]
SECONDS = 20 if rods.LONG else 5


def least(figures, key, ns, size):
    """The best of three runs is what the machine's other work disturbed least."""
    figures[key] = min(figures.get(key, (ns, size)), (ns, size))


def encoders():
    sizes = (1000, 10000, 100000)
    ours, theirs = {}, {}
    for _ in range(3):
        for line in subprocess.run(
            [get("push-receiver"), *(f"--encode={n}" for n in sizes)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines():
            packed, n, ns, size = line.split()
            least(theirs, (packed == "true", int(n)), int(ns), int(size))
        for line in subprocess.run(
            [ENCODE], check=True, capture_output=True, text=True
        ).stdout.splitlines():
            if line.startswith("encoder"):
                name, rest = line[:22], line[22:].split()
                least(ours, ("gzip" in name, int(rest[0])), int(rest[2]), int(rest[4]))
    print(
        "| stacks | | ours, ns per stack | Go's | ratio | bytes ours / Go's |\n| ---: | --- | "
        "---: | ---: | ---: | ---: |"
    )
    for packed in (False, True):
        for n in sizes:
            (a, a_size), (b, b_size) = ours[packed, n], theirs[packed, n]
            print(
                f"| {n:,} | {'gzip 1' if packed else 'plain'} | {a:,} | {b:,} | {a / b:.2f} | "
                f"{a_size / b_size:.2f} |"
            )


def pushing(spool):
    """CPU and peak memory of the whole process, what makes its batches included."""
    with tempfile.TemporaryDirectory() as folder, Pyroscope(
        "--rate-mib", "64", "--burst-mib", "64"
    ) as server:
        what = {"URL": server.url, "SERIES": 100, "ROWS": 50, "BATCHES": SECONDS, "PAUSE_MS": 1000}
        if spool:
            what["SPOOL"] = f"{folder}/spool"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [HARNESS, "push"],
            env={**os.environ, **{f"PUSH_{k}": str(v) for k, v in what.items()}},
            check=True,
            capture_output=True,
            text=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    figures = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert figures["delivered"] == figures["taken"], figures
    print(
        f"# 100 profiles a second, {'with' if spool else 'without'} a spool: "
        f"{100 * cpu / SECONDS:.2f} % of a core, "
        f"peak {figures['peak_kib'] / 1024:.1f} MiB, "
        f"{figures['sent_bytes'] / figures['taken']:.1f} bytes a sample on the wire"
    )


encoders()
pushing(False)
pushing(True)
