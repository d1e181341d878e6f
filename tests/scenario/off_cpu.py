#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Waiting as a profile of its own."""

import signal
import time

from books import books_hold
from pprofs import Receiver, span
from running import PATIENT, Agent
from tap import WORKLOAD, Background, andiron, case, main, need_root, write

CONFIG = """
pyroscope.ebpf "node" {
  targets           = [{"__process_pid__" = "%d", "service_name" = "s"}]
  forward_to        = [pyroscope.write.w.receiver]
  collect_interval  = "1s"
  off_cpu_threshold = %s
}

pyroscope.write "w" {
  endpoint {
    url = "http://127.0.0.1:%d"
  }
}
"""


@case
def waits_are_a_profile():
    """off_cpu_threshold adds a profile of waiting, and without it there is none again. The books
    close over both."""
    need_root()
    key = ("workload_wait", "off_cpu")
    with Receiver() as server, Background(WORKLOAD, "300", "wait") as waiting:
        write("agent.alloy", CONFIG % (waiting.pid, 1, server.port))
        began = time.monotonic()
        with Agent("agent.alloy", *PATIENT) as a:
            a.until(lambda: server.sums("off_cpu").get(key, 0) > 2e9, "two seconds of waiting")
            assert server.sums("off_cpu")[key] / 1e9 < time.monotonic() - began
            with Background(WORKLOAD, "300") as working:
                write("agent.alloy", CONFIG % (working.pid, 0, server.port))
                a.signal(signal.SIGHUP)
                a.until_says(" reloaded")
                reloaded, pushed = time.time_ns(), len(server.pushed)
                a.until(lambda: len(server.pushed) > pushed + 2, "profiles of work")
            books = a.stop()
    names = {labels["__name__"] for labels, _ in server.pushed}
    assert names == {"off_cpu", "process_cpu"}, names
    later = {labels["__name__"] for labels, raw in server.pushed if span(raw)[0] > reloaded}
    assert later == {"process_cpu"}, later
    taken = books_hold(books)
    (row,) = books["writers"].values()
    assert row["delivered"] == taken and not row["dropped"], books


@case
def shares_that_are_none():
    """What is no share is refused; thousandths, as they were once counted, are taken."""
    write("agent.alloy", CONFIG % (1, -1, 1))
    andiron("validate", "agent.alloy").expect(1, "off_cpu_threshold is the share of waits")
    write("agent.alloy", CONFIG % (1, 50, 1))
    andiron("validate", "agent.alloy").expect(0, "taken for thousandths", "write 0.05 for 50")


main()
