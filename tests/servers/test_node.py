#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_node.py BUILD BRIEF: packaging/kubernetes on a real node.

The image that packaging/kubernetes/image packs from BUILD runs under a kubelet, containerd and
runc as packaging/kubernetes/andiron.yaml has it. Two things stand in for parts that a cluster has
besides: the server's address in the ConfigMap is one that needs no DNS, and in place of the
DaemonSet's controller and the scheduler the test makes the pod that the template describes, on
this node. Samples are read back from the server that they were pushed to.
"""

import contextlib
import json
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))
import node
import pyroscope
from cgroups import hierarchy
from kubernetes import CORE, MANIFEST, until
from running import ask, parse_metrics
from tap import WORKLOAD, case, main, read, write

BUILD, BRIEF = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SERVER = "http://pyroscope.monitoring.svc.cluster.local:4040"
CAPABILITIES = {
    "BPF": 39,
    "PERFMON": 38,
    "SYS_PTRACE": 19,
    "CHECKPOINT_RESTORE": 40,
    "DAC_READ_SEARCH": 2,
    "SYSLOG": 34,
}
SPACE = "shop"
PODS = f"{CORE}/{SPACE}/pods"


def accounts(cluster, space):
    """What controllers make in each namespace: its account, and the API server's authority."""
    if cluster.ask("GET", f"{CORE}/{space}")[0] == 404:
        cluster.create(CORE, {"metadata": {"name": space}})
    cluster.create(f"{CORE}/{space}/serviceaccounts", {"metadata": {"name": "default"}})
    cluster.create(
        f"{CORE}/{space}/configmaps",
        {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": read(cluster.ca)}},
    )


def pod_of(daemonset):
    """The pod that the DaemonSet's controller makes for this node."""
    made, template = daemonset["metadata"], daemonset["spec"]["template"]
    return {
        "metadata": {
            **template["metadata"],
            "name": "andiron-7xk2p",
            "namespace": made["namespace"],
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "DaemonSet",
                    "name": made["name"],
                    "uid": made["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {**template["spec"], "nodeName": node.NAME},
    }


def pod(name, *command, **metadata):
    """A pod with one container; a quarter of a CPU, so that all of them fit on two."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": SPACE, **metadata},
        "spec": {
            "nodeName": node.NAME,
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "app",
                    "image": node.TOOLS,
                    "imagePullPolicy": "Never",
                    "command": list(command),
                    "resources": {"limits": {"cpu": "250m", "memory": "64Mi"}},
                }
            ],
        },
    }


def runs(path):
    """The pod once its container runs."""

    def status():
        code, found = NODE.cluster.ask("GET", path)
        return (
            found
            if code == 200
            and any("running" in c["state"] for c in found["status"].get("containerStatuses", []))
            else None
        )

    try:
        return until(status, f"{path} runs")
    except AssertionError as late:
        events = NODE.cluster.ask("GET", path.partition("/pods/")[0] + "/events")[1]
        raise AssertionError(
            "\n".join([str(late), *(e["message"] for e in events["items"])])
        ) from late


def processes(made):
    """The pids in the first container of a pod."""
    identity = made["status"]["containerStatuses"][0]["containerID"].partition("://")[2]
    return next(
        list(map(int, read(f"{folder}/cgroup.procs").split()))
        for folder, _, _ in os.walk(f"{hierarchy()}/{NODE.group}")
        if os.path.basename(folder) == identity
    )


def profile(**labels):
    """The names of a series' functions, and the sum of its values."""
    selector = "{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "}"
    found = RECEIVER.query(
        "SelectMergeProfile", profileTypeID=pyroscope.CPU, labelSelector=selector
    )
    return set(found.get("stringTable", [])), sum(
        int(sample["value"][0]) for sample in found.get("sample", [])
    )


def profiled(function, name, **more):
    """Waits until this function is seen under the pod's labels, with all of them."""
    labels = {
        "namespace": SPACE,
        "pod": name,
        "container": "app",
        "node": node.NAME,
        "service_name": f"ebpf/{SPACE}/app",
        **more,
    }
    try:
        until(lambda: function in profile(**labels)[0], f"{function} under {labels}")
    except AssertionError as late:
        raise AssertionError(f"{late}\n{RECEIVER.series()}") from late
    return labels


def metric(name):
    """Of the agent in its pod, by the socket in its emptyDir."""
    agent = processes(NODE.cluster.must("GET", f"{CORE}/andiron/pods/andiron-7xk2p"))[0]
    values = parse_metrics(ask(f"/proc/{agent}/root/run/andiron/status", "/metrics")[1])
    return sum(v for (n, _), v in values.items() if n == name)


@case
def manifest_runs():
    """The manifest's pod runs: the capabilities that it names and no others, seccomp, no new
    privileges, a read-only root."""
    made = NODE.cluster.apply(read(MANIFEST).replace(SERVER, RECEIVER.url))
    accounts(NODE.cluster, "andiron")
    accounts(NODE.cluster, SPACE)
    NODE.cluster.create(f"{CORE}/andiron/pods", pod_of(made["DaemonSet"]))
    (agent,) = processes(runs(f"{CORE}/andiron/pods/andiron-7xk2p"))

    def known_pods():
        with contextlib.suppress(
            FileNotFoundError, ConnectionRefusedError
        ):  # not bound, not listening yet
            return metric("andiron_kubernetes_pods")

    until(known_pods, "it knows its own pod")
    status = dict(
        line.split(":\t") for line in read(f"/proc/{agent}/status").splitlines() if ":\t" in line
    )
    wanted = sum(1 << bit for bit in CAPABILITIES.values())
    for kind in ("CapEff", "CapPrm", "CapBnd"):
        assert int(status[kind], 16) == wanted, (kind, status[kind], f"{wanted:x}")
    assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1"), status
    root = next(
        line.split()[5]
        for line in read(f"/proc/{agent}/mountinfo").splitlines()
        if line.split()[4] == "/"
    )
    assert "ro" in root.split(","), root


@case
def pods_are_profiled():
    """A busy program in another pod: namespace, pod, container, service_name and the names of its
    functions."""
    NODE.cluster.create(PODS, pod("busy", "workload", "600"))
    NODE.cluster.create(
        PODS, pod("named", "workload", "600", annotations={"pyroscope.io/service_name": "till"})
    )
    profiled("workload_70", "busy")
    profiled("workload_70", "named", service_name="till")


@case
def brief_processes():
    """Processes that use 50 ms of CPU time and are gone stand under their pod's labels."""
    NODE.cluster.create(PODS, pod("brief", "sh", "-c", "while :; do brief .05; done"))
    profiled("burn", "brief")


@case
def commands_in_containers():
    """What is run in a container from outside (kubectl exec, by the kubelet) belongs to it."""
    NODE.cluster.create(PODS, pod("quiet", "sleep", "infinity"))
    runs(f"{PODS}/quiet")
    # Longer than the agent may take to learn of the container: nobody sampled in it before.
    NODE.exec(SPACE, "quiet", "app", "workload", "10")
    profiled("workload_70", "quiet")


@case
def static_pods():
    """A pod that the kubelet has from a file, under another uid than the API server knows it by."""
    write("static.json", json.dumps({**pod("static", "workload", "600")}))
    os.rename("static.json", f"{NODE.folder}/static/static.json")
    profiled("workload_70", f"static-{node.NAME}")
    os.unlink(f"{NODE.folder}/static/static.json")


@case
def targets_say_what_they_match():
    """`andiron targets --match` in the agent's container: which processes each container of the
    node has."""
    runs(f"{PODS}/busy")
    said = json.loads(
        NODE.exec(
            "andiron",
            "andiron-7xk2p",
            "andiron",
            "/usr/local/bin/andiron",
            "targets",
            "/etc/andiron/config.alloy",
            "discovery.relabel.pods",
            "--match",
            "--json",
        )
    )["discovery.relabel.pods"]
    found = {
        t["pod"]: {p["name"] for p in m["processes"]}
        for t, m in zip(said["targets"], said["matched"])
    }
    assert (
        found["busy"] == {"workload"}
        and "sh" in found["brief"]
        and "andiron" in found["andiron-7xk2p"]
    ), found


@case
def deleted_pods():
    """A pod that is deleted is a target no longer, and nothing more arrives under its labels."""
    labels = profiled("workload_70", "busy")
    NODE.cluster.must("DELETE", f"{PODS}/busy")
    until(lambda: NODE.cluster.ask("GET", f"{PODS}/busy")[0] == 404, "the pod is gone")
    sessions = "pyroscope_ebpf_profiling_sessions_total"

    def intervals(n):
        so_far = metric(sessions)
        until(lambda: metric(sessions) >= so_far + n, "the next intervals")

    intervals(2)  # what was sampled before has been sent
    before = profile(**labels)[1]
    intervals(1)
    assert profile(**labels)[1] == before > 0


if os.geteuid() != 0:
    print("1..0 # SKIP needs root: run it by `sudo ./check --full`")
    sys.exit()
if node.INSIDE not in os.environ:
    node.run_inside([os.path.abspath(sys.argv[0]), BUILD, BRIEF])
os.chdir(tempfile.mkdtemp())
try:
    began = time.monotonic()
    node.sh(f"{node.PACKAGING}/image", BUILD, "andiron.tar")
    NODE = node.Node({"workload": WORKLOAD, "brief": BRIEF}, [os.path.abspath("andiron.tar")])
    RECEIVER = pyroscope.Pyroscope("--listen", f"{node.NODE_ADDRESS}:4040")
    print(f"# the node was ready after {time.monotonic() - began:.0f} s", flush=True)
except pyroscope.Skip as why:
    print(f"1..0 # SKIP {why}")
    sys.exit()
main()
