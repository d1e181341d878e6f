#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_parca.py HARNESS: what a real Parca answers, row by row, and parca.write's engine against
it.

The rows are what the writer's table of answers was made from. The equation of
the rest: what the server gives back is what the ledger says was delivered.
"""

import contextlib
import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import wire
from parca import WRITE, Parca, series
from pyroscope import free_ports, run, until

HARNESS = sys.argv[1]
PERIOD = 10_000_000
HOUR = 3600 * 10**9
EXPORT = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
SERVER = None
OK = (0, "")


def labels(*more, name="process_cpu"):
    return [
        *([("__name__", name)] if name else []),
        ("service_name", f"r{uuid.uuid4().hex[:12]}"),
        *more,
    ]


def pprof(*args, duration=10**10, **kwargs):
    return wire.profile(*args, **kwargs) + wire.number(10, duration)


def one(*args, **kwargs):
    series_labels = kwargs.pop("labels", None) or labels()
    return SERVER.write(series(series_labels, pprof(*args, **kwargs)))


def raw(data):
    return SERVER.write(series(labels(), data, packed=False))


ROWS = [
    (
        "an empty label set",
        lambda: SERVER.write(series([], pprof())),
        (3, "missing __name__ label"),
    ),
    ("no __name__", lambda: one(labels=labels(name=None)), (3, "missing __name__ label")),
    ("no service_name", lambda: one(labels=[("__name__", "process_cpu")]), OK),
    (
        "a label twice",
        lambda: one(labels=labels(("x", "1"), ("x", "2"))),
        (3, "duplicate label name: x"),
    ),
    (
        "odd and long labels",
        lambda: one(labels=labels(("a.b-ü", "x"), ("n" * 5000, "v" * 10000))),
        OK,
    ),
    ("100 labels", lambda: one(labels=labels(*((f"l{i}", "x") for i in range(98)))), OK),
    (
        "a dash in the name",
        lambda: one(labels=labels(name="process-cpu")),
        (2, "invalid profile type at row 0"),
    ),
    (
        "a dash in the type",
        lambda: one(strings=["", "c-pu", *wire.STRINGS[2:]]),
        (2, "invalid profile type at row 0"),
    ),
    ("65 minutes old", lambda: one(at=time.time_ns() - HOUR * 65 // 60), OK),
    ("two days old", lambda: one(at=time.time_ns() - HOUR * 48), OK),
    ("an hour ahead", lambda: one(at=time.time_ns() + HOUR), OK),
    ("no time", lambda: one(at=0), OK),
    ("no samples", lambda: one([]), OK),
    ("no sample types", lambda: one([], types=()), OK),
    (
        "a sample without types",
        lambda: one([wire.sample([])], types=()),
        (3, "missing sample type information"),
    ),
    ("no series", lambda: SERVER.write(), OK),
    ("a series without samples", lambda: SERVER.write(series(labels())), OK),
    ("garbage", lambda: raw(b"\xff" * 40), (3, "failed to parse profile: ")),
    ("text", lambda: raw(b"this is no profile at all"), (3, "failed to parse profile: ")),
    (
        "gzip cut off",
        lambda: raw(gzip.compress(wire.profile())[:40]),
        (2, "decompressing profile: unexpected EOF"),
    ),
    (
        "a message cut off",
        lambda: SERVER.call(WRITE, wire.piece(2, b"x" * 50)[:20])[:2],
        (13, "unexpected EOF"),
    ),
    (
        "two values, one type",
        lambda: one([wire.sample([1, 2])]),
        (3, "mismatch: sample has 2 values vs. 1 types"),
    ),
    ("function ids not from 1", lambda: one(function=(7, 3)), (3, "function id is not sequential")),
    (
        "string 0 not empty",
        lambda: one(strings=["zz", *wire.STRINGS[1:]]),
        (3, "first item in string table"),
    ),
    ("a string index too large", lambda: one(function=(1, 99)), (3, "index 99")),
    ("bad UTF-8", lambda: one(strings=[*wire.STRINGS, b"\xff\xfe"]), OK),
    ("function id 0", lambda: one(function=(0, 3)), (3, "function id is not sequential")),
    ("no mapping, addresses alone", lambda: SERVER.write(series(labels(), wire.bare())), OK),
    ("all values zero", lambda: one([wire.sample([0])]), OK),
    ("20,000 samples", lambda: one([wire.sample()] * 20000), OK),
    ("70,000 samples", lambda: one([wire.sample()] * 70000), OK),
    ("OTLP without a dictionary", lambda: export("dictionary"), (2, "dictionary is nil")),
    ("OTLP without a period type", lambda: export("period_type"), (2, "period type is nil")),
    ("OTLP with as many times as values", lambda: export(values=(1, 1), times=(1, 2)), OK),
    ("OTLP", lambda: export(), OK),
]


def export(*left_out, **what):
    """One OTLP message: status and message."""
    return SERVER.call(EXPORT, wire.otlp("rows", left_out=left_out, **what))[:2]


def row(title, send, expected):
    def test():
        status, text = send()
        assert status == expected[0] and expected[1] in text, f"{status} {text[:300]}"

    test.__doc__ = title
    return test


def total_of(*profiles):
    """What a series of these reads back as."""
    service = f"r{uuid.uuid4().hex[:12]}"
    assert (
        SERVER.write(series([("__name__", "process_cpu"), ("service_name", service)], *profiles))
        == OK
    )
    return SERVER.total(f'{{service_name="{service}"}}')


def too_large():
    """A message of 65 MiB is refused, where the connection stands until that is said."""
    status, text = raw(b"\0" * (65 << 20))
    assert status == -1 or (
        status == 8 and "received message larger than max" in text
    ), f"{status} {text}"
    assert one() == OK


def summed_twice():
    """The same profile twice is counted twice; so is one of the same time."""
    again = pprof(at=time.time_ns())
    assert total_of(again, again) == 14


def values():
    """A zero sample is gone, a negative one is kept."""
    assert total_of(pprof([wire.sample([0]), wire.sample([9]), wire.sample([-2])])) == 7


def no_duration():
    """Without a duration the type is another one."""
    service = f"r{uuid.uuid4().hex[:12]}"
    assert (
        SERVER.write(
            series([("__name__", "process_cpu"), ("service_name", service)], pprof(duration=0))
        )
        == OK
    )
    assert (
        SERVER.total(f'{{service_name="{service}"}}', "process_cpu:cpu:nanoseconds:cpu:nanoseconds")
        == 7
    )


def all_or_nothing():
    """Of three series with one bad one none is stored."""
    service = f"r{uuid.uuid4().hex[:12]}"
    good = series([("__name__", "process_cpu"), ("service_name", service)], pprof())
    assert SERVER.write(good, series([], pprof()), good)[0] == 3
    assert SERVER.total(f'{{service_name="{service}"}}') == 0


def deadly():
    """A series without labels, an empty profile, one without a period type; OTLP of two values,
    without a scope, or a resource: the process dies."""
    for body in (
        series(None, pprof()),
        series(labels(), b"", packed=False),
        series(labels(), pprof(period_type=None)),
    ):
        assert SERVER.write(body)[0] == -1
        SERVER.process.wait(60)
        SERVER.restart()
    for what in ({"values": (1, 2)}, {"left_out": ("scope",)}, {"left_out": ("resource",)}):
        assert SERVER.call(EXPORT, wire.otlp("rows", **what))[0] == -1, what
        SERVER.process.wait(60)
        SERVER.restart()


def sample_labels():
    """Text labels of samples become no labels, and totals are what they are without."""
    strings = [*wire.STRINGS, "thread", "w1"]
    assert total_of(pprof([wire.sample([7], labels=[(6, 7)])], strings=strings)) == 7
    assert "thread" not in SERVER.labels()


def counted():
    """A count with a period of nanoseconds reads back as nanoseconds, every value times the
    period."""
    service = f"r{uuid.uuid4().hex[:12]}"
    strings = ["", "samples", "count", "work", "/bin/work", "cpu", "nanoseconds"]
    body = pprof([wire.sample([7])], strings=strings, period_type=(5, 6))
    assert (
        SERVER.write(series([("__name__", "process_cpu"), ("service_name", service)], body)) == OK
    )
    assert (
        SERVER.total(
            f'{{service_name="{service}"}}', "process_cpu:samples:count:cpu:nanoseconds:delta"
        )
        == 7 * PERIOD
    )


def node_label():
    """The label `node` is NODE_NAME where that is set, else the host's name; Parca knows the agent
    by it."""
    for name in ("node-of-a-cluster", None):
        service = prefix()
        push(SERVER.url, prefix=service, **({"node": name} if name else {}))
        name = name or os.uname().nodename
        assert SERVER.total(f'{{service_name="{service}0",node="{name}"}}') == 10 * PERIOD
        agents = json.loads(SERVER.get("/api/agents")[1])["agents"]
        assert name in [agent["id"] for agent in agents], agents


def push(url, **what):
    """Runs the harness; its ledger. `node` is NODE_NAME, which else is not set."""
    outside = {name: value for name, value in os.environ.items() if name != "NODE_NAME"}
    if "node" in what:
        outside["NODE_NAME"] = what.pop("node")
    environment = {
        **outside,
        "PUSH_URL": url,
        **{
            f"PUSH_{k.upper()}": str(v)
            for k, v in {"protocol": "parca", "timeout_ms": 60000, **what}.items()
        },
    }
    done = subprocess.run(
        [HARNESS, "push"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def prefix():
    return f"t{uuid.uuid4().hex[:12]}x"


def stored(name, n):
    return sum(SERVER.total(f'{{service_name="{name}{i}"}}') for i in range(n)) // PERIOD


def whole_run():
    """What was delivered is what is read back, to the sample; type, labels and node are there."""
    name = prefix()
    ledger = push(SERVER.url, prefix=name, batches=5, series=20, rows=50, samples=3)
    assert ledger["delivered"] == ledger["taken"] == 15000 and ledger["healthy"], ledger
    assert stored(name, 20) == 15000
    assert "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta" in SERVER.types()
    assert {"node", "service_name"} <= set(SERVER.labels())
    agents = json.loads(SERVER.get("/api/agents")[1])["agents"]
    assert os.uname().nodename in [agent["id"] for agent in agents], agents


def by_otlp():
    """The same profiles by OTLP over gRPC: the same totals. (Names are not to be had: Parca shifts
    them by one.)"""
    name, scope = prefix(), "andiron:samples:count:cpu:nanoseconds:delta"
    ledger = push(
        SERVER.url, protocol="otlp_grpc", prefix=name, batches=3, series=4, rows=50, samples=3
    )
    assert ledger["delivered"] == ledger["taken"] == 1800 and ledger["healthy"], ledger
    assert (
        sum(SERVER.total(f'{{service_name="{name}{i}"}}', scope) for i in range(4)) == 1800 * PERIOD
    )


def odd_profiles():
    """Of the profiles of a producer that knows no rules Parca refuses none, and survives all, by
    both of its intakes."""
    wanted = int(os.environ.get("ANDIRON_ODD_BATCHES", "2200"))
    for protocol, batches in (
        ("parca", wanted),
        ("otlp_grpc", min(wanted, 500)),
    ):  # OTLP: one profile a request
        ledger = push(SERVER.url, protocol=protocol, odd=batches, drain_ms=60000, timeout_ms=60000)
        assert (
            set(ledger["dropped"]) <= {"zero", "negative", "no_type"} and not ledger["uncertain"]
        ), ledger
        assert (
            ledger["retries"] == 0
            and ledger["profiles"] > batches
            and SERVER.process.poll() is None
        ), ledger
        assert 3 * ledger["groups"] <= 10 * ledger["plain"], ledger
        print(
            f"# {protocol}: {ledger['profiles']} profiles, {ledger['plain']} of "
            f"{ledger['groups']} groups valid, {ledger['repairs']}",
            flush=True,
        )


def idle():
    """Between batches the server may be left alone for as long as it likes: nothing is
    uncertain."""
    name = prefix()
    ledger = push(SERVER.url, prefix=name, batches=3, pause_ms=2500)
    assert (
        ledger["delivered"] == ledger["taken"] == stored(name, 1) == 30 and not ledger["retries"]
    ), ledger


def large():
    """120,000 stacks of one series are split, and their sum is kept."""
    name = prefix()
    ledger = push(SERVER.url, prefix=name, rows=120000)
    assert ledger["delivered"] == ledger["taken"] == stored(name, 1) == 120000, ledger


def late_server():
    """What waits in the spool while the server is away is delivered once, by the run after."""
    name = prefix()
    with tempfile.TemporaryDirectory() as spool:
        SERVER.stop(signal.SIGKILL)
        ledger = push(SERVER.url, prefix=name, series=3, spool=spool, drain_ms=300)
        assert ledger["spooled"] == ledger["taken"] == 30, ledger
        SERVER.start()
        ledger = push(SERVER.url, prefix=name, series=3, spool=spool)
        assert ledger["carried"] == 30 and ledger["delivered"] == 60, ledger
    assert stored(name, 3) == 60


def handled():
    """Writes that the server has answered."""
    text = SERVER.get("/metrics")[1].decode()
    return sum(
        float(n)
        for n in re.findall(r'grpc_server_handled_total\{.*grpc_method="WriteRaw".*\} (\S+)', text)
    )


@contextlib.contextmanager
def losing_answers(n):
    """A port whose first n connections carry the request to the server, and no answer back."""
    listener = socket.create_server(("127.0.0.1", 0))

    def carry(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def lose(client, server, before):
        until(lambda: handled() != before, "an answer to lose")
        client.shutdown(socket.SHUT_RDWR)
        server.close()

    def serve():
        with contextlib.suppress(OSError):
            for count in range(1000):
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", SERVER.port))
                before = handled()
                threading.Thread(target=carry, args=(client, server), daemon=True).start()
                if count < n:
                    threading.Thread(
                        target=lose, args=(client, server, before), daemon=True
                    ).start()
                else:
                    threading.Thread(target=carry, args=(server, client), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def uncertain():
    """A write whose answer was lost is counted as uncertain, and not repeated."""
    name = prefix()
    with losing_answers(1) as url:
        ledger = push(url, prefix=name, series=4)
    assert ledger["uncertain"] == ledger["taken"] == stored(name, 4) == 40, ledger


def at_least_once():
    """Unless it is asked for: then the server has it twice."""
    name = prefix()
    with losing_answers(1) as url:
        ledger = push(url, prefix=name, series=4, at_least_once=1)
    assert ledger["delivered"] == ledger["taken"] == 40 and stored(name, 4) == 80, ledger


def absent():
    """A port without a server, and one that speaks no gRPC, are named."""
    name = prefix()
    ledger = push(f"http://127.0.0.1:{free_ports(1)[0]}", prefix=name, drain_ms=3000)
    assert ledger["dropped"] == {"deadline": 10} and not ledger["healthy"], ledger


with Parca() as SERVER:
    sys.exit(
        run(
            [
                *(row(*r) for r in ROWS),
                summed_twice,
                values,
                no_duration,
                sample_labels,
                counted,
                node_label,
                all_or_nothing,
                too_large,
                whole_run,
                by_otlp,
                odd_profiles,
                idle,
                large,
                late_server,
                uncertain,
                at_least_once,
                absent,
                deadly,
            ]
        )
    )
