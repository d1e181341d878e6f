# SPDX-License-Identifier: Apache-2.0
"""Profiles of programs as an agent writes them, and what a judge says of their stacks.

A stack is (frames, outermost first; samples; {label: text}). Several programs may be profiled at
once: the label `program` says whose a stack is.
"""

import collections
import contextlib
import gzip
import json
import os
import re
import time

import running
from protobuf import fields, packed
from running import PATIENT, Agent, cpu_seconds
from tap import DEPTH, Background, andiron, need_root, write

CONFIG = """pyroscope.ebpf "run" {
  forward_to       = [profile.file.out.receiver]
  targets          = [%s]
  sample_rate      = %d
  collect_interval = "1s"
  kernel_frames    = false
  %s
}
profile.file "out" {
  paths = ["out.pb.gz"]
}
"""
TARGET = '{"__process_pid__" = "%d", "service_name" = "program", "program" = "%d"}'
SAMPLES = {"fast": 1000, "full": 2000, "all": 6000}[DEPTH]  # of each program


def message(data):
    ret = {}
    for number, value in fields(data):
        ret.setdefault(number, []).append(value)
    return ret


class Frame:
    """Function, file, line that is executed, first line of the function."""

    def __init__(self, function, file="", line=0, first=0):
        self.function, self.file, self.line, self.first = function, file, line, first

    def __repr__(self):
        return f"{self.function}:{self.line}"


def read(path="out.pb.gz"):
    """The stacks of a pprof file."""
    with gzip.open(path) as f:
        profile = message(f.read())
    strings = [s.decode(errors="replace") for s in profile.get(6, [])]
    functions = {f[1][0]: f for f in map(message, profile.get(5, []))}
    locations = {}
    for location in map(message, profile.get(4, [])):
        frames = []
        for line in map(message, location.get(4, [])):
            f = functions[line[1][0]]
            text = [strings[f.get(n, [0])[0]] for n in (2, 4)]
            frames.append(Frame(*text, line.get(2, [0])[0], f.get(5, [0])[0]))
        locations[location[1][0]] = frames or [Frame("?")]
    ret = []
    for sample in map(message, profile.get(2, [])):
        frames = [f for value in sample.get(1, []) for i in packed(value) for f in locations[i]]
        labels = {}
        for label in map(message, sample.get(3, [])):
            name, text = [strings[label.get(n, [0])[0]] for n in (1, 2)]
            labels[name] = text or label.get(3, [""])[0]
        ret.append((frames[::-1], packed(sample[2][0])[0], labels))
    return ret


def processes(agent, component="pyroscope.ebpf.run"):
    """{pid: its runtime} of the component's targets; None while the agent is at work."""
    head, body = running.ask("status", "/targets")
    if not head.startswith("HTTP/1.0 200 "):
        return None
    targets = json.loads(body).get(component, [])
    return {p["pid"]: p.get("runtime", "") for t in targets for p in t["processes"]}


class Profile:
    """What an agent wrote of a program: stacks, how many samples of it there may be from before its
    runtime was known, what the agent said, and what its status said of the program."""

    def __init__(self, stacks, early, said, runtime):
        self.stacks, self.early, self.said, self.runtime = stacks, early, said, runtime


def each_named(found, pids):
    """Whether the status names the runtime of each of these."""
    return all(found.get(pid) for pid in pids)


def of_programs(
    commands, samples=SAMPLES, rate=997, option="", beside=None, ready=each_named, says="", warm=""
):
    """A Profile of each of these commands, which run at the same time until they were sampled that
    often after `ready({pid: runtime}, pids)` and after each said the words `says`;
    `beside(pids)` is done then. The agent begins after each said the words `warm`."""
    need_root()
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(Background(*command)) for command in commands]
        pids = [program.pid for program in programs]
        for program in programs:
            program.until_says(warm)
        targets = ", ".join(TARGET % (pid, i) for i, pid in enumerate(pids))
        config = write("c.alloy", CONFIG % (targets, rate, option))
        began = time.monotonic()
        agent = stack.enter_context(Agent(config, *PATIENT))

        def told():
            for program in programs:
                assert program.process.poll() is None, program.text()
            found = processes(agent)
            return found if found and ready(found, pids) else None

        found = agent.until(told, "the status names the runtimes")
        for program in programs:
            program.until_says(says)
        early = (time.monotonic() - began) * rate * os.cpu_count()
        used = [cpu_seconds(pid) for pid in pids]
        taken = agent.metric("andiron_samples_taken_total")
        if beside:
            beside(pids)
        # By the programs' clocks: the agent may count older samples for a while, and who else works
        # may leave one of them less than the others.
        agent.until(
            lambda: all(
                cpu_seconds(pid) - before >= samples / rate for pid, before in zip(pids, used)
            ),
            "the programs have run for so many samples",
        )
        if not says:
            agent.until_metric("andiron_samples_taken_total", taken + samples * len(pids))
        told()
        agent.stop()
        said = agent.text()
    stacks = [[] for _ in commands]
    for one in read():
        stacks[int(one[2]["program"])].append(one)
    return [Profile(stacks[i], early, said, found.get(pid, "")) for i, pid in enumerate(pids)]


def of_program(*command, **options):
    return of_programs([command], **options)[0]


def of_command(*command, rate=97):
    """The stacks of a command that ends by itself and of all that it starts, from its first
    instruction on; and what was said."""
    need_root()
    output = ["-F", str(rate), "-o", "out.pb.gz", "--group-by", "pid"]
    done = andiron("record", "--verbose", *output, "--", *command).expect(0)
    return read(), done.out + done.err


ENTRY = re.compile(r"_start|(__)?clone3?|start_thread|(_dl|__libc)_start.*|libc[.-].*|ld-.*")


def is_whole(frames):
    """Whether the stack reaches the entry of its thread, which a stripped program does not name."""
    return any(re.fullmatch(ENTRY, f.function.strip("[]")) for f in frames[:2])


class Wrong(Exception):
    """Why a stack cannot be."""


class Judged:
    """What the stacks of a profile come to. `judge(frames)` gives the name of what the stack is
    counted as, None where the program is not in its own code yet, or raises Wrong. Stacks that were
    taken before the runtime was known count as early and are not judged, and a thread that is
    ending has no stack any more."""

    def __init__(self, profile, judge):
        self.profile = profile
        self.early = self.beside = self.samples = self.whole = 0
        self.counts, self.wrong, self.cut = [collections.Counter() for _ in range(3)]
        for frames, n, _ in profile.stacks:
            if not frames:
                self.beside += n
                continue
            if frames[0].function == "[runtime]":
                self.early += n
                continue
            try:
                kind = judge(frames)
            except Wrong as why:
                kind = "wrong"
                self.wrong[str(why)] += n
            if kind is None:
                self.beside += n
                continue
            self.samples += n
            self.counts[kind] += n
            if is_whole(frames):
                self.whole += n
            else:
                self.cut[str(frames[:4])] += n

    def __str__(self):
        shares = ", ".join(f"{kind} {self.share(kind):.1%}" for kind in sorted(self.counts))
        return (
            f"{self.samples} samples, {self.right:.2%} right, "
            f"{self.whole / max(1, self.samples):.2%} whole ({shares}); {self.early} early, "
            f"{self.beside} beside"
        )

    @property
    def right(self):
        return 1 - sum(self.wrong.values()) / max(1, self.samples)

    def share(self, kind):
        return self.counts[kind] / max(1, self.samples)

    def expect(self, what, shares=None, samples=SAMPLES, beside=0.1):
        """Prints the figures and fails where they are not what is promised. `shares` are parts of
        the samples that hold within 3 points and what chance adds; `beside` bounds the part of the
        samples outside of the program's code, without those from before its runtime was known,
        which a busy machine has up to some hundreds of."""
        print(f"# {what}: {self}", flush=True)
        assert self.samples >= samples / 2, f"{what}: {self}"
        assert self.right >= 0.995, f"{what}: {self.wrong.most_common(5)}"
        assert self.whole >= 0.999 * self.samples, f"{what}: {self.cut.most_common(5)}"
        assert self.early <= self.profile.early, f"{what}: {self}"
        before = min(self.profile.early, samples / 4)
        assert self.beside - before <= beside * (self.samples + self.beside), f"{what}: {self}"
        for kind, part in (shares or {}).items():
            off = abs(self.share(kind) - part)
            assert off <= 0.03 + 2 / self.samples**0.5, f"{what}: {kind} {self.share(kind):.3f}"
        return self
