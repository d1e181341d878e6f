#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`isolate = true`: components in processes of their own, while sampling goes on."""

import json
import os
import signal
import time
import urllib.request

from answers import TAKEN, Server
from ports import free_port
from running import PATIENT, Agent
from stuck import descendants
from tap import DEADLINE, WORKLOAD, Background, andiron, case, folded, main, need_root, read, write

CONFIG = """
discovery.process "all" { }

pyroscope.ebpf "node" {
  targets          = discovery.process.all.targets
  targets_only     = false
  forward_to       = [pyroscope.relabel.r.receiver]
  sample_rate      = 97
  collect_interval = "1s"
}

pyroscope.relabel "r" {
  isolate    = true
  forward_to = [profile.file.out.receiver]

  rule {
    target_label = "kept"
    replacement  = "yes"
  }
}

profile.file "out" {
  isolate = true
  paths   = ["%s"]
}
"""
WRITER, RELABEL = 'component_id="profile.file.out"', 'component_id="pyroscope.relabel.r"'


def process_of(agent, component):
    found = [
        pid
        for pid in descendants(agent.pid)
        if read(f"/proc/{pid}/cmdline").split("\0")[3:5] == [component, "isolated"]
    ]
    assert len(found) == 1, (component, found)
    return found[0]


@case
def killed_processes_cost_a_batch_at_most():
    """The books close though both processes are killed while samples come; each is replaced, which
    metrics say, and what the writer had kept is in the file."""
    need_root()
    path = os.path.abspath("out.folded")
    config = write("isolate.alloy", CONFIG % path)
    with Background(WORKLOAD, "600"), Agent(config, *PATIENT) as agent:
        agent.until_metric("andiron_samples_in_flight", 50)
        for component, label in (("profile.file", WRITER), ("pyroscope.relabel", RELABEL)):
            os.kill(process_of(agent, component), signal.SIGKILL)
            agent.until_metric("andiron_isolate_starts_total", 2, labels=label)
            agent.until_metric("andiron_isolate_up", labels=label)
        lost = agent.metric("andiron_isolate_lost_batches_total")
        assert lost <= 2, lost
        row = agent.stop()["writers"]["profile.file.out"]
    assert row["delivered"] > 0 and row["in_flight"] == 0, row
    assert bool(row["dropped"]) == bool(lost), (lost, row)
    assert all(reason.endswith(":isolate_died") for reason in row["dropped"]), row
    assert sum(folded(path).values()) > 0


RELAY = """
pyroscope.receive_http "in" {
  forward_to = [pyroscope.write.out.receiver]
  http {
    listen_address = "127.0.0.1"
    listen_port    = %d
  }
}

pyroscope.write "out" {
  isolate = true
  endpoint {
    url = "http://127.0.0.1:%d"
  }
}
"""


def push(port):
    now = int(time.time())
    url = f"http://127.0.0.1:{port}/ingest?name=shop&from={now - 10}&until={now}"
    with urllib.request.urlopen(url, b"main;work 7\n", timeout=DEADLINE) as answer:
        assert answer.status == 200


@case
def a_writer_to_servers_delivers_from_its_process():
    """One that speaks to servers does, by a sender of its own, before its process is killed and
    after; health says that it was."""
    port = free_port()
    with Server(TAKEN) as server, Agent(
        write("relay.alloy", RELAY % (port, server.port)), *PATIENT
    ) as agent:
        agent.until_says("listening at")
        push(port)
        agent.until_metric("andiron_samples_delivered_total", 7)
        os.kill(process_of(agent, "pyroscope.write"), signal.SIGKILL)
        agent.until_health("pyroscope.write.out", "unhealthy", "signal 9 ended it")
        push(port)
        agent.until_metric("andiron_samples_delivered_total", 14)
        row = agent.stop()["writers"]["pyroscope.write.out"]
    assert row["delivered"] == 14 and not row["dropped"], row
    assert len(server.seen) == 2


@case
def a_store_outlives_the_process():
    """What a writer has on disk is counted once, however often its process is killed, and is
    delivered when the server is there."""
    port, late = free_port(), free_port()
    spool = f'  spool {{\n    directory = "{os.path.abspath("spool")}"\n  }}\n}}\n'
    config = (RELAY % (port, late)).rstrip().removesuffix("}") + spool
    with Agent(write("store.alloy", config), *PATIENT) as agent:
        agent.until_says("listening at")
        push(port)
        agent.until_metric("andiron_samples_spooled", 7)
        for n in (2, 3):
            os.kill(process_of(agent, "pyroscope.write"), signal.SIGKILL)
            agent.until_metric("andiron_isolate_starts_total", n)
            agent.until_metric("andiron_isolate_up")
            agent.until_metric("andiron_samples_spooled", 7)
        with Server(TAKEN, late) as server:
            agent.until_metric("andiron_samples_delivered_total", 7)
            row = agent.stop()["writers"]["pyroscope.write.out"]
    assert row["delivered"] == 7 and not row["dropped"] and not row["carried"], row
    assert len(server.seen) == 1


TARGETS = """
discovery.file "in" {
  files            = ["%s"]
  refresh_interval = "1s"
}

discovery.relabel "r" {
  isolate = true
  targets = array.concat([{"__address__" = "fixed"}], discovery.file.in.targets)

  rule {
    target_label = "kept"
    replacement  = "yes"
  }
}

discovery.relabel "behind" {
  targets = discovery.relabel.r.output

  rule {
    action        = "keep"
    source_labels = ["kept"]
    regex         = "yes"
  }
}
"""


@case
def targets_outlive_the_process():
    """Relabeling in a process follows its list, before the process is killed and after: also what
    came and went while there was none. Meanwhile those behind it keep what they have."""

    def say(*hosts):
        write("some.json", json.dumps([{"targets": list(hosts)}]))

    def until(n):
        agent.until_health("discovery.relabel.behind", "healthy", f"{n} of {n} targets")

    say("a", "b")
    config = TARGETS % os.path.abspath("some.json")
    with Agent(write("targets.alloy", config), *PATIENT) as agent:
        until(3)
        say("a", "b", "c")
        until(4)
        os.kill(process_of(agent, "discovery.relabel"), signal.SIGKILL)
        agent.until_health("discovery.relabel.r", "unhealthy", "signal 9 ended it")
        assert "4 of 4" in agent.health("discovery.relabel.behind")[1]
        say("b")
        until(2)
        assert agent.metric("andiron_isolate_starts_total") == 2
        say("b", "d")
        until(3)
        agent.stop()


@case
def who_cannot_be_isolated_says_why():
    """What needs the agent's own is refused, at its place and with the reason."""
    config = CONFIG % "/x.folded"
    write("bad.alloy", config.replace("sample_rate      = 97", "isolate = true"))
    andiron("validate", "bad.alloy").expect(
        1,
        "bad.alloy:8:3",
        "pyroscope.ebpf cannot be isolated",
        "only components that just take profiles",
    )
    write("twice.alloy", config.replace("isolate = true", "isolate = true\n  isolate = false"))
    andiron("validate", "twice.alloy").expect(1, "isolate is given twice")
    write("word.alloy", config.replace("isolate = true", 'isolate = "yes"'))
    andiron("validate", "word.alloy").expect(1, "isolate must be true or false")


main()
