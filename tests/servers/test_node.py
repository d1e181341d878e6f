#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_node.py BUILD BRIEF: the chart on a real node, from `helm install` to `helm uninstall`.

The image that packaging/kubernetes/image packs from BUILD runs under a kubelet, containerd and
runc as packaging/helm/andiron has it, installed by the real Helm: first by the commands of
docs/cluster.md, then with the values of this test. controllers.py stands in for the other parts of
a cluster. Samples are read back from the server that they were pushed to. The cases after the
first are the stations of one release; all run in their order.
"""

import contextlib
import datetime
import json
import os
import re
import sys
import tempfile
import time
import types
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))
import node
import page
import parca
import pyroscope
from cgroups import hierarchy
from controllers import OF_SERVICE
from helm import CHART, LABEL, NAME, SPACE, Helm, left
from kubernetes import CORE, until
from running import ask, parse_metrics
from tap import WORKLOAD, case, main, read, write

BUILD, BRIEF = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
CAPABILITIES = {
    "BPF": 39,
    "PERFMON": 38,
    "SYS_PTRACE": 19,
    "CHECKPOINT_RESTORE": 40,
    "DAC_READ_SEARCH": 2,
    "SYSLOG": 34,
}
SHOP = "shop"
PODS = f"{CORE}/{SHOP}/pods"
SPOOL = f"/var/lib/andiron/{SPACE}/{NAME}"
WRITERS = {name: f"{name}.write.server" for name in ("pyroscope", "parca")}
ACCOUNT = f"system:serviceaccount:{SPACE}:{NAME}"
AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [ACCOUNT]}, {"level": "None"}],
}
# As on a cluster that enforces Pod Security: what a namespace's label does not allow is refused.
ADMISSION = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AdmissionConfiguration",
    "plugins": [
        {
            "name": "PodSecurity",
            "configuration": {
                "apiVersion": "pod-security.admission.config.k8s.io/v1",
                "kind": "PodSecurityConfiguration",
                "defaults": {"enforce": "baseline", "enforce-version": "latest"},
            },
        }
    ],
}
HZ = 97
PERIOD = 10**9 // HZ
VALUES = {
    "profiling": {"collectInterval": "5s", "sampleRate": HZ},
    "controller": {"terminationGracePeriodSeconds": 20},
    "extraArgs": ["--ledger=/var/lib/andiron/ledger"],
}
# Of the gateway; it enforces the strictest level of Pod Security.
STRICT = "andiron-gateway"
# What the stations of the release leave to later ones.
KEPT = types.SimpleNamespace(uninstalled={})


def pod(name, *command, **metadata):
    """A pod with one container; a quarter of a CPU, so that all of them fit on two."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": SHOP, **metadata},
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


def messages(space):
    events = NODE.cluster.must("GET", f"{CORE}/{space}/events")["items"]
    return "\n".join(e["message"] for e in events)


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
        raise AssertionError(f"{late}\n{messages(SHOP)}") from late


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
        "namespace": SHOP,
        "pod": name,
        "container": "app",
        "node": node.NAME,
        "service_name": f"ebpf/{SHOP}/app",
        **more,
    }
    try:
        until(lambda: function in profile(**labels)[0], f"{function} under {labels}")
    except AssertionError as late:
        raise AssertionError(f"{late}\n{RECEIVER.series()}") from late
    return labels


def agent():
    """The agent's pod, once it runs, and its process. A pod that is being replaced is none."""
    pods = NODE.cluster.must("GET", f"{CORE}/{SPACE}/pods?{LABEL}")["items"]
    for one in pods:
        states = one["status"].get("containerStatuses", [])
        if (
            one["metadata"]["labels"]["app.kubernetes.io/name"] == NAME
            and "deletionTimestamp" not in one["metadata"]
            and any("running" in c["state"] for c in states)
        ):
            with contextlib.suppress(StopIteration, ValueError, OSError):
                return types.SimpleNamespace(pod=one, pid=min(processes(one)))
    return None


def another_agent(than):
    """The one that runs after that one, once it knows the node's pods: one that is stopped before
    that has asked for nothing, and what it should be judged by the one before it may have done."""

    def runs_anew():
        now = agent()
        known = now and now.pid != than.pid and metric("andiron_kubernetes_pods")
        return now if known else None

    return until(runs_anew, f"an agent after {than.pid} runs")


def metrics():
    """Of the agent in its pod, by the socket in its emptyDir; None until it answers."""
    now = agent()
    with contextlib.suppress(FileNotFoundError, ConnectionError):
        return now and parse_metrics(ask(f"/proc/{now.pid}/root/run/andiron/status", "/metrics")[1])


def metric(name):
    return sum(v for (n, _), v in (metrics() or {}).items() if n == name)


def books():
    """The ledger as the metrics have it, of one moment."""
    now = metrics()
    entries = {"taken": "taken_total", "carried": "carried_total", "delivered": "delivered_total"}
    entries |= {"spooled": "spooled", "dropped": "dropped_total"}
    return types.SimpleNamespace(
        **{
            key: sum(v for (n, _), v in now.items() if n == f"andiron_samples_{name}")
            for key, name in entries.items()
        }
    )


def ledger():
    """What the last agent that was asked to stop has written, by backend; its equation holds. It
    has both writers where it took up a new configuration before it was replaced."""
    found = json.loads(read(f"{SPOOL}/ledger"))
    writers = found["writers"].values()
    places = ("delivered", "spooled", "uncertain", "in_flight")
    there = sum(one[k] for one in writers for k in places)
    dropped = sum(sum(one["dropped"].values()) for one in writers)
    assert found["taken"] + sum(one["carried"] for one in writers) == there + dropped, found
    none = {"delivered": 0, "dropped": {}}
    return types.SimpleNamespace(
        **{
            name: types.SimpleNamespace(**found["writers"].get(writer, none))
            for name, writer in WRITERS.items()
        }
    )


def server_fails(fails):
    RECEIVER.fault("code", n=10**6 if fails else 0, code=503)


def helm_values(backend=None):
    backend = backend or {"pyroscope": {"url": RECEIVER.url}}
    return write("values.json", json.dumps({**VALUES, "backend": backend}))


def name_receiver(url):
    """Makes the server known in the cluster by the name that a URL has."""
    name, space = urllib.parse.urlsplit(url).hostname.split(".")[:2]
    NODE.cluster.create(CORE, {"metadata": {"name": space}})
    port = urllib.parse.urlsplit(RECEIVER.url).port
    NODE.cluster.create(
        f"{CORE}/{space}/services",
        {"metadata": {"name": name}, "spec": {"clusterIP": "None", "ports": [{"port": port}]}},
    )
    NODE.cluster.create(
        f"/apis/discovery.k8s.io/v1/namespaces/{space}/endpointslices",
        {
            "metadata": {"name": name, "labels": {OF_SERVICE: name}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [node.NODE_ADDRESS]}],
            "ports": [{"port": port}],
        },
    )


def uninstall():
    """`helm uninstall` leaves nothing in the cluster."""
    uid = agent().pod["metadata"]["uid"]
    KEPT.uninstalled[uid] = datetime.datetime.now(datetime.UTC).isoformat()
    HELM("uninstall", NAME)
    until(lambda: not left(NODE.cluster), "the release is gone")
    until(lambda: uid not in os.listdir("/var/lib/kubelet/pods"), "its pod's folder is gone")


@case
def five_commands():
    """The page's five commands, as they are printed there (the first one is run below): the server
    has a profile of one's own pod, and the last command lists it. Then those that find out why
    nothing arrives."""
    NODE.cluster.create(CORE, {"metadata": {"name": SHOP}})
    NODE.cluster.create(PODS, pod("mine", "workload", "600"))
    commands = page.five()
    name_receiver(re.search("url=(.*)", commands[2])[1])
    asking = page.within_sentences("kubectl")
    assert [line.split()[1] for line in asking[:2]] == ["create", "label"], asking
    for line in (*asking[:2], *commands[1:]):
        said = SHELL(line)
    assert "mine" in said and "workload" in said, said
    profiled("workload_70", "mine")
    for line in asking[2:]:
        if not line.endswith(f"{NAME}-test"):  # the log of a test that has failed; this one has not
            said = SHELL(re.sub(r"\bPOD\b", agent().pod["metadata"]["name"], line))
    assert "andiron_samples_delivered_total" in said, said
    NODE.cluster.must("DELETE", f"{PODS}/mine")
    uninstall()
    KEPT.arrived = RECEIVER.total()


@case
def chart_runs():
    """`helm install`: the pod has the capabilities that the chart names and no others, seccomp, no
    new privileges, a read-only root."""
    HELM("install", NAME, CHART, "--values", helm_values())
    try:
        made = until(agent, "the agent runs")
    except AssertionError as late:
        raise AssertionError(f"{late}\n{messages(SPACE)}") from late
    until(lambda: metric("andiron_kubernetes_pods"), "it knows its own pod")
    status = dict(
        line.split(":\t") for line in read(f"/proc/{made.pid}/status").splitlines() if ":\t" in line
    )
    wanted = sum(1 << bit for bit in CAPABILITIES.values())
    assert int(status["CapBnd"], 16) == wanted, (status, f"{wanted:x}")
    for kind in ("CapEff", "CapPrm"):  # the agent itself may give some up
        has = int(status[kind], 16)
        assert has and not has & ~wanted, (kind, status[kind], f"{wanted:x}")
    assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1"), status
    root = next(
        line.split()[5]
        for line in read(f"/proc/{made.pid}/mountinfo").splitlines()
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
    NODE.exec(SHOP, "quiet", "app", "workload", "5")
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
    name = agent().pod["metadata"]["name"]
    said = json.loads(
        NODE.exec(
            SPACE,
            name,
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
        found["busy"] == {"workload"} and "sh" in found["brief"] and "andiron" in found[name]
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


@case
def helm_test():
    """`helm test` of Helm 4 (that of the page is Helm 3's) proves that a profile of a pod arrived.
    Its pod has no right, and is gone when it has succeeded."""
    said = HELM("test", NAME, "--logs")
    assert "delivered samples of pods" in said, said
    names = [
        p["metadata"]["name"] for p in NODE.cluster.must("GET", f"{CORE}/{SPACE}/pods")["items"]
    ]
    assert f"{NAME}-test" not in names, names


@case
def upgrade_loses_nothing():
    """`helm upgrade` while the server fails: the next pod delivers what this one took."""
    old = agent()
    server_fails(True)
    until(lambda: books().spooled, "profiles wait for the server")
    HELM("upgrade", NAME, CHART, "--values", helm_values(), "--set", "logLevel=debug")
    another_agent(old)
    KEPT.first = ledger().pyroscope
    assert KEPT.first.spooled and not KEPT.first.dropped, KEPT.first
    carried = until(lambda: books().carried, "the next agent has found them")
    assert carried == KEPT.first.spooled, (carried, KEPT.first)
    server_fails(False)
    until(lambda: not books().spooled, "all of them have arrived")


@case
def node_restart_loses_nothing():
    """A node whose power is cut while the server fails: what was taken is delivered after the
    restart, or counted as lost."""
    old = agent()
    server_fails(True)
    until(lambda: books().spooled, "profiles wait for the server")
    KEPT.second = before = books()
    NODE.kill()
    server_fails(False)
    NODE.start()
    another_agent(old)

    def accounted():  # an agent that has just begun counts what it finds piece by piece
        now = books()
        known = before.delivered + before.dropped + now.carried
        return not now.spooled and known >= before.taken + before.carried

    until(accounted, "all of them have arrived, or are counted")


@case
def parca_receives():
    """`helm upgrade` to a real Parca: it has the functions of a pod under the pod's labels."""
    old = agent()
    server = KEPT.parca = parca.Parca(address=node.NODE_ADDRESS)
    backend = {"parca": {"address": server.address, "insecure": True}}
    HELM("upgrade", NAME, CHART, "--values", helm_values(backend), "--set", "logFormat=json")
    another_agent(old)
    KEPT.third = ledger()
    labels = {"namespace": SHOP, "pod": "named", "container": "app", "service_name": "till"}
    selector = "{" + ",".join(f'{k}="{v}"' for k, v in {**labels, "node": node.NAME}.items()) + "}"

    def named():
        with contextlib.suppress(RuntimeError):  # it knows no such series yet
            return (6, b"workload_70") in parca.fields(server.merged(selector))

    until(named, f"workload_70 under {selector}")
    # The agent before it may have sent these: it takes up the new configuration, too.
    until(lambda: books().delivered, "the new agent has delivered itself")


@case
def uninstall_leaves_the_spool():
    """`helm uninstall` leaves nothing but the spool; and the servers have what four agents say that
    they have delivered, each sample once."""
    uninstall()
    assert set(os.listdir(SPOOL)) == {"pyroscope.write", "parca.write", "ledger"}, os.listdir(SPOOL)
    third, last = KEPT.third.pyroscope, ledger().parca
    at_parca = KEPT.third.parca.delivered + last.delivered
    lost = sum(third.dropped.values())
    print(
        f"# {KEPT.first.delivered} + {KEPT.second.delivered:.0f} + {third.delivered} samples "
        f"arrived, and {at_parca} at Parca; the restart lost {lost}",
        flush=True,
    )
    assert set(third.dropped) <= {f"{WRITERS['pyroscope']}:lost_at_kill"}, third
    arrived = (RECEIVER.total() - KEPT.arrived) // PERIOD
    delivered = KEPT.first.delivered + KEPT.second.delivered + third.delivered
    assert arrived == delivered, (arrived, delivered)
    assert not last.dropped, last
    assert KEPT.parca.total() == at_parca * PERIOD, (KEPT.parca.total(), at_parca)


@case
def gateway_delivers():
    """A gateway, by the page's commands: a pod without any right, in a namespace for `restricted`
    pods, takes what the agent sends, keeps it while the server fails, and delivers all of it."""
    *namespace, upgrade, logs, figures = page.gateway()
    for line in namespace:
        SHELL(line)
    NODE.cluster.create(PODS, pod("gated", "workload", "600"))
    arrived = RECEIVER.total()
    # As printed but for the release, which is not there now, so that all samples are the gateway's.
    SHELL(f"{upgrade} --install --values {os.path.abspath(helm_values())}")
    try:
        made = runs(f"{CORE}/{STRICT}/pods/{NAME}-gateway-0")
    except AssertionError as late:
        raise AssertionError(f"{late}\n{messages(STRICT)}") from late
    pid = min(processes(made))
    status = dict(
        line.split(":\t") for line in read(f"/proc/{pid}/status").splitlines() if ":\t" in line
    )
    assert not any(int(status[kind], 16) for kind in ("CapBnd", "CapPrm", "CapEff")), status
    assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1"), status
    assert set(status["Uid"].split()) == {"65534"}, status
    profiled("workload_70", "gated")
    assert "listening" in SHELL(logs), SHELL(logs)

    def figure(name):
        return sum(v for (n, _), v in parse_metrics(SHELL(figures)).items() if n == name)

    until(lambda: figure("andiron_samples_delivered_total"), "the gateway says so")
    server_fails(True)

    def waiting():
        found = parse_metrics(ask(f"/proc/{pid}/root/run/andiron/status", "/metrics")[1])
        return sum(v for (n, _), v in found.items() if n == "andiron_samples_spooled")

    until(waiting, "profiles wait in the gateway")
    server_fails(False)
    until(lambda: not waiting(), "they have arrived")
    uninstall()
    uid = made["metadata"]["uid"]
    until(lambda: uid not in os.listdir("/var/lib/kubelet/pods"), "the gateway's folder is gone")
    samples = (RECEIVER.total() - arrived) // PERIOD
    print(f"# {samples} samples arrived by the gateway", flush=True)
    assert samples == ledger().pyroscope.delivered, (samples, ledger())


@case
def granted_rights_suffice():
    """In all these lives the account has asked to list or watch pods of its node, and for nothing
    else; and was allowed to, from when the API server knew of its role until Helm took it away."""
    asked = [json.loads(line) for line in read(f"{NODE.folder}/audit.log").splitlines()]
    verbs = {(r["verb"], r["objectRef"]["resource"]) for r in asked}
    assert verbs and verbs <= {("list", "pods"), ("watch", "pods")}, verbs
    allowed = set()
    for r in asked:
        assert f"fieldSelector=spec.nodeName%3D{node.NAME}" in r["requestURI"], r
        pod = r["user"]["extra"]["authentication.kubernetes.io/pod-uid"][0]
        if r["annotations"]["authorization.k8s.io/decision"] == "allow":
            allowed.add(pod)
        elif r["stageTimestamp"] < KEPT.uninstalled.get(pod, "never"):
            why = r["annotations"], r["stage"], r["stageTimestamp"], KEPT.uninstalled
            assert pod not in allowed, why
    assert len(allowed) == 5, allowed


if os.geteuid() != 0:
    print("1..0 # SKIP needs root: run it by `sudo ./check --full`")
    sys.exit()
if node.INSIDE not in os.environ:
    node.run_inside([os.path.abspath(sys.argv[0]), BUILD, BRIEF])
os.chdir(tempfile.mkdtemp())
try:
    began = time.monotonic()
    SHELL = page.Shell(
        BUILD,
        {
            "helm": pyroscope.get("helm3"),
            "kubectl": pyroscope.get("kubectl"),
            "ctr": f"{pyroscope.get('containerd')}/usr/bin/ctr",
        },
    )
    SHELL(page.five()[0])  # here, since the node below has none of Debian's lists of packages
    write("audit.json", json.dumps(AUDIT))
    write("admission.json", json.dumps(ADMISSION))
    NODE = node.Node(
        {"workload": WORKLOAD, "brief": BRIEF},
        "--admission-control-config-file=admission.json",
        "--audit-policy-file=audit.json",
        f"--audit-log-path={os.path.abspath('audit.log')}",
    )
    HELM = Helm("helm4", NODE.cluster)
    SHELL.environment["KUBECONFIG"] = HELM.environment["KUBECONFIG"]
    RECEIVER = pyroscope.Pyroscope("--listen", f"{node.NODE_ADDRESS}:4040")
    print(f"# the node was ready after {time.monotonic() - began:.0f} s", flush=True)
except pyroscope.Skip as why:
    print(f"1..0 # SKIP {why}")
    sys.exit()
main()
