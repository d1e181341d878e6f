#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks of real JVMs: JAVAS names their commands, one a line, else the machine's own is taken."""

import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../scenario"))
from running import Agent  # noqa: E402
from tap import Background, Skip, case, folded, main, need_root, write  # noqa: E402

CONFIG = """discovery.relabel "java" {
  targets = [{"__process_pid__" = "%d", "service_name" = "java"}]
}
pyroscope.ebpf "java" {
  forward_to       = [profile.file.out.receiver]
  targets          = discovery.relabel.java.output
  sample_rate      = 199
  collect_interval = "1s"
  kernel_frames    = false
}
profile.file "out" {
  paths = ["out.folded"]
}
"""
SAMPLES = 600
JAVAS = [line for line in os.environ.get("JAVAS", "").split("\n") if line] or [shutil.which("java")]
MODES = ["-Xint", "-XX:TieredStopAtLevel=1", "-XX:-TieredCompilation", "-XX:+UseG1GC"]


def compiled():
    """The load's classes, for the oldest JVM."""
    if not os.path.exists("Load.class"):
        source = os.path.join(HERE, "java/Load.java")
        subprocess.run(["javac", "--release", "8", "-g", "-nowarn", "-d", ".", source], check=True)
    return os.getcwd()


def profile(java, mode):
    with Background(java, mode, "-Xmx256m", "-cp", compiled(), "Load") as process, Agent(
        write("c.alloy", CONFIG % process.pid)
    ) as agent:
        agent.until_metric("andiron_samples_taken_total", SAMPLES)
        agent.stop()
    return folded("out.folded")


def share(stacks, holds):
    total = sum(stacks.values())
    return sum(n for frames, n in stacks.items() if holds(frames)) / total


@case
def stacks_are_whole():
    """Java's frames stand between native ones, by name and in the order of their calls."""
    need_root()
    if not JAVAS[0] or not shutil.which("javac"):
        raise Skip("no java and javac: install openjdk-17-jdk-headless")
    for java in JAVAS:
        for mode in MODES:
            stacks = profile(java, mode)
            java_stacks = {
                f: n for f, n in stacks.items() if "Load.main" in f or f[0] == "[runtime]"
            }
            whole = share(java_stacks, lambda f: "Load.main" in f and f[0] != "[runtime]")
            once = share(java_stacks, lambda f: "Load.once" in f)
            ordered = [f for f in java_stacks if "Load.once" in f]
            print(f"# {java} {mode}: {whole:.2%} whole, {once:.2%} in Load.once")
            for frames in ordered:
                if "Load.main" in frames:
                    begin = frames[frames.index("Load.main") :][:3]
                    assert begin == ("Load.main", "Load.run", "Load.once"), frames
            assert whole >= 0.97, {f: n for f, n in java_stacks.items() if "Load.main" not in f}
            assert any("Load.leafA" in f for f in stacks), stacks


main()
