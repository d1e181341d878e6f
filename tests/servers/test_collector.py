#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_collector.py HARNESS: otlp.write's engine against a real OpenTelemetry Collector.

What the Collector would send on is what is judged: its totals are the ledger's, each message is
clean under the rules of the signal, and the k8sattributes processor finds the pod of each resource
at a real API server.
"""

import contextlib
import gzip
import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading
import uuid

from otelcol import CONTAINER, Collector, processors, shop
from otlp import Message
from parca import Parca
from pyroscope import Pyroscope, free_ports, run, until

HARNESS = os.path.abspath(sys.argv[1])
PERIOD = 10_000_000

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:%(grpc)d}
      http: {endpoint: 127.0.0.1:%(http)d}
%(processors)s
exporters:
  journal: {path: FOLDER/journal}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    profiles:
      receivers: [otlp]
%(pipeline)s
      exporters: [journal]
"""


class Pushed(Collector):
    """One that is pushed to; `association` names the attribute by which pods are found."""

    def __init__(self, association=None, kubeconfig=""):
        grpc, web = free_ports(2)
        self.urls = {"otlp_grpc": f"http://127.0.0.1:{grpc}", "otlp": f"http://127.0.0.1:{web}"}
        config = CONFIG % {
            "grpc": grpc,
            "http": web,
            "processors": processors(association) if association else "",
            "pipeline": "      processors: [k8s_attributes]" if association else "",
        }
        super().__init__(config, kubeconfig, listens=(grpc, web))
        assert self.process.poll() is None, self.said()


def push(url, **what):
    """Runs the harness; its ledger."""
    environment = {
        **os.environ,
        "PUSH_URL": url,
        **{f"PUSH_{k.upper()}": str(v) for k, v in {"timeout_ms": 60000, **what}.items()},
    }
    done = subprocess.run(
        [HARNESS, "push"], env=environment, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


@contextlib.contextmanager
def sink():
    """A port that takes everything: its URL, and the messages as they came."""
    messages = []

    class Take(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            messages.append(
                Message(
                    gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body
                )
            )
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Take) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", messages
        server.shutdown()


def as_sent():
    """What leaves is clean before anybody has touched it, that of a producer that knows no rules
    too."""
    with sink() as (url, messages):
        push(url, protocol="otlp", prefix="c", series=4, rows=50)
        ledger = push(url, protocol="otlp", odd=100, drain_ms=120000)
        assert len(messages) == 4 + ledger["requests"], (len(messages), ledger)
        for message in messages:
            message.check()
        for message in messages[:40]:
            message.check_elsewhere()


def both_wires():
    """By gRPC and by HTTP: all arrives, clean, and its total is the ledger's."""
    for protocol in ("otlp_grpc", "otlp"):
        with Pushed() as collector:
            ledger = push(
                collector.urls[protocol],
                protocol=protocol,
                prefix="c",
                batches=3,
                series=4,
                rows=50,
                samples=3,
            )
            messages = collector.messages()
            assert ledger["delivered"] == ledger["taken"] == 1800 and ledger["healthy"], ledger
            assert sum(m.total() for m in messages) == 1800, [m.total() for m in messages]
            for message in messages:
                message.check()
                assert message.sample_types() == {
                    "samples:count:cpu:nanoseconds"
                }, message.sample_types()
                assert "function_0_1" in message.names(), message.names()
            resources = [resource for m in messages for resource, _ in m.profiles()]
            assert {r["service.name"] for r in resources} == {"c0", "c1", "c2", "c3"}, resources
            assert {r["process.pid"] for r in resources} == {1}, resources


def odd_profiles():
    """Of the profiles of a producer that knows no rules none is refused, and none breaks a rule of
    the signal."""
    batches = min(int(os.environ.get("ANDIRON_ODD_BATCHES", "300")), 3000)
    with Pushed() as collector:
        ledger = push(collector.urls["otlp"], protocol="otlp", odd=batches, drain_ms=120000)
        assert (
            set(ledger["dropped"]) <= {"zero", "negative", "no_type"} and not ledger["uncertain"]
        ), ledger
        messages = collector.messages()
        assert len(messages) == ledger["requests"] and not ledger["retries"], (
            len(messages),
            ledger,
        )
        for message in messages:
            message.check()


def enriched():
    """The pod of a resource is found at the API server by container.id, by k8s.pod.uid and by
    k8s.pod.ip."""
    with shop() as (made, kubeconfig):
        uid = made["web-1"]["metadata"]["uid"]
        for key, label in (
            ("container.id", f"__container_id__={CONTAINER}"),
            ("k8s.pod.uid", f"__meta_kubernetes_pod_uid={uid}"),
            ("k8s.pod.ip", "k8s.pod.ip=10.2.0.1"),
        ):
            with Pushed(key, kubeconfig) as collector:
                # The processor's list of pods has come when it finds one.
                def found():
                    push(
                        collector.urls["otlp_grpc"], protocol="otlp_grpc", prefix="k", labels=label
                    )
                    message = collector.messages()[-1]
                    message.check()
                    return next(message.profiles())[0]

                until(
                    lambda: found().get("team") == "front",
                    lambda: f"{key}: {found()}\n{collector.said()}",
                )
                resource = found()
                wanted = {
                    "k8s.pod.name": "web-1",
                    "k8s.namespace.name": "shop",
                    "k8s.pod.uid": uid,
                    "k8s.node.name": "n1",
                }
                if key == "container.id":
                    wanted |= {
                        "k8s.container.name": "app",
                        "container.image.name": "registry/app",
                        "container.id": CONTAINER,
                    }
                assert wanted.items() <= resource.items(), (key, resource)


def same_total():
    """One profile has one total, whichever way it went; the type by each way is the one that the
    documents name."""
    count, scope = 4 * 50 * 3, "andiron:samples:count:cpu:nanoseconds:delta"
    what = {"series": 4, "rows": 50, "samples": 3}
    ways = {}
    with Pyroscope() as server:
        for protocol in ("pyroscope", "otlp"):
            name = f"w{uuid.uuid4().hex[:12]}"
            push(server.url, protocol=protocol, prefix=name, **what)
            ways[f"{protocol} to Pyroscope"] = sum(
                server.total(f'{{service_name="{name}{i}"}}') for i in range(4)
            )
            kinds = {
                one["__profile_type__"]
                for i in range(4)
                for one in server.series(f'{{service_name="{name}{i}"}}')
            }
            assert kinds == {"process_cpu:cpu:nanoseconds:cpu:nanoseconds"}, (protocol, kinds)
    with Parca() as server:
        for protocol, kind in (
            ("parca", "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"),
            ("otlp_grpc", scope),
        ):
            name = f"w{uuid.uuid4().hex[:12]}"
            push(server.url, protocol=protocol, prefix=name, **what)
            ways[f"{protocol} to Parca"] = sum(
                server.total(f'{{service_name="{name}{i}"}}', kind) for i in range(4)
            )
            assert kind in server.types(), server.types()
    with Pushed() as collector:
        for protocol in ("otlp_grpc", "otlp"):
            before = sum(m.total() for m in collector.messages())
            push(collector.urls[protocol], protocol=protocol, prefix="w", **what)
            ways[f"{protocol} to a Collector"] = (
                sum(m.total() for m in collector.messages()) - before
            ) * PERIOD
        assert {t for m in collector.messages() for t in m.sample_types()} == {
            "samples:count:cpu:nanoseconds"
        }
    assert set(ways.values()) == {count * PERIOD} and len(ways) == 6, ways
    table = (
        pathlib.Path(__file__)
        .parents[2]
        .joinpath("docs/decisions/0043-otlp.md")
        .read_text(encoding="utf-8")
    )
    for kind in (
        "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
        "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta",
        scope,
        "samples:count:cpu:nanoseconds",
    ):
        assert f"`{kind}`" in table, f"{kind} stands nowhere in docs/decisions/0043-otlp.md"


sys.exit(run([as_sent, both_wires, odd_profiles, same_total, enriched]))
