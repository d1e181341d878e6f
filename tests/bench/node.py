#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""node.py ANDIRON: what the agent costs on a full node, 3,000 processes in 110 pods.

Each pod is a cgroup where a kubelet makes it, and in each one process works a little all the time.
The processes are there before the agent starts. A sample that is taken and not written is a
failure; figures are printed. ANDIRON_BENCH=long takes a longer window.
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
from agents import agent
from figures import failed, figure, finish

ANDIRON = sys.argv[1]
PODS, PROCESSES = 110, 3000
INTERVAL = 5  # seconds
WINDOW = 60 if rods.LONG else 10
# What a pod runs: it enters its cgroup, starts what waits, and works for some 2 ms a second.
POD = """
echo 0 >"$1/cgroup.procs" || exit 1
n=$2
while [ $n -gt 1 ]; do
	sleep 1000 &
	n=$((n - 1))
done
echo up
for second in $(seq 600); do
	n=0
	while [ $n -lt 4000 ]; do n=$((n + 1)); done
	sleep 1 # the load
done
"""
CONFIG = """
discovery.process "all" {{ }}
discovery.relabel "pods" {{
  targets = discovery.process.all.targets
  rule {{
    source_labels = ["__container_id__"]
    regex         = ".+"
    action        = "keep"
  }}
  rule {{
    source_labels = ["__container_id__"]
    target_label  = "service_name"
  }}
}}
pyroscope.ebpf "pods" {{
  targets          = discovery.relabel.pods.output
  forward_to       = [profile.file.out.receiver]
  sample_rate      = 97
  collect_interval = "{interval}s"
}}
profile.file "out" {{
  paths    = ["{path}"]
  group_by = ["service_name"]
}}
"""


def hierarchy():
    """Where the memory cgroups are: of version 1 or 2."""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        kinds = [line.split()[1:4] for line in mounts]
    for path, kind, options in kinds:
        if kind == "cgroup" and "memory" in options.split(","):
            return path
    return next(path for path, kind, _ in kinds if kind == "cgroup2")


@contextlib.contextmanager
def pods():
    """All of them, up."""
    root = os.path.join(hierarchy(), f"andiron-bench-{os.getpid()}")
    folders = [
        f"{root}/kubepods/burstable/pod5f1c9b0e-7d1a-4b0e-9b1c-{i:012x}/{i + 1:064x}"
        for i in range(PODS)
    ]
    running = []
    try:
        for i, folder in enumerate(folders):
            os.makedirs(folder)
            n = PROCESSES // PODS + (i < PROCESSES % PODS)
            running.append(
                subprocess.Popen(
                    ["sh", "-c", POD, "pod", folder, str(n)],
                    stdout=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                )
            )
        for pod in running:
            assert pod.stdout.readline() == "up\n", "a pod does not start"
        yield
    finally:
        for pod in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pod.pid, signal.SIGKILL)
            pod.wait()
            pod.stdout.close()
        for folder, _, _ in os.walk(root, topdown=False):
            # Empty when the last one has ended.
            rods.until(lambda folder=folder: removed(folder), every=0.05)


def removed(folder):
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True


def healthy(status):
    with contextlib.suppress(OSError):
        text = rods.ask(status, "/health")
        return '"pyroscope.ebpf.pods"' in text and "unhealthy" not in text and "unknown" not in text
    return False


def measure(folder):
    began, status = time.monotonic(), f"{folder}/status"
    config = CONFIG.format(interval=INTERVAL, path=f"{folder}/out.folded")
    with agent(ANDIRON, folder, config) as process:

        def live():
            if process.poll() is not None:
                with open(f"{folder}/log", encoding="utf-8") as log:
                    raise RuntimeError(log.read())
            return healthy(status)

        rods.until(live)
        figure("3,000 processes in 110 pods: exec to live sampling", time.monotonic() - began, "s")
        rods.window(2 * INTERVAL)  # until it knows what it has seen
        began, cpu = time.monotonic(), rods.cpu_seconds(process.pid)
        rods.window(WINDOW)
        share = (rods.cpu_seconds(process.pid) - cpu) / (time.monotonic() - began) * 100
        figure("… agent CPU after that", share, "% of a core")
        figure("… memory (PSS) without maps", rods.own_mb(process.pid), "MB")
        figure("… BPF maps", rods.held_mb(process.pid), "MB")
    with open(f"{folder}/ledger.json", encoding="utf-8") as file:
        ledger = json.load(file)
    writer = ledger["writers"]["profile.file.out"]
    lost = ledger["taken"] - writer["delivered"]
    figure(f"… lost of {ledger['taken']:,} samples", lost, "samples")
    if lost or not ledger["taken"]:
        failed.append(f"{lost} of {ledger['taken']} samples are lost: {writer['dropped']}")
    with open(f"{folder}/out.folded", encoding="utf-8") as file:
        seen = {line.split(";", 1)[0] for line in file}
    figure("… pods in the profile", len(seen), "pods")


signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and the pods end
with tempfile.TemporaryDirectory() as out, pods():
    measure(out)
finish()
