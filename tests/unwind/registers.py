#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Registers that a callee of another file has saved: its table learns where, once a stack has
needed it."""

import os

import entries
from running import PATIENT, Agent
from stacks import Profile
from tap import Background, Skip, case, main, need_root, write

PROGRAMS = os.environ["PROGRAMS"]
CONFIG = """discovery.relabel "sorts" {
  targets = [{"__process_pid__" = "%d", "service_name" = "sorts"}]
}
pyroscope.ebpf "b" {
  forward_to       = [profile.file.out.receiver]
  targets          = discovery.relabel.sorts.output
  sample_rate      = 199
  collect_interval = "1s"
}
profile.file "out" { paths = ["out.pb.gz"] }
"""
STACKS = "andiron_ebpf_stacks_total"
ENOUGH = 300


def ends(agent):
    """How many samples have ended whole, and how many because a register was lost."""
    return agent.metric(STACKS, 'end="complete"'), agent.metric(STACKS, 'end="register_lost"')


@case
def lost_registers_are_asked_for():
    """The first stacks say that a register is lost; then the C library's table says where it is,
    and no stack ends so any more."""
    need_root()
    if not os.path.exists(f"{PROGRAMS}/sorts"):
        raise Skip("the program is for x86-64")
    with Background(f"{PROGRAMS}/sorts", "3600") as sorts, Agent(
        write("b.alloy", CONFIG % sorts.pid), *PATIENT
    ) as agent:
        agent.until(lambda: ends(agent)[0] >= ENOUGH, "stacks are whole")
        agent.until_metric("andiron_ebpf_unwind_files_aux_asked")

        def none_is_lost():
            whole, lost = ends(agent)
            agent.until(lambda: ends(agent)[0] >= whole + ENOUGH, "more of them are")
            return ends(agent)[1] == lost

        agent.until(none_is_lost, "no stack loses a register any more")
        agent.stop()
    stacks = list(Profile("out.pb.gz").stacks())
    marked = sum(s.weight for s in stacks if (s.marker or "").startswith("[register lost"))
    good = sum(s.weight for s in stacks if entries.whole(s))
    print(f"# {good} whole, {marked} have lost a register")
    assert marked > 0, "no stack needed it, so nothing is shown"
    assert good >= 2 * ENOUGH, f"{good} whole"


main()
