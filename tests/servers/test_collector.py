#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_collector.py HARNESS: otlp.write's engine against a real OpenTelemetry Collector.

What the Collector would send on is what is judged: its totals are the ledger's, each message is
clean under the rules of the signal, and the k8sattributes processor finds the pod of each resource
at a real API server.
"""

import base64
import contextlib
import gzip
import http.server
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import uuid

import pyroscope
from kubernetes import ADMIN, Cluster
from otlp import Message
from parca import Parca
from pyroscope import Pyroscope, Skip, free_ports, get, run

HARNESS = os.path.abspath(sys.argv[1])
PERIOD = 10_000_000
CONTAINER = "a1" * 32
KEPT = (
    "k8s.pod.name",
    "k8s.namespace.name",
    "k8s.pod.uid",
    "k8s.node.name",
    "k8s.container.name",
    "container.image.name",
)

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:%(grpc)d}
      http: {endpoint: 127.0.0.1:%(http)d}
%(processors)s
exporters:
  journal: {path: %(folder)s/journal}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    profiles:
      receivers: [otlp]
%(pipeline)s
      exporters: [journal]
"""
PROCESSORS = """
processors:
  k8s_attributes:
    auth_type: kubeConfig
    extract:
      metadata: [%s]
      labels: [{tag_name: team, key: team, from: pod}]
    pod_association:
      - sources: [{from: resource_attribute, name: %s}]
"""


class Collector:
    """A Collector in a folder of its own; `association` names the attribute by which pods are
    found."""

    def __init__(self, association=None, kubeconfig=""):
        self.place = tempfile.TemporaryDirectory(prefix="andiron-collector-")
        folder = self.place.name
        grpc, web = free_ports(2)
        self.urls = {"otlp_grpc": f"http://127.0.0.1:{grpc}", "otlp": f"http://127.0.0.1:{web}"}
        self.journal = pathlib.Path(folder, "journal")
        pathlib.Path(folder, "config.yaml").write_text(
            CONFIG
            % {
                "grpc": grpc,
                "http": web,
                "folder": folder,
                "processors": PROCESSORS % (", ".join(KEPT), association) if association else "",
                "pipeline": "      processors: [k8s_attributes]" if association else "",
            },
            encoding="utf-8",
        )
        self.log = open(f"{folder}/log", "ab")
        self.process = subprocess.Popen(
            [
                get("collector"),
                f"--config=file:{folder}/config.yaml",
                "--feature-gates=service.profilesSupport",
            ],
            stdout=self.log,
            stderr=self.log,
            env={**os.environ, "KUBECONFIG": kubeconfig},
        )
        until(
            lambda: self.process.poll() is not None or (self.listens(grpc) and self.listens(web)),
            self.said,
        )
        assert self.process.poll() is None, self.said()

    def said(self):
        return (
            f"{self.process.poll()}: "
            + pathlib.Path(self.place.name, "log").read_text(encoding="utf-8")[-3000:]
        )

    @staticmethod
    def listens(port):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0

    def messages(self):
        """What it would have sent on."""
        lines = (
            self.journal.read_text(encoding="ascii").splitlines() if self.journal.exists() else []
        )
        return [Message(base64.b64decode(line)) for line in lines]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.log.close()
        self.place.cleanup()


until = pyroscope.until


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
        with Collector() as collector:
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
    with Collector() as collector:
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


def pod(name, ip, team, container):
    spec = {
        "nodeName": "n1",
        "automountServiceAccountToken": False,
        "containers": [{"name": "app", "image": "registry/app:1"}],
    }
    status = {
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "hostIP": "10.1.0.1",
        "containerStatuses": [
            {
                "name": "app",
                "image": "registry/app:1",
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "containerID": f"containerd://{container}",
            }
        ],
    }
    return {
        "metadata": {"name": name, "namespace": "shop", "labels": {"team": team}},
        "spec": spec,
    }, status


def enriched():
    """The pod of a resource is found at the API server by container.id, by k8s.pod.uid and by
    k8s.pod.ip."""
    try:
        get("kube-apiserver")
    except pyroscope.Skip as why:
        raise Skip(str(why)) from why
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with Cluster() as cluster:
            pods = "/api/v1/namespaces/shop/pods"
            cluster.create("/api/v1/namespaces", {"metadata": {"name": "shop"}})
            made = {}
            for name, ip, team, container in (
                ("web-1", "10.2.0.1", "front", CONTAINER),
                ("db-1", "10.2.0.2", "data", "b2" * 32),
            ):
                body, status = pod(name, ip, team, container)
                made[name] = cluster.create(pods, body, status)
            config = {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "x",
                "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                "clusters": [
                    {
                        "name": "x",
                        "cluster": {"server": cluster.server, "certificate-authority": cluster.ca},
                    }
                ],
                "users": [{"name": "x", "user": {"token": ADMIN}}],
            }
            pathlib.Path("kubeconfig").write_text(json.dumps(config), encoding="utf-8")
            uid = made["web-1"]["metadata"]["uid"]
            for key, label in (
                ("container.id", f"__container_id__={CONTAINER}"),
                ("k8s.pod.uid", f"__meta_kubernetes_pod_uid={uid}"),
                ("k8s.pod.ip", "k8s.pod.ip=10.2.0.1"),
            ):
                with Collector(key, os.path.abspath("kubeconfig")) as collector:
                    # The processor's list of pods has come when it finds one.
                    def found():
                        push(
                            collector.urls["otlp_grpc"],
                            protocol="otlp_grpc",
                            prefix="k",
                            labels=label,
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
        os.chdir("/")


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
    with Collector() as collector:
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
