#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is left of the privileges that the agent was started with, and what each of them is for."""

import contextlib
import os
import re
import signal

from running import PATIENT, Agent
from tap import (
    ANDIRON,
    SIX,
    WORKLOAD,
    Background,
    case,
    folded,
    main,
    need_root,
    read,
    share,
    with_capabilities,
    write,
)

# By number, include/uapi/linux/capability.h.
NUMBERS = {
    "dac_override": 1,
    "dac_read_search": 2,
    "sys_ptrace": 19,
    "sys_admin": 21,
    "sys_nice": 23,
    "sys_resource": 24,
    "syslog": 34,
    "perfmon": 38,
    "bpf": 39,
    "checkpoint_restore": 40,
}
KEPT = [name for name in SIX if name != "syslog"]

SAMPLER = """
pyroscope.ebpf "node" {
  forward_to       = [profile.file.out.receiver]
  targets_only     = false
  sample_rate      = 199
  collect_interval = "1s"
}
"""
WRITER = """
profile.file "out" {
  paths = ["%s"]
}
"""


def mask(names):
    return sum(1 << NUMBERS[name] for name in names)


def graph(*parts, path="out.folded"):
    return write("agent.alloy", "".join(parts) + WRITER % os.path.abspath(path))


def threads(pid):
    """The lines of /proc/PID/status of each thread, as {word: text}."""
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            lines = read(f"/proc/{pid}/task/{tid}/status").splitlines()
            found.append({k: v.strip() for k, _, v in (line.partition(":") for line in lines)})
    return found


def parser_of(pid):
    """The process that parses files for the agent."""
    for task in os.listdir(f"/proc/{pid}/task"):
        for child in read(f"/proc/{pid}/task/{task}/children").split():
            if "\0worker\0" in read(f"/proc/{child}/cmdline"):
                return int(child)
    return None


def sets(thread):
    return {k: int(thread[k], 16) for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}


def names_the_kernel(stacks):
    return any(re.fullmatch(r"[a-z_]\w*_\[k\]", frame) for frames in stacks for frame in frames)


@case
def keeps_what_it_declares():
    """Started by root, no thread keeps more than five capabilities, to be used or inherited;
    CAP_SYSLOG is gone, and the kernel's functions have names all the same. The parser has none."""
    need_root()
    with Background(WORKLOAD, "60"), Agent(graph(SAMPLER), *PATIENT) as a:
        parser = a.until(lambda: parser_of(a.pid), "the parser")
        a.until(lambda: threads(parser)[0]["Seccomp"] == "2", "the parser's sandbox")
        own, parsers = threads(a.pid), threads(parser)
        assert len(own) > 2, own
        for thread in own:
            found = sets(thread)
            extra = mask(["sys_nice", "sys_resource"])
            assert found["CapPrm"] & ~extra == mask(KEPT), thread
            assert found["CapEff"] == found["CapPrm"] == found["CapBnd"], thread
            assert found["CapInh"] == found["CapAmb"] == 0, thread
            assert thread["NoNewPrivs"] == "1", thread
        for thread in parsers:
            found = sets(thread)
            assert found["CapPrm"] == found["CapInh"] == found["CapAmb"] == 0, thread
        a.signal(signal.SIGTERM)
        a.end().expect(0, "capabilities kept: ", "CAP_BPF")
    stacks = folded("out.folded")
    assert share(stacks, "workload_70") > 0
    assert names_the_kernel(stacks), list(stacks)[:20]


@case
def keeps_nothing_for_nothing():
    """A graph that does not sample keeps no capability at all. A sampler that is added later is
    refused with what to do, and the old graph goes on; a reload that needs nothing is taken."""
    need_root()
    with Agent(graph()) as a:
        for thread in threads(a.pid):
            assert set(sets(thread).values()) == {0} and thread["NoNewPrivs"] == "1", thread
        graph(SAMPLER)
        a.signal(signal.SIGHUP)
        a.until(lambda: "not reloaded" in a.text(), "the refusal")
        assert "which was given up at start" in a.text(), a.text()
        assert "restart the agent" in a.text(), a.text()
        graph(path="other.folded")
        a.signal(signal.SIGHUP)
        a.until(lambda: "reloaded\n" in a.text().replace("not reloaded", ""), "the reload")
        a.signal(signal.SIGTERM)
        a.end().expect(0)


@case
def missing_capability_is_named():
    """A capability that is missing is named."""
    need_root()
    for name in ("bpf", "perfmon"):
        rest = [c for c in SIX if c != name]
        with_capabilities(rest, ANDIRON, "record", "-o", "x.folded").expect(
            1, f"CAP_{name.upper()}"
        )
    assert not os.path.exists("x.folded")


main()
