#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole way from discovery to a file, with processes in real cgroups."""

import contextlib
import os
import uuid

from books import ledger_holds
from running import PATIENT, Agent, cpu_seconds
from sources import kept
from tap import WORKLOAD, Background, Skip, case, folded, main, need_root, until, write

CONTAINERS = {name: uuid.uuid4().hex * 2 for name in "ab"}

CONFIG = """
pyroscope.ebpf "node" {
  forward_to       = [profile.file.out.receiver]
  targets          = discovery.relabel.kept.output
  targets_only     = true
  sample_rate      = 199
  collect_interval = "1s"
  pid_label        = true
}

profile.file "out" {
  paths    = ["%s"]
  group_by = ["process", "pid"]
}
"""


def hierarchies():
    """Where cgroups can be made: the unified hierarchy, and those of version 1."""
    root = "/sys/fs/cgroup"
    places = (
        [root]
        if os.path.exists(f"{root}/cgroup.procs")
        else [
            f"{root}/{name}"
            for name in os.listdir(root)
            if os.path.exists(f"{root}/{name}/cgroup.procs")
        ]
    )
    return [p for p in places if os.access(p, os.W_OK) and "cpuset" not in p]


@contextlib.contextmanager
def containers():
    made = []
    try:
        for place in hierarchies():
            for name in CONTAINERS.values():
                os.mkdir(f"{place}/{name}")
                made.append(f"{place}/{name}")
        if not made:
            raise Skip("needs cgroups that can be made: run where /sys/fs/cgroup is writable")
        yield made
    finally:
        for path in made:
            until(lambda p=path: not removed(p), "the end of a cgroup's processes")


def removed(path):
    """None once it is removed."""
    try:
        os.rmdir(path)
    except OSError as busy:
        return busy
    return None


def enter(made, name, pid):
    for path in made:
        if path.endswith(CONTAINERS[name]):
            with open(f"{path}/cgroup.procs", "w") as f:
                f.write(str(pid))


@case
def containers_are_told_apart():
    """Of two containers one is kept by a rule, and only its samples are written."""
    need_root()
    # How the rule gets at the processes of a is the container id, which discovery reads from the
    # cgroup.
    config = write(
        "agent.alloy",
        kept("__container_id__", CONTAINERS["a"]) + CONFIG % os.path.abspath("out.folded"),
    )
    with containers() as made:
        with Background(WORKLOAD, "600") as a, Background(WORKLOAD, "600") as b:
            enter(made, "a", a.pid)
            enter(made, "b", b.pid)
            with Agent(config, *PATIENT) as agent:
                agent.until_metric("andiron_samples_taken_total", 100)
                before = {one: cpu_seconds(one.pid) for one in (a, b)}
                agent.until(
                    lambda: all(cpu_seconds(one.pid) - before[one] > 1 for one in (a, b)),
                    "work of both",
                )
                agent.stop()
            roots = {frames[1] for frames in folded("out.folded")}
            assert roots == {f"pid {a.pid}"}, roots
    assert sum(folded("out.folded").values()) == ledger_holds("ledger.json")


main()
