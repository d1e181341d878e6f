#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`run`: stopping, reloading, status, the books."""

import contextlib
import json
import os
import signal
import socket
import time
import urllib.request

from answers import TAKEN, Server
from books import books_hold, ledger_holds
from ports import free_port
from protobuf import fields
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


ALL = "targets_only     = false"


def config(rate=199, path="out.folded"):
    return write("agent.alloy", CONFIG % (rate, os.path.abspath(path)))


def config_of(pid):
    """Samples one process: of a busy machine's programs, all files have to be read for their
    names, and the parser of these gets its share of the CPUs."""
    one = 'targets          = [{"__process_pid__" = "%d"}]' % pid
    text = CONFIG % (199, os.path.abspath("out.folded"))
    assert ALL in text
    return write("agent.alloy", text.replace(ALL, one))


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
        *PATIENT, "--status", "s", "--ledger", "l.json", config_of(worker.pid)
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
                a.signal(signal.SIGINT)  # the same one is an echo for half a second
                a.end().expect(0)
    assert ledger_holds("l.json") > 50


@case
def foreign_flags_are_noted():
    """Alloy's flags are taken, and what has no counterpart is noted once."""
    need_root()
    with agent(
        "--server.http.memory-addr=alloy.internal:12345",
        "--cluster.name",
        "/tmp/x",
        "--disable-reporting",
        "--stability.level=experimental",
        config(),
    ) as a:
        a.until_says("--server.http.memory-addr")
        a.until_says("sampling has begun")
        a.signal(signal.SIGTERM)
        r = a.end().expect(0, "--cluster.name", "--disable-reporting", "--stability.level")
    assert r.out.count("--cluster.name") == 1


@case
def logs_are_json():
    """With --log-format json every line is one object, the books among them."""
    need_root()
    with agent("--log-format", "json", "--cluster.name=/x", config()) as a:
        a.until_says("sampling has begun")
        a.signal(signal.SIGTERM)
        lines = [json.loads(line) for line in a.end().expect(0).out.splitlines()]
    text = json.dumps(lines)
    assert "--cluster.name" in text and "samples: " in text, lines


RELAY = """
pyroscope.receive_http "in" {
  http {
    listen_address = "127.0.0.1"
    listen_port    = %d
  }
  forward_to = [pyroscope.relabel.r.receiver]
}

pyroscope.relabel "r" {
  forward_to = [pyroscope.write.w.receiver]
  rule {
    target_label = "cluster"
    replacement  = "c1"
  }
  rule {
    action        = "drop"
    source_labels = ["service_name"]
    regex         = "secret"
  }
}

pyroscope.write "w" {
  endpoint {
    url = "http://127.0.0.1:%d"
  }
}
"""


def message(*parts):
    """Fields of bytes shorter than 128, or of small numbers, in the protobuf format."""
    return b"".join(
        bytes([n << 3 | 2, len(v)]) + v if isinstance(v, bytes) else bytes([n << 3, v])
        for n, v in parts
    )


def small_profile():
    """One stack of `main`, 5 ns, as an SDK may write it: not compressed, without a time."""
    return message(
        (1, message((1, 1), (2, 2))),
        (2, message((1, 1), (2, 5))),
        (4, message((1, 1), (3, 64), (4, message((1, 1))))),
        (5, message((1, 1), (2, 3))),
        *((6, s) for s in (b"", b"cpu", b"nanoseconds", b"main")),
        (11, message((1, 1), (2, 2))),
    )


def pushed(service, profile):
    pairs = ((b"__name__", b"process_cpu"), (b"service_name", service))
    labels = message(*((1, message((1, name), (2, value))) for name, value in pairs))
    inner = labels + message((2, message((1, profile))))
    return b"\x0a" + bytes([len(inner) & 127 | 128, len(inner) >> 7]) + inner


def post(url, body):
    kind = {"Content-Type": "application/proto"}
    with urllib.request.urlopen(urllib.request.Request(url, body, kind)) as answer:
        assert answer.status == 200, answer.status


@case
def profiles_of_others_pass():
    """What SDKs push arrives byte for byte under relabeled names; what is dropped is counted."""
    port, now = free_port(), int(time.time())
    profile, recording = small_profile(), b"FLR\0\0\2\0\0" + os.urandom(300)
    at = f"http://127.0.0.1:{port}"
    with Server(TAKEN) as server, agent(
        "--ledger", "ledger.json", write("relay.alloy", RELAY % (port, server.port))
    ) as a:
        a.until_says("listening at")
        for service in (b"shop", b"secret"):
            post(f"{at}/push.v1.PusherService/Push", pushed(service, profile))
        post(f"{at}/ingest?name=jvm&format=jfr&from={now - 10}&until={now}", recording)
        a.until(lambda: len(server.seen) == 2, "two of three have arrived")
        a.signal(signal.SIGTERM)
        a.end().expect(0)
    arrived = {path: body for _, path, _, body in server.seen}
    (series,) = [v for _, v in fields(arrived.pop("/push.v1.PusherService/Push"))]
    labels = {tuple(v for _, v in fields(value)) for number, value in fields(series) if number == 1}
    assert {(b"cluster", b"c1"), (b"service_name", b"shop")} <= labels, labels
    (sample,) = [v for number, v in fields(series) if number == 2]
    assert dict(fields(sample))[1] == profile
    ((path, body),) = arrived.items()
    assert path.startswith("/ingest?name=jvm%7Bcluster%3Dc1%7D&from=") and body == recording, path
    with open("ledger.json") as f:
        books = json.load(f)
    assert books_hold(books) == 3
    assert books["writers"]["pyroscope.write.w"]["dropped"] == {"pyroscope.relabel.r:relabeled": 1}


@case
def bad_starts():
    """What cannot start says why and fails."""
    andiron("run", write("x.alloy", "nonsense {")).expect(1, "x.alloy:1:")
    andiron("run", "absent.alloy").expect(1, "absent.alloy")
    andiron("run", "--frobnicate", "x.alloy").expect(2, "no option")


main()
