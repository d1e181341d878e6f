#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`run`: stopping, reloading, status, the books."""

import contextlib
import json
import os
import signal
import socket

from books import ledger_holds
from running import PATIENT, cpu_seconds
from tap import (
    ANDIRON,
    DEADLINE,
    WORKLOAD,
    Background,
    andiron,
    case,
    folded,
    main,
    need_root,
    share,
    write,
)

CONFIG = """
pyroscope.ebpf "node" {
  forward_to       = [profile.file.out.receiver]
  targets_only     = false
  sample_rate      = %d
  collect_interval = "1s"
  demangle         = "full"
}

profile.file "out" {
  paths = ["%s"]
}
"""


def config(rate=199, path="out.folded"):
    return write("agent.alloy", CONFIG % (rate, os.path.abspath(path)))


def ask(path, what):
    """One HTTP/1.0 request over the unix socket."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(DEADLINE)
        s.connect(path)
        s.sendall(f"GET {what} HTTP/1.0\r\n\r\n".encode())
        answer = b""
        while True:
            part = s.recv(65536)
            if not part:
                break
            answer += part
    return answer.decode()


def agent(*arguments):
    return Background(ANDIRON, "run", *arguments)


@case
def drains_and_stops():
    """SIGTERM drains: every sample taken is written, and the books hold."""
    need_root()
    with Background(WORKLOAD, "60") as worker, agent(
        *PATIENT, "--status", "s", "--ledger", "l.json", config()
    ) as a:
        a.until(lambda: taken() > 200, "200 samples")
        before = cpu_seconds(worker.pid)
        a.until(lambda: cpu_seconds(worker.pid) - before > 0.5, "work of the worker")
        a.signal(signal.SIGTERM)
        a.end().expect(0, "own cost")
    stacks = folded("out.folded")
    assert sum(stacks.values()) == ledger_holds("l.json")
    assert share(stacks, "workload_70") > 0
    assert not os.path.exists("s"), "the socket stays behind"


def taken():
    with contextlib.suppress(
        FileNotFoundError, ConnectionRefusedError
    ):  # not bound, not listening yet
        for line in ask("s", "/metrics").splitlines():
            if not line.startswith("#") and "taken" in line:
                return float(line.split()[-1])
    return 0


@case
def status_answers():
    """The status socket answers metrics and health while it runs."""
    need_root()
    with agent("--status", "s", config()) as a:
        a.until(lambda: taken() > 0, "a sample")
        metrics = ask("s", "/metrics")
        assert "# TYPE" in metrics and "component_id" in metrics, metrics[:500]
        health = ask("s", "/health")
        json.loads(health[health.index("\r\n\r\n") :])
        assert "pyroscope.ebpf.node" in health, health
        a.signal(signal.SIGINT)
        a.end().expect(0)


@case
def reloads():
    """SIGHUP takes a good configuration and refuses a bad one, and goes on."""
    need_root()
    with agent("--status", "s", config()) as a:
        a.until(lambda: taken() > 0, "a sample")
        config(rate=49)
        a.signal(signal.SIGHUP)
        a.until_says("reloaded")
        write("agent.alloy", CONFIG.replace("sample_rate", "sample_rat") % (97, "x.folded"))
        a.signal(signal.SIGHUP)
        a.until_says('did you mean "sample_rate"?')
        a.until_says("old configuration goes on")
        before = taken()
        a.until(lambda: taken() > before, "another sample")
        a.signal(signal.SIGTERM)
        a.end().expect(0)


PUSH = """
pyroscope.ebpf "node" {
  forward_to       = [pyroscope.write.out.receiver]
  targets_only     = false
  default_target   = {"service_name" = "test"}
  collect_interval = "1s"
  sample_rate      = 199
}

pyroscope.write "out" {
  endpoint {
    url = "http://127.0.0.1:%d"
  }
}
"""


@case
def absent_server():
    """With no server the agent says so, stops at its deadline, and its books hold."""
    need_root()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))  # bound and not listening: refuses
        with agent(
            "--drain-deadline",
            "1s",
            "--status",
            "s",
            "--ledger",
            "l.json",
            write("agent.alloy", PUSH % s.getsockname()[1]),
        ) as a:
            a.until(lambda: taken() > 50, "samples")
            a.until_says("127.0.0.1")
            a.signal(signal.SIGTERM)
            a.end().expect(0)
    assert ledger_holds("l.json") > 50


@case
def hanging_server():
    """A server that never answers holds up the end to the deadline, and a second signal not even
    that."""
    need_root()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        with agent(
            "--drain-deadline",
            "1h",
            "--status",
            "s",
            "--ledger",
            "l.json",
            write("agent.alloy", PUSH % s.getsockname()[1]),
        ) as a:
            a.until(lambda: taken() > 50, "samples")
            s.settimeout(DEADLINE)
            with s.accept()[0]:  # the first push is under way
                a.signal(signal.SIGTERM)
                a.until_says("a second signal")
                a.signal(signal.SIGTERM)
                a.end().expect(0)
    assert ledger_holds("l.json") > 50


@case
def foreign_flags_are_noted():
    """Alloy's flags are taken and noted once."""
    need_root()
    with agent(
        "--server.http.listen-addr=0.0.0.0:12345",
        "--storage.path",
        "/tmp/x",
        "--disable-reporting",
        "--stability.level=experimental",
        config(),
    ) as a:
        a.until_says("--server.http.listen-addr")
        a.until_says("programs")
        a.signal(signal.SIGTERM)
        r = a.end().expect(0, "--storage.path", "--disable-reporting", "--stability.level")
    assert r.out.count("--storage.path") == 1


@case
def logs_are_json():
    """With --log-format json every line is one object, the books among them."""
    need_root()
    with agent("--log-format", "json", "--storage.path=/x", config()) as a:
        a.until_says("programs")
        a.signal(signal.SIGTERM)
        lines = [json.loads(line) for line in a.end().expect(0).out.splitlines()]
    text = json.dumps(lines)
    assert "--storage.path" in text and "samples: " in text, lines


@case
def bad_starts():
    """What cannot start says why and fails."""
    andiron("run", write("x.alloy", "nonsense {")).expect(1, "x.alloy:1:")
    andiron("run", "absent.alloy").expect(1, "absent.alloy")
    andiron("run", "--frobnicate", "x.alloy").expect(2, "no option")


main()
