#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_push.py HARNESS: pyroscope.write's engine against a Pyroscope server.

The equation that each test checks: what SelectMergeProfile gives back is what
the ledger says was delivered, to the sample.
"""

import json
import os
import subprocess
import sys
import tempfile
import uuid

from pyroscope import Pyroscope, run

HARNESS = sys.argv[1]
PERIOD = 10_000_000


def prefix():
    """Names of series that no other test uses, so that servers may be shared."""
    return f"t{uuid.uuid4().hex[:12]}-"


def push(server, **what):
    """Runs the harness; its ledger. Names are PUSH_… in lower case."""
    environment = {
        **os.environ,
        "PUSH_URL": server.url,
        **{f"PUSH_{k.upper()}": str(v) for k, v in what.items()},
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
    ledger = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    there = sum(ledger[level] for level in ("delivered", "spooled", "uncertain"))
    assert ledger["taken"] + ledger["carried"] == there + sum(ledger["dropped"].values()), ledger
    return {**ledger, "says": done.stdout + done.stderr}


def stored(server, name, series):
    """Samples that the server has of the series NAME0, NAME1, …"""
    return sum(server.total(f'{{service_name="{name}{i}"}}') for i in range(series)) // PERIOD


def whole_run():
    """What was delivered is what is read back, to the sample."""
    with Pyroscope() as server:
        name = prefix()
        ledger = push(server, prefix=name, batches=5, series=20, rows=50, samples=3)
        assert ledger["delivered"] == ledger["taken"] == 5 * 20 * 50 * 3, ledger
        assert stored(server, name, 20) == ledger["delivered"]
        assert ledger["healthy"], ledger


def type_and_labels():
    """The type is process_cpu:cpu:nanoseconds:cpu:nanoseconds, the labels are the group's."""
    with Pyroscope() as server:
        name = prefix()
        push(server, prefix=name, series=2)
        found = server.series(f'{{service_name="{name}1"}}')
        assert len(found) == 1, found
        assert found[0]["__profile_type__"] == "process_cpu:cpu:nanoseconds:cpu:nanoseconds", found
        assert not {label for label in found[0] if label.startswith("__process")}, found
        assert {"service_name", "__name__"} <= set(server.label_names())


def large():
    """What is too large for one profile, or for one request, is split and its sum kept."""
    with Pyroscope() as server:
        name = prefix()
        ledger = push(server, prefix=name, series=2, rows=20000)
        assert stored(server, name, 2) == ledger["delivered"] == 40000, ledger
        assert ledger["retries"] == 0, ledger


def by_otlp():
    """The same profiles by OTLP over HTTP: the same totals, labelled by the target's own
    identity."""
    with Pyroscope() as server:
        name = prefix()
        ledger = push(server, protocol="otlp", prefix=name, batches=3, series=4, rows=50, samples=3)
        assert ledger["delivered"] == ledger["taken"] == stored(server, name, 4) == 1800, ledger
        assert ledger["requests"] == 12 and ledger["healthy"], ledger
        if server.stand_in:
            found = server.series(f'{{service_name="{name}1"}}')
            assert {one["process_pid"] for one in found} == {"1"} and "host_name" in found[0], found


def otlp_elsewhere():
    """A server that takes no OTLP is named, and a fault that may have carried it out is
    uncertain."""
    with Pyroscope() as server:
        ledger = push(server, protocol="otlp_grpc", prefix=prefix(), drain_ms=500)
        assert ledger["delivered"] == 0 and not ledger["healthy"], ledger


def odd_profiles():
    """Of the profiles of a producer that knows no rules none that is sent is refused, each repair
    having been made."""
    batches = int(os.environ.get("ANDIRON_ODD_BATCHES", "2000"))
    with Pyroscope("--rate-mib", "400", "--burst-mib", "400") as server:
        ledger = push(server, odd=batches, drain_ms=60000, timeout_ms=60000)
        assert set(ledger["dropped"]) <= {"zero", "negative", "no_type"}, ledger
        assert ledger["retries"] == 0 and ledger["profiles"] > batches, ledger
        assert all(n >= batches // 40 for n in ledger["repairs"].values()), ledger
        assert 3 * ledger["groups"] <= 10 * ledger["plain"], ledger
        print(
            f"# {ledger['profiles']} profiles, {ledger['plain']} of {ledger['groups']} groups "
            f"valid, {ledger['repairs']}",
            flush=True,
        )


def lost_answers():
    """A profile that is sent again because its answer was lost counts once after compaction."""
    with Pyroscope() as server:
        server.fault("lost", n=3)
        name = prefix()
        ledger = push(server, prefix=name, series=5, rows=10)
        assert ledger["delivered"] == ledger["taken"] and ledger["retries"] >= 1, ledger
        assert stored(server, name, 5) > ledger["delivered"]
        assert server.compact() > 0
        assert stored(server, name, 5) == ledger["delivered"]


def times_differ():
    """Compaction takes no profile of a run without faults: no series has one time twice."""
    with Pyroscope() as server:
        name = prefix()
        ledger = push(server, prefix=name, batches=20, series=3, rows=10)
        assert server.compact() == 0
        assert stored(server, name, 3) == ledger["delivered"]


def failing():
    """Every transient fault is survived."""
    for mode, code in (
        ("code", 500),
        ("code", 503),
        ("code", 504),
        ("code", 429),
        ("reset", 0),
        ("garbage", 0),
    ):
        with Pyroscope() as server:
            server.fault(mode, n=3, code=code)
            name = prefix()
            ledger = push(server, prefix=name, series=3)
            assert ledger["delivered"] == ledger["taken"], (mode, code, ledger)
            assert stored(server, name, 3) == ledger["delivered"], (mode, code)


def hanging():
    """A server that hangs, or answers a byte a second, costs one timeout a try."""
    for mode in ("hang", "slow"):
        with Pyroscope() as server:
            server.fault(mode, n=2)
            name = prefix()
            ledger = push(server, prefix=name, timeout_ms=3000)
            assert ledger["delivered"] == ledger["taken"] and ledger["retries"] == 2, ledger
            assert stored(server, name, 1) == ledger["delivered"]


def dead():
    """A server that never recovers costs the deadline; what it was sent it may have, the cause is
    named."""
    with Pyroscope() as server:
        server.fault("hang", n=1000)
        ledger = push(server, series=2, timeout_ms=1500, drain_ms=5000)
        assert ledger["uncertain"] == ledger["taken"] and not ledger["dropped"], ledger
        assert not ledger["healthy"] and "no answer from 127.0.0.1:" in ledger["says"], ledger


def permanent():
    """A 500 that no retry would heal is not retried, and is counted."""
    with Pyroscope() as server:
        server.fault("code", n=1000, code=500, message="proto: integer overflow")
        ledger = push(server)
        assert ledger["dropped"] == {"refused": ledger["taken"]} and ledger["requests"] == 1, ledger
        assert "proto: integer overflow" in ledger["says"], ledger


def one_bad_series():
    """Of many series in one request the server's refusal costs only the bad one."""
    with Pyroscope("--max-label-value", "40") as server:
        server.needs_stand_in()
        name = prefix()
        good = push(server, prefix=name, series=9)  # NAME0 … NAME8
        assert good["delivered"] == good["taken"], good
        name = "b" * 39
        ledger = push(server, prefix=name, series=11)  # NAME10 is too long by one
        assert ledger["dropped"] == {"refused": 10} and ledger["delivered"] == 100, ledger
        server.compact()
        assert stored(server, name, 10) == ledger["delivered"]


def tenants():
    """Tenants are kept apart by X-Scope-OrgID."""
    with Pyroscope() as server:
        server.needs_stand_in()
        name = prefix()
        ledger = push(server, prefix=name, tenant="blue")
        assert stored(server, name, 1) == 0
        server.headers = {"X-Scope-OrgID": "blue"}
        assert stored(server, name, 1) == ledger["delivered"]


def rate_limited():
    """More than the server takes at once arrives in the end."""
    with Pyroscope("--burst-mib", "1.6", "--rate-mib", "3") as server:
        server.needs_stand_in()
        name = prefix()
        ledger = push(server, prefix=name, batches=3, series=3, rows=6000, backoff_ms=100)
        server.compact()
        assert ledger["delivered"] == ledger["taken"], ledger
        assert stored(server, name, 3) == ledger["delivered"]


def certificate(folder):
    """A CA, and a certificate of its for the name pyroscope.test; the files' paths."""

    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=folder)

    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    openssl("req", "-x509", *new, "-subj", "/CN=test CA", "-keyout", "ca.key", "-out", "ca.pem")
    openssl(
        "req",
        "-x509",
        *new,
        "-subj",
        "/CN=pyroscope.test",
        "-addext",
        "subjectAltName=DNS:pyroscope.test",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-keyout",
        "server.key",
        "-out",
        "server.pem",
    )
    return [f"{folder}/{name}" for name in ("ca.pem", "server.pem", "server.key")]


def over_tls():
    """TLS: the CA that is named is trusted for the name that is expected, and nothing else is."""
    with tempfile.TemporaryDirectory() as folder:
        ca, cert, key = certificate(folder)
        with Pyroscope("--tls-cert", cert, "--tls-key", key) as server:
            server.needs_stand_in()
            name = prefix()
            ledger = push(server, prefix=name, ca=ca, server_name="pyroscope.test")
            assert stored(server, name, 1) == ledger["delivered"] == ledger["taken"], ledger
            for wrong, cause in (
                ({}, "certificate"),
                ({"ca": ca}, "matches target host name"),
                ({"ca": ca, "server_name": "another.test"}, "matches target host name"),
                ({"ca": f"{folder}/none.pem", "server_name": "pyroscope.test"}, "CA certificates"),
            ):
                ledger = push(server, prefix=name, drain_ms=3000, **wrong)
                assert ledger["delivered"] == 0 and not ledger["healthy"], (wrong, ledger)
                assert "TLS with 127.0.0.1:" in ledger["says"] and cause in ledger["says"], (
                    wrong,
                    ledger,
                )


sys.exit(
    run(
        [
            whole_run,
            type_and_labels,
            large,
            by_otlp,
            otlp_elsewhere,
            odd_profiles,
            lost_answers,
            times_differ,
            failing,
            hanging,
            dead,
            permanent,
            one_bad_series,
            tenants,
            rate_limited,
            over_tls,
        ]
    )
)
