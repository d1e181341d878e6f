#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""discovery.py DECODE MATCH: what discovery.kubernetes costs, as lines led by "|".

A real API server with ANDIRON_BENCH_PODS pods (3,000; ANDIRON_BENCH=long: 10,000), as a list to be
read by DECODE and as a cluster to be followed by the agent; what a sampler pays for as many, by
MATCH; the time from an event to a visible target against a stand-in that says when it sent it.
Figures are printed, never judged.
"""

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [
    os.path.join(HERE, "..", "..", folder) for folder in ("servers", "scenario", "bench")
]
import kubeapi
import pyroscope
import rods
from kubernetes import ADMIN, Cluster, Journal, until
from running import Agent, cpu_seconds
from tap import environment, read, write

DECODE, MATCH = (os.path.abspath(program) for program in sys.argv[1:])
PODS = int(os.environ.get("ANDIRON_BENCH_PODS", "10000" if rods.LONG else "3000"))
NODES = max(PODS // 100, 1)
EVENTS, EVENT_SECONDS = 1000, 5

CLIENT = """
  role              = "pod"
  api_server        = "%s"
  bearer_token_file = "%s"
  tls_config { ca_file = "%s" }
"""
ALONE = 'discovery.kubernetes "pods" {%s}\n'
# The graph of a cluster's agent: what is found, named by the usual rules, for somebody who
# profiles.
RULES = "".join(
    f'  rule {{\n    source_labels = [{json.dumps(source)}]\n    target_label = "{target}"\n  }}\n'
    for source, target in (
        ("__meta_kubernetes_namespace", "namespace"),
        ("__meta_kubernetes_pod_name", "pod"),
        ("__meta_kubernetes_pod_container_name", "container"),
        ("__meta_kubernetes_pod_node_name", "node"),
        ("__meta_kubernetes_pod_label_app", "service_name"),
    )
)
NAMED = (
    ALONE
    + 'discovery.relabel "pods" {\n  targets = discovery.kubernetes.pods.targets\n'
    + RULES.replace("%", "%%")
    + "}\n"
)
SAMPLED = (
    NAMED + 'pyroscope.ebpf "pods" {\n  targets = discovery.relabel.pods.output\n  forward_to = '
    '[profile.file.all.receiver]\n}\nprofile.file "all" {\n  paths = ["profile.pb.gz"]\n}\n'
)
FOLLOWED = (
    NAMED + 'test.journal "pods" {\n  targets = discovery.relabel.pods.output\n  path = "%s"\n}\n'
)


def figure(name, value, aim=""):
    print(f"| {name} | {value} | {aim} |", flush=True)


def pod(node="node-00000"):
    """As a Deployment's pod is: two containers, two ports."""
    ports = lambda name, number: [{"name": name, "containerPort": number}]
    return {
        "metadata": {
            "name": "pod-000000",
            "namespace": "shop",
            "labels": {"app": "web", "pod-template-hash": "5d9c7b8f6"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web-5d9c7b8f6",
                    "uid": "0b1c",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "nodeName": node,
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": "app",
                    "image": "registry.example.org/shop/app:1.2.3",
                    "ports": ports("http", 8080),
                },
                {
                    "name": "proxy",
                    "image": "registry.example.org/mesh/proxy:4.5.6",
                    "ports": ports("metrics", 9090),
                },
            ],
        },
    }


def status():
    return {
        "phase": "Running",
        "podIP": "10.2.3.4",
        "podIPs": [{"ip": "10.2.3.4"}],
        "hostIP": "10.1.0.1",
        "conditions": [
            {"type": t, "status": "True"}
            for t in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "containerStatuses": [
            {
                "name": name,
                "image": "x",
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "started": True,
                "state": {"running": {"startedAt": "2026-11-21T00:00:00Z"}},
                "containerID": f"containerd://{letter * 64}",
            }
            for name, letter in (("app", "a"), ("proxy", "b"))
        ],
    }


class Pods:
    """Copies of one stored pod that differ in name, uid, container id and node, by replacement of
    equal length."""

    def __init__(self, cluster):
        self.cluster = cluster
        cluster.create("/api/v1/namespaces", {"metadata": {"name": "shop"}})
        path = "/api/v1/namespaces/shop/pods"
        self.uid = cluster.create(path, pod(), status())["metadata"]["uid"].encode()
        self.stored = cluster.stored("shop", "pod-000000")

    def variant(self, i):
        return (
            self.stored.replace(b"pod-000000", b"pod-%06d" % i)
            .replace(self.uid, str(uuid.uuid4()).encode())
            .replace(b"a" * 64, uuid.uuid4().hex.encode() * 2)
            .replace(b"node-00000", b"node-%05d" % (i % NODES))
        )

    def put(self, numbers):
        self.cluster.put("shop", {f"pod-{i:06d}": self.variant(i) for i in numbers})


def until_moment(moment):
    """The load that is measured has a rate."""
    while time.monotonic() < moment:
        time.sleep(0.001)  # the poll interval


def anonymous(pid):
    """Anonymous memory, and the highest that all of it has been, in bytes."""
    found = {
        line.split(":")[0]: int(line.split()[1]) * 1024
        for line in read(f"/proc/{pid}/status").splitlines()
        if line.endswith("kB")
    }
    return found["RssAnon"], found["VmHWM"] - found["RssFile"] - found["RssShmem"]


def proportional(pid):
    """PSS in bytes."""
    return next(
        int(line.split()[1]) * 1024
        for line in read(f"/proc/{pid}/smaps_rollup").splitlines()
        if line.startswith("Pss:")
    )


def client(cluster):
    return CLIENT % (cluster.server, write(os.path.abspath("token"), ADMIN), cluster.ca)


def told(program, argument):
    """The lines "name value unit" of a program, {name: the rest}."""
    lines = subprocess.run(
        [program, argument], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return dict(line.split(" ", 1) for line in lines)


def decoding(cluster):
    # A rate needs no more than so much of the slower wire.
    for wire, path, accept in (
        ("protobuf", "/api/v1/pods?resourceVersion=0", "application/vnd.kubernetes.protobuf"),
        ("JSON", "/api/v1/pods?limit=10000", "application/json"),
    ):
        write("list", cluster.fetch(path, accept))
        found = told(DECODE, "list")
        aims = (
            {"read": "≥ 1 GB/s", "heap": "≤ 1,024 B", "peak": "≤ 1.3 x"}
            if wire == "protobuf"
            else {}
        )
        for key, text in (
            ("wire", "a pod on the wire"),
            ("read", "list read, every kept field extracted"),
            ("read-pod", "the same, a pod"),
            ("keep", "list read and kept"),
            ("kept", "kept of a pod"),
            ("heap", "memory of a pod, annotations included"),
            ("annotations", "annotations of a pod"),
            ("peak", "peak while it is read and published"),
            ("publish", "targets made, each"),
        ):
            if wire == "protobuf" or key in ("wire", "read"):
                figure(f"{wire}: {text}", found[key], aims.get(key, ""))


def matching():
    found = told(MATCH, str(2 * PODS))
    figure(
        f"sampler: {2 * PODS:,} targets that arrive in updates of 1,024, CPU time", found["arrival"]
    )
    figure("the same, one that changes later", found["change"])
    figure("the same, memory of one", found["memory"])


@contextlib.contextmanager
def following(text, pods, **env):
    with Agent(write("pods.alloy", text), env=environment(**env)) as agent:
        agent.until_metric("andiron_kubernetes_pods", exactly=pods)
        agent.until_metric("andiron_kubernetes_targets", exactly=2 * pods)
        if "discovery.relabel" in text:
            agent.until_metric("andiron_relabel_output_targets", exactly=2 * pods)
        if "pyroscope.ebpf" in text:
            agent.until_metric("pyroscope_ebpf_active_targets", exactly=2 * pods)
        yield agent
        agent.stop()


GRAPHS = {
    "discovery": (ALONE, ""),
    "discovery and relabeling, for any consumer": (NAMED, "≤ 1,024 B"),
    "discovery, relabeling and the sampler": (SAMPLED, ""),
}


def memory(cluster, before):
    for name, (text, aim) in GRAPHS.items():
        begun = time.monotonic()
        with following(text % client(cluster), PODS) as agent:
            took = time.monotonic() - begun
            now, peak = anonymous(agent.pid)
            figure(
                f"agent of {name}, {PODS:,} pods: anonymous memory, a pod",
                f"{(now - before[name]) / PODS:,.0f} B",
                aim,
            )
            figure("the same, peak until then", f"{peak / now:.2f} x", aim and "≤ 1.3 x")
            figure(
                "the same, annotations",
                f"{agent.metric('andiron_kubernetes_annotation_bytes') / PODS:,.0f} B",
            )
            figure("the same, PSS of the whole", f"{proportional(agent.pid) / 2**20:.1f} MiB")
            figure(
                "the same, from start to all targets",
                f"{PODS / took:,.0f} pods/s, {cpu_seconds(agent.pid):.2f} s of CPU",
            )
    with following(SAMPLED % client(cluster), PODS // NODES, NODE_NAME="node-00000") as agent:
        figure(
            f"agent of all three, the {PODS // NODES} pods of its node: anonymous memory",
            f"{anonymous(agent.pid)[0] / 2**20:.1f} MiB",
            "≤ 8 MiB",
        )


def storm(cluster, pods):
    """CPU while a thousand pods change each second."""
    with following(NAMED % client(cluster), PODS) as agent:
        name, labels = "prometheus_sd_kubernetes_events_total", 'event="update"'
        first, used, begun = agent.metric(name, labels), cpu_seconds(agent.pid), time.monotonic()
        for part in range(EVENT_SECONDS * 20):
            pods.put(random.sample(range(PODS), EVENTS // 20))
            until_moment(begun + (part + 1) / 20)
        took, events = time.monotonic() - begun, agent.metric(name, labels) - first
        figure(
            f"CPU at {events / took:,.0f} pod events a second",
            f"{(cpu_seconds(agent.pid) - used) / took * 100:.2f} % of a core",
        )


def latency():
    """From the moment before an event is sent to its target at a consumer, both on one machine."""
    with kubeapi.KubeApi(initial=True) as api:
        thing = kubeapi.pod("shop", "web", "u1", {"app": "a" * 64})
        text = FOLLOWED % (
            CLIENT
            % (
                f"https://127.0.0.1:{api.port}",
                write(os.path.abspath("token"), kubeapi.TOKEN),
                os.path.abspath("ca.crt"),
            ),
            os.path.abspath("journal"),
        )
        journal, sent = Journal("journal"), {}
        with Agent(write("latency.alloy", text)) as agent:
            agent.until(lambda: api.count("watch"), "a watch")
            for i in range(1000):
                changed = {**thing, "metadata": {**thing["metadata"], "labels": {"round": str(i)}}}
                sent[str(i)] = time.monotonic_ns()
                api.set(changed)
                until_moment(
                    time.monotonic() + random.uniform(0.005, 0.03)
                )  # at any moment, not at a beat
            seen = {}

            def all_seen():
                for change in journal.read():
                    seen[change["labels"]["__meta_kubernetes_pod_label_round"]] = change["at"]
                return "999" in seen

            agent.until(all_seen, "the last event's target")
            agent.stop()
        took = sorted((seen[i] - at) / 1e6 for i, at in sent.items() if i in seen)
        figure(
            "event to visible target, p50 and p99",
            f"{took[len(took) // 2]:.1f}, {took[len(took) * 99 // 100]:.1f} ms",
            "p99 ≤ 10 ms",
        )


def main():
    os.chdir(tempfile.mkdtemp(prefix="andiron-bench-"))
    try:
        # A list of a hundred thousand pods may take longer than the minute and the history that a
        # request has by default.
        cluster = Cluster("--request-timeout=15m", "--etcd-compaction-interval=0")
    except pyroscope.Skip as why:
        print(f"# skipped: {why}")
        return
    with cluster:
        pods = Pods(cluster)
        before = {}
        for name, (text, _) in GRAPHS.items():
            with following(text % client(cluster), 1) as agent:
                before[name] = anonymous(agent.pid)[0]
        # Nobody watches meanwhile: a hundred pods share one revision, and a watch that is cut off
        # within it would miss the rest.
        pods.put(range(1, PODS))
        until(
            lambda: cluster.must("GET", "/api/v1/pods?limit=1")["metadata"].get(
                "remainingItemCount"
            )
            == PODS - 1,
            "all pods are there",
        )
        decoding(cluster)
        matching()
        memory(cluster, before)
        storm(cluster, pods)
    latency()


main()
