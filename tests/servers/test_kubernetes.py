#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_kubernetes.py LIST-TARGETS BUILD: discovery.kubernetes against a real API server,
and against what Prometheus makes of the same server."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import ssl
import sys
import tarfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))
import faults
import kubeapi
import pyroscope
from kubernetes import ADMIN, CORE, MANIFEST, RBAC, Cluster, Journal, Oracle, jwt, until
from running import Agent
from tap import SANITIZED, Skip, andiron, case, environment, main, need_root, read, run, write

LIST_TARGETS, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
ROLES = ["pod", "node", "service", "endpoints", "endpointslice", "ingress"]
APPS = "/apis"
PODS = f"{CORE}/shop/pods"


def servers(*flags, **options):
    try:
        return Cluster(*flags, **options)
    except pyroscope.Skip as why:
        raise Skip(str(why)) from why


# Objects, as varied as their labels.


def pod(name, node="n1", **more):
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "labels": {"app.kubernetes.io/name": "web", "tier": "front"},
            "annotations": {"note/a": "Grüße", "empty": ""},
            **more.pop("metadata", {}),
        },
        "spec": {
            "nodeName": node,
            "automountServiceAccountToken": False,
            "restartPolicy": "Always",
            "containers": [
                {
                    "name": "app",
                    "image": "registry/app:1",
                    "ports": [
                        {"name": "http", "containerPort": 8080},
                        {"containerPort": 53, "protocol": "UDP"},
                    ],
                },
                {"name": "side", "image": "registry/side:2"},
            ],
            "initContainers": [{"name": "setup", "image": "registry/setup:3"}],
            **more,
        },
    }


def running(ip, app="a" * 64):
    return {
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "hostIP": "10.1.0.1",
        "conditions": [
            {"type": "PodScheduled", "status": "True"},
            {"type": "Ready", "status": "True"},
        ],
        "containerStatuses": [
            {
                "name": n,
                "image": "x",
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "containerID": f"containerd://{i}",
            }
            for n, i in (("app", app), ("side", "b" * 64))
        ],
        "initContainerStatuses": [
            {
                "name": "setup",
                "image": "x",
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "containerID": "containerd://" + "c" * 64,
            }
        ],
    }


def populate(cluster):
    """Objects of all kinds, and some of the odder shapes of each."""
    for name in ("shop", "empty"):
        cluster.create(
            CORE,
            {
                "metadata": {
                    "name": name,
                    "labels": {"team": name, "a.b/c": "d"},
                    "annotations": {"n": "1"},
                }
            },
        )
    for name, addresses in (
        ("n1", [("Hostname", "h1"), ("InternalIP", "10.1.0.1"), ("InternalIP", "10.1.0.9")]),
        ("n2", [("ExternalIP", "fd00::2"), ("Hostname", "h2")]),
        ("n3", []),
    ):
        cluster.create(
            "/api/v1/nodes",
            {
                "metadata": {"name": name, "labels": {"zone": name}},
                "spec": {"providerID": f"test://{name}"},
            },
            {
                "addresses": [{"type": t, "address": a} for t, a in addresses],
                "conditions": [
                    {"type": "Ready", "status": "True"},
                    {"type": "DiskPressure", "status": "Unknown"},
                ],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            },
        )
    owner = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web-1",
            "uid": "u",
            "controller": True,
        }
    ]
    cluster.create(PODS, pod("web-1", metadata={"ownerReferences": owner}), running("10.2.0.1"))
    cluster.create(PODS, pod("web-2", "n2"), running("fd00::7"))
    cluster.create(PODS, pod("web-3", "n9"), running("10.2.0.3"))
    cluster.create(PODS, pod("pending"))
    cluster.create(
        PODS, pod("done"), {**running("10.2.0.4"), "phase": "Succeeded", "conditions": []}
    )
    ports = [
        {"name": "http", "port": 80, "targetPort": 8080},
        {"name": "dns", "port": 53, "protocol": "UDP"},
    ]
    services = {
        "web": {"selector": {"tier": "front"}, "ports": ports, "ipFamilyPolicy": "SingleStack"},
        "out": {"type": "ExternalName", "externalName": "example.org", "ports": [{"port": 443}]},
        "balanced": {
            "type": "LoadBalancer",
            "loadBalancerIP": "192.0.2.1",
            "ports": [{"port": 80}],
        },
        "headless": {"clusterIP": "None", "ports": [{"name": "x", "port": 1}]},
    }
    for name, spec in services.items():
        cluster.create(
            f"{CORE}/shop/services",
            {
                "metadata": {"name": name, "namespace": "shop", "labels": {"svc": name}},
                "spec": spec,
            },
        )
    cluster.patch(
        f"{CORE}/shop/services/balanced/status",
        {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}, {"ip": "192.0.2.8"}]}}},
    )
    ref = lambda name: {"kind": "Pod", "namespace": "shop", "name": name}
    cluster.create(
        f"{CORE}/shop/endpoints",
        {
            "metadata": {"name": "web", "namespace": "shop"},
            "subsets": [
                {
                    "addresses": [
                        {"ip": "10.2.0.1", "nodeName": "n1", "targetRef": ref("web-1")},
                        {"ip": "10.9.9.9", "hostname": "h"},
                        {"ip": "10.1.0.1", "targetRef": {"kind": "Node", "name": "n1"}},
                    ],
                    "notReadyAddresses": [
                        {"ip": "10.2.0.3", "targetRef": ref("web-3")},
                        {"ip": "10.2.0.99", "targetRef": ref("nobody")},
                    ],
                    "ports": [{"name": "http", "port": 8080}, {"name": "odd", "port": 9999}],
                }
            ],
        },
    )
    slices = {
        "web-a": ("IPv4", "web", ["10.2.0.1", "10.2.0.5"], "web-1"),
        "web-b": ("IPv6", "web", ["fd00::7"], "web-2"),
        "alone": ("IPv4", None, ["10.2.0.3"], "web-3"),
    }
    for name, (family, service, addresses, target) in slices.items():
        labels = {"kubernetes.io/service-name": service} if service else {"x": "y"}
        cluster.create(
            f"{APPS}/discovery.k8s.io/v1/namespaces/shop/endpointslices",
            {
                "metadata": {"name": name, "namespace": "shop", "labels": labels},
                "addressType": family,
                "endpoints": [
                    {
                        "addresses": addresses,
                        "conditions": {"ready": True, "serving": False},
                        "nodeName": "n1",
                        "zone": "z",
                        "hostname": "h",
                        "targetRef": ref(target),
                    }
                ],
                "ports": [
                    {"name": "http", "port": 8080, "appProtocol": "kubernetes.io/h2c"},
                    {"name": "all", "protocol": "UDP"},
                ],
            },
        )
    path = lambda p: {
        "path": p,
        "pathType": "Prefix",
        "backend": {"service": {"name": "web", "port": {"number": 80}}},
    }
    cluster.create(
        f"{APPS}/networking.k8s.io/v1/namespaces/shop/ingresses",
        {
            "metadata": {"name": "front", "namespace": "shop", "annotations": {"a": "b"}},
            "spec": {
                "ingressClassName": "nginx",
                "tls": [{"hosts": ["*.example.org", "a.org"]}],
                "rules": [
                    {"host": "x.example.org", "http": {"paths": [path("/a"), path("/b")]}},
                    {"host": "a.org"},
                    {"host": "x.y.example.org", "http": {"paths": [path("/")]}},
                    {"http": {"paths": [path("/none")]}},
                ],
            },
        },
    )


CLIENT = """
  api_server        = "%s"
  bearer_token_file = "%s"
  tls_config {
    ca_file = "%s"
  }
"""


def token(text):
    return write(os.path.abspath("token"), text + "\n")


def discovery(cluster, name, role, more="", server=None, ca=None):
    client = CLIENT % (server or cluster.server, os.path.abspath("token"), ca or cluster.ca)
    return (
        f'discovery.kubernetes "{name}" {{\n  role = "{role}"{client}{more}}}\n'
        f'test.journal "{name}" {{\n  targets = discovery.kubernetes.{name}.targets\n  path = '
        f'"{os.path.abspath(name)}.journal"\n}}\n'
    )


def prometheus(cluster, role, **more):
    return {
        "role": role,
        "api_server": cluster.server,
        "authorization": {"credentials": ADMIN},
        "tls_config": {"ca_file": cluster.ca},
        **more,
    }


def agree(agent, oracle, journals, such=lambda found: True):
    """Waits until both have the same targets, such that the predicate holds of them; returns
    them."""

    def same():
        theirs = oracle.targets()
        ours = {name: j.targets() for name, j in journals.items()}
        return theirs if theirs == ours and such(theirs) else None

    try:
        return agent.until(same, "the same targets")
    except AssertionError as error:
        theirs, text = oracle.targets(), [str(error)]
        for name, j in journals.items():
            ours = j.targets()
            if ours != theirs[name]:
                text += [
                    f"{name}: {len(ours)} ours, {len(theirs[name])} theirs",
                    *differences(ours, theirs[name]),
                ]
        raise AssertionError("\n".join(text) + "\n" + agent.text()[-2000:]) from error


def differences(ours, theirs, most=4):
    """Some targets of each side that the other has not, as labels that differ from its nearest."""
    lines = []
    for word, here, there in (("ours", ours, theirs), ("theirs", theirs, ours)):
        for target in [t for t in here if t not in there][:most]:
            items = set(target.items())
            nearest = max(there, key=lambda t: len(items & set(t.items())), default={})
            lines.append(
                f"  only {word}: {target.get('__address__')} {sorted(items - set(nearest.items()))}"
            )
    return lines


@case
def all_roles():
    """All roles, with and without attached metadata and selectors: the label sets of Prometheus's
    own discovery."""
    with servers() as cluster:
        populate(cluster)
        token(ADMIN)
        attach = "  attach_metadata {\n    node = true\n    namespace = true\n  }\n"
        ours, theirs = "", {}
        for role in ROLES:
            ours += discovery(cluster, role, role) + discovery(
                cluster, f"{role}_more", role, attach
            )
            theirs[role] = prometheus(cluster, role)
            theirs[f"{role}_more"] = prometheus(
                cluster, role, attach_metadata={"node": True, "namespace": True}
            )
        ours += discovery(
            cluster,
            "chosen",
            "pod",
            '  namespaces {\n    names = ["shop", "empty"]\n  }\n  selectors {\n    role = "pod"\n'
            '    label = "tier in (front, back)"\n    field = "spec.nodeName=n1"\n  }\n',
        )
        theirs["chosen"] = prometheus(
            cluster,
            "pod",
            namespaces={"names": ["shop", "empty"]},
            selectors=[
                {"role": "pod", "label": "tier in (front, back)", "field": "spec.nodeName=n1"}
            ],
        )
        ours += discovery(
            cluster,
            "nodes",
            "pod",
            attach + '  selectors {\n    role = "node"\n    label = "zone=n2"\n  }\n',
        )
        theirs["nodes"] = prometheus(
            cluster,
            "pod",
            attach_metadata={"node": True, "namespace": True},
            selectors=[{"role": "node", "label": "zone=n2"}],
        )
        journals = {name: Journal(f"{name}.journal") for name in theirs}
        with Oracle(theirs) as oracle, Agent(write("all.alloy", ours)) as agent:
            found = agree(agent, oracle, journals, lambda found: all(found.values()))
            # Whatever a target was made of changes, and so does it.
            cluster.patch("/api/v1/nodes/n1", {"metadata": {"labels": {"zone": "other"}}})
            cluster.patch(f"{CORE}/shop", {"metadata": {"labels": {"team": "other"}}})
            cluster.patch(f"{CORE}/shop/services/web", {"metadata": {"labels": {"svc": "other"}}})
            cluster.patch(
                f"{PODS}/web-1", {"metadata": {"labels": {"app.kubernetes.io/name": "other"}}}
            )
            cluster.delete(f"{PODS}/web-3")
            cluster.delete("/api/v1/nodes/n2")
            cluster.delete(f"{APPS}/networking.k8s.io/v1/namespaces/shop/ingresses/front")
            # Prometheus does not follow a pod's labels and end into endpoints; one that begins now
            # has them.
            with Oracle(theirs) as fresh:
                after = agree(
                    agent,
                    fresh,
                    journals,
                    lambda now: now["pod"] != found["pod"]
                    and not now["ingress"]
                    and len(now["node"]) == 1
                    and now["endpoints_more"]
                    and now["endpointslice_more"],
                )
            changed = [
                t for t in after["endpoints_more"] if t.get("__meta_kubernetes_pod_name") == "web-1"
            ]
            assert changed and all(
                t["__meta_kubernetes_service_label_svc"] == "other"
                and t["__meta_kubernetes_namespace_label_team"] == "other"
                and t["__meta_kubernetes_pod_label_app_kubernetes_io_name"] == "other"
                for t in changed
            ), changed
            agent.stop()


FAILURES = "prometheus_sd_kubernetes_failures_total"
# The final targets must be right so soon after what was wrong has ended, where a server answers at
# once.
WITHIN = 2.0 * (3 if SANITIZED else 1)


@contextlib.contextmanager
def followed(cluster, bearer=ADMIN, **way):
    """An agent that discovers pods: itself, its journal, and what must be in that."""
    token(bearer)
    with Agent(write("pods.alloy", discovery(cluster, "pods", "pod", **way))) as agent:
        yield agent, Journal("pods.journal")
        agent.stop()


def names(journal):
    """The pods that have targets."""
    return {t["__meta_kubernetes_pod_name"] for t in journal.targets()}


def recovered(cluster):
    """The time, and how long after it the targets may be wrong: a client asks again after a
    thirtieth of what an outage has lasted, or a second; what it does then takes some thirty times
    as long as a request of ours does at the moment.
    """
    began = time.monotonic()
    cluster.fetch(PATHS["pod"], "application/json")
    now = time.monotonic()
    outage = now - cluster.killed if cluster.killed else 0
    return now, WITHIN + max(0, outage / 30 * 1.25 - 1) + 30 * (now - began)


def right(agent, journal, wanted, recovery=None):
    """Waits until these pods have targets; not longer after a recovery than it may take."""
    agent.until(lambda: names(journal) == wanted, f"the pods {sorted(wanted)}")
    if recovery:
        since, within = recovery
        took = time.monotonic() - since
        assert (
            took <= within
        ), f"right only {took:.1f} s after the recovery, {within:.1f} s were to do"
        print(f"# right {took:.2f} s after the recovery, of {within:.2f} s", flush=True)


def sick(agent, words):
    """It says what is wrong, in health and metrics."""
    agent.until_health("discovery.kubernetes.pods", "unhealthy", words)
    assert agent.metric(FAILURES) > 0


def well(agent):
    agent.until_health("discovery.kubernetes.pods", "healthy")


def space(cluster):
    cluster.create(CORE, {"metadata": {"name": "shop"}})


def events_behind(cluster, count=3):
    """History that a watch must not miss."""
    for i in range(count):
        cluster.patch(f"{PODS}/steady", {"metadata": {"labels": {"round": str(i)}}})


PATHS = {
    "pod": "/api/v1/pods",
    "node": "/api/v1/nodes",
    "service": "/api/v1/services",
    "endpoints": "/api/v1/endpoints",
    "endpointslice": "/apis/discovery.k8s.io/v1/endpointslices",
    "ingress": "/apis/networking.k8s.io/v1/ingresses",
}


@case
def both_wires():
    """What a server says in protobuf and in JSON becomes the same targets, for every kind of
    object."""
    with servers() as cluster:
        populate(cluster)
        debug = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "sh"}]}}
        cluster.patch(f"{PODS}/web-1/ephemeralcontainers", debug)
        for role in ROLES:
            found = []
            for accept in ("application/vnd.kubernetes.protobuf", "application/json"):
                write("list", cluster.fetch(PATHS[role], accept))
                found.append(run(LIST_TARGETS, role, "list").expect(0).out)
            assert found[0] == found[1] and found[0].count("\n") >= 2, (role, found)
            assert role != "pod" or "container_kind=ephemeral" in found[0]


@case
def pods_live_and_die():
    """Pods are created, change, are evicted and go; each becomes visible at once, also to who is
    sent away by GOAWAY."""
    with servers("--goaway-chance=0.02") as cluster:
        space(cluster)
        with followed(cluster) as (agent, journal):
            well(agent)
            cluster.create(PODS, pod("steady"), running("10.2.0.1"))
            cluster.create(PODS, pod("evicted"), running("10.2.0.2"))
            cluster.create(PODS, pod("waiting"))
            right(agent, journal, {"steady", "evicted"}, recovered(cluster))
            cluster.patch(f"{PODS}/steady", {"metadata": {"labels": {"tier": "back"}}})
            agent.until(
                lambda: {t["__meta_kubernetes_pod_label_tier"] for t in journal.targets()}
                == {"back", "front"},
                "the label",
            )
            cluster.must(
                "POST",
                f"{PODS}/evicted/eviction",
                {
                    "apiVersion": "policy/v1",
                    "kind": "Eviction",
                    "metadata": {"name": "evicted", "namespace": "shop"},
                    "deleteOptions": {"gracePeriodSeconds": 0},
                },
            )
            right(agent, journal, {"steady"}, recovered(cluster))
            cluster.patch(f"{PODS}/waiting/status", {"status": running("10.2.0.3")})
            right(agent, journal, {"steady", "waiting"}, recovered(cluster))
            cluster.delete(f"{PODS}/steady")
            right(agent, journal, {"waiting"}, recovered(cluster))
            assert agent.metric(FAILURES) == 0, agent.text()


@case
def server_killed():
    """The API server is killed and started again, and pods came and went meanwhile: nothing is
    missed, nothing stays."""
    with servers() as cluster:
        space(cluster)
        for name in ("steady", "victim"):
            cluster.create(PODS, pod(name), running("10.2.0.1"))
        with followed(cluster) as (agent, journal):
            right(agent, journal, {"steady", "victim"})
            for i in range(2):
                cluster.kill()
                sick(agent, f"127.0.0.1:{cluster.port}")
                assert names(journal) >= {"steady"}, "known pods went with the server"
                cluster.start()
                cluster.delete(f"{PODS}/{'victim' if i == 0 else 'new-0'}")
                cluster.create(PODS, pod(f"new-{i}"), running("10.2.0.2"))
                right(agent, journal, {"steady", f"new-{i}"}, recovered(cluster))
                well(agent)


@case
def history_is_gone():
    """etcd is compacted under a watch, and the server forgets: 410 is seen, all is listed anew."""
    with servers() as cluster:
        space(cluster)
        for name in ("steady", "victim"):
            cluster.create(PODS, pod(name), running("10.2.0.1"))
        with followed(cluster) as (agent, journal):
            right(agent, journal, {"steady", "victim"})
            cluster.compact()
            events_behind(cluster)
            agent.until(
                lambda: any(
                    t.get("__meta_kubernetes_pod_label_round") == "2" for t in journal.targets()
                ),
                "changes after a compaction",
            )
            assert agent.metric(FAILURES) == 0
            # The agent holds still while the server forgets where it was.
            lists = agent.metric("andiron_kubernetes_lists_total")
            agent.signal(signal.SIGSTOP)
            cluster.kill()
            cluster.start()
            cluster.delete(f"{PODS}/victim")
            events_behind(cluster)
            cluster.kill()
            cluster.start_forgetful()
            agent.signal(signal.SIGCONT)
            right(agent, journal, {"steady"}, recovered(cluster))
            well(agent)
            assert (
                agent.metric("andiron_kubernetes_lists_total") > lists
                and agent.metric(FAILURES) >= 2
            )
            assert "too old resource version" in agent.text()


def many(cluster, count):
    """So many pods, each with a revision of its own; their names."""
    cluster.create(PODS, pod("pod-000"), running("10.2.0.1"))
    stored = cluster.stored("shop", "pod-000")
    found = [f"pod-{i:03d}" for i in range(count)]
    cluster.put(
        "shop", {name: stored.replace(b"pod-000", name.encode()) for name in found[1:]}, together=1
    )
    return set(found)


@case
def pages_expire():
    """History goes while pods are listed page by page: no part of that list is taken for what
    there is, and the next cannot end like it."""
    with servers("--feature-gates=WatchList=false", "--watch-cache-sizes=pods#0") as cluster:
        space(cluster)
        wanted = many(cluster, 600)  # a page has 500
        pages = []

        def between(path):
            """Before another page is asked for, a pod goes and one comes among those that were
            read, and nobody knows any more how it was."""
            if "continue=" not in path:
                return
            pages.append(path)
            cluster.delete(f"{PODS}/pod-{len(pages):03d}")
            cluster.create(PODS, pod(f"a-{len(pages)}"), running("10.2.0.2"))
            wanted.difference_update({f"pod-{len(pages):03d}"})
            wanted.update({f"a-{len(pages)}"})
            cluster.compact()

        with faults.Gateway(cluster, between) as gateway, followed(
            cluster, server=gateway.url, ca=os.path.abspath("ca.crt")
        ) as (agent, journal):
            right(agent, journal, wanted)
            well(agent)
            cluster.delete(f"{PODS}/a-1")  # the watch goes on from where the list was
            right(agent, journal, wanted - {"a-1"})
            assert gateway.answers.count((pages[0], 410)) == len(pages) == 1, gateway.answers
            assert (
                agent.metric(FAILURES) == 1 and "continue parameter is too old" in agent.text()
            ), agent.text()


def account(cluster, name, verbs=("list", "watch")):
    """A service account with these rights to pods; its uid."""
    uid = cluster.create(
        f"{CORE}/shop/serviceaccounts", {"metadata": {"name": name, "namespace": "shop"}}
    )["metadata"]["uid"]
    cluster.create(
        f"{RBAC}/clusterroles",
        {
            "metadata": {"name": name},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs)}],
        },
    )
    grant(cluster, name)
    return uid


def bind(cluster, name, role, subject):
    cluster.create(
        f"{RBAC}/clusterrolebindings",
        {
            "metadata": {"name": name},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role,
            },
            "subjects": [subject],
        },
    )


def grant(cluster, name):
    bind(cluster, name, name, {"kind": "ServiceAccount", "name": name, "namespace": "shop"})


def allowed(cluster, bearer, wanted, path=f"{PODS}?limit=1"):
    until(
        lambda: cluster.ask("GET", path, token=bearer)[0] == wanted, f"the server answers {wanted}"
    )


@case
def rights_taken_and_given():
    """RBAC is removed and given back: 403 is named with the verbs that are missing, the targets
    stay and are right again."""
    with servers() as cluster:
        space(cluster)
        bearer = jwt("shop", "andiron", account(cluster, "andiron"))
        cluster.create(PODS, pod("steady"), running("10.2.0.1"))
        with followed(cluster, bearer) as (agent, journal):
            right(agent, journal, {"steady"})
            cluster.delete(f"{RBAC}/clusterrolebindings/andiron")
            allowed(cluster, bearer, 403)
            cluster.kill()  # a watch that is allowed goes on until it ends
            cluster.start()
            sick(agent, "needs the verbs list and watch on pods")
            cluster.create(PODS, pod("new"), running("10.2.0.2"))
            assert names(journal) == {"steady"}
            grant(cluster, "andiron")
            allowed(cluster, bearer, 200)
            right(agent, journal, {"steady", "new"}, recovered(cluster))
            well(agent)


@case
def list_is_for_older_servers():
    """The right to watch is enough from Kubernetes 1.34 on, where watches begin with what there is.
    A server that does not do so needs the right to list too, and its lack is named."""
    with servers("--emulated-version=1.34") as cluster:
        assert cluster.must("GET", "/version")["emulationMinor"] == "34"
        space(cluster)
        bearer = jwt("shop", "andiron", account(cluster, "andiron", ["watch"]))
        cluster.create(PODS, pod("steady"), running("10.2.0.1"))
        with followed(cluster, bearer) as (agent, journal):
            right(agent, journal, {"steady"})
            assert agent.metric(FAILURES) == 0, agent.text()
        os.remove("pods.journal")
        cluster.kill()
        cluster.start("--feature-gates=WatchList=false")
        with followed(cluster, bearer) as (agent, journal):
            sick(agent, "needs the verbs list and watch on pods")
            assert not names(journal)
            both = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
            cluster.patch(f"{RBAC}/clusterroles/andiron", {"rules": both})
            right(agent, journal, {"steady"})
            well(agent)


@case
def token_rotated():
    """A token expires under us: 401 is named; the new one is found in its file."""
    with servers() as cluster:
        space(cluster)
        uid = account(cluster, "andiron")
        cluster.create(PODS, pod("steady"), running("10.2.0.1"))
        with followed(cluster, jwt("shop", "andiron", uid)) as (agent, journal):
            right(agent, journal, {"steady"})
            token(jwt("shop", "andiron", uid, -70))
            cluster.kill()
            cluster.start()
            sick(agent, "answered 401")
            cluster.create(PODS, pod("new"), running("10.2.0.2"))
            fresh = token(jwt("shop", "andiron", uid))
            assert fresh
            right(agent, journal, {"steady", "new"}, recovered(cluster))
            well(agent)


FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"


def loud(cluster, bearer, over):
    """Lists all the time."""
    while not over.is_set():
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPSConnection(
                "127.0.0.1",
                cluster.port,
                timeout=30,
                context=ssl.create_default_context(cafile=cluster.ca),
            )
            while not over.is_set():
                connection.request(
                    "GET", "/api/v1/pods", headers={"Authorization": f"Bearer {bearer}"}
                )
                connection.getresponse().read()


@case
def server_overloaded():
    """Priority and fairness turns the agent away: 429 is named, Retry-After kept, and all is there
    when there is room again."""
    with servers() as cluster:
        space(cluster)
        bearer = jwt("shop", "andiron", account(cluster, "andiron"))
        cluster.create(PODS, pod("steady"), running("10.2.0.1"))
        cluster.create(
            f"{FLOW}/prioritylevelconfigurations",
            {
                "metadata": {"name": "narrow"},
                "spec": {
                    "type": "Limited",
                    "limited": {
                        "nominalConcurrencyShares": 0,
                        "lendablePercent": 0,
                        "borrowingLimitPercent": 0,
                        "limitResponse": {"type": "Reject"},
                    },
                },
            },
        )
        cluster.create(
            f"{FLOW}/flowschemas",
            {
                "metadata": {"name": "narrow"},
                "spec": {
                    "priorityLevelConfiguration": {"name": "narrow"},
                    "matchingPrecedence": 2,
                    "rules": [
                        {
                            "subjects": [
                                {
                                    "kind": "ServiceAccount",
                                    "serviceAccount": {"name": "andiron", "namespace": "shop"},
                                }
                            ],
                            "resourceRules": [
                                {
                                    "verbs": ["*"],
                                    "apiGroups": ["*"],
                                    "resources": ["*"],
                                    "namespaces": ["*"],
                                    "clusterScope": True,
                                }
                            ],
                        }
                    ],
                },
            },
        )
        over = threading.Event()
        crowd = [threading.Thread(target=loud, args=(cluster, bearer, over)) for _ in range(12)]
        for one in crowd:
            one.start()
        try:
            allowed(cluster, bearer, 429)
            # One that gets in between the others goes on, and another tries its luck.
            until(lambda: kept_out(cluster, bearer, over), "the server turned an agent away")
        finally:
            over.set()
            for one in crowd:
                one.join()


def kept_out(cluster, bearer, over):
    """Whether an agent met a refusal; then the crowd goes, and it has to be right."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink("pods.journal")
    with followed(cluster, bearer) as (agent, journal):

        def answered():
            state, words = agent.health("discovery.kubernetes.pods")
            return words if state == "unhealthy" or "known" in words else None

        if "known" in agent.until(answered, "the server has answered it"):
            return False
        sick(agent, "answered 429")
        over.set()
        # It may have been told just now to keep away for a second.
        now, within = recovered(cluster)
        right(agent, journal, {"steady"}, (now + 1, within))
        well(agent)
    return True


@case
def authority_rotated():
    """The server comes back with a certificate of another CA: the agent says so, and goes on when
    the file of its CA is replaced."""
    kubeapi.certify()
    with servers(
        "--tls-cert-file=server.pem", "--tls-private-key-file=server.key", ca="ca.crt"
    ) as cluster:
        space(cluster)
        cluster.create(PODS, pod("steady"), running("10.2.0.1"))
        shutil.copy("ca.crt", "trusted.crt")
        with followed(cluster, ca=os.path.abspath("trusted.crt")) as (agent, journal):
            right(agent, journal, {"steady"})
            cluster.kill()
            kubeapi.certify()
            cluster.start()
            sick(agent, "certificate")
            cluster.create(PODS, pod("new"), running("10.2.0.2"))
            assert names(journal) == {"steady"}
            shutil.copy("ca.crt", "fresh.crt")
            os.replace("fresh.crt", "trusted.crt")
            right(agent, journal, {"steady", "new"}, recovered(cluster))
            well(agent)


@case
def cable_pulled():
    """Packets end half-way under a watch, and nobody says so: it is noticed, and all that was
    missed is there when they flow again."""
    need_root()
    with servers() as cluster, faults.Cable(cluster.port) as cable:
        space(cluster)
        cluster.create(PODS, pod("steady"), running("10.2.0.1"))
        cluster.create(PODS, pod("victim"), running("10.2.0.2"))
        name = CLIENT.replace(
            "tls_config {", 'tls_config {\n    server_name = "kubernetes.default.svc"'
        )
        token(ADMIN)
        text = discovery(cluster, "pods", "pod").replace(
            CLIENT % (cluster.server, os.path.abspath("token"), cluster.ca),
            name % (cable.server, os.path.abspath("token"), cluster.ca),
        )
        with Agent(write("pods.alloy", text)) as agent:
            journal = Journal("pods.journal")
            right(agent, journal, {"steady", "victim"})
            cable.cut()
            cluster.delete(f"{PODS}/victim")
            cluster.create(PODS, pod("new"), running("10.2.0.3"))
            sick(agent, cable.address)
            assert names(journal) == {"steady", "victim"}
            cable.mend()
            right(agent, journal, {"steady", "new"}, recovered(cluster))
            well(agent)
            agent.stop()


def kubeconfig(cluster, bearer, **user):
    return write(
        os.path.abspath("kubeconfig"),
        json.dumps(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                "clusters": [
                    {
                        "name": "k",
                        "cluster": {"server": cluster.server, "certificate-authority": cluster.ca},
                    }
                ],
                "users": [{"name": "u", "user": {"token": bearer, **user}}],
            }
        ),
    )


@case
def acting_as_another():
    """A kubeconfig's user acts as another: the server takes user, uid, groups and extras for what
    they are, and refuses what was not granted."""
    extra = {"scopes/Read%20": ["x y", "z"]}
    with servers() as cluster:
        space(cluster)
        bearer = jwt("shop", "andiron", account(cluster, "andiron"))
        cluster.delete(f"{RBAC}/clusterrolebindings/andiron")
        rules = [
            {
                "apiGroups": [""],
                "resources": ["users"],
                "verbs": ["impersonate"],
                "resourceNames": ["jane"],
            },
            {
                "apiGroups": [""],
                "resources": ["groups"],
                "verbs": ["impersonate"],
                "resourceNames": ["watchers", "others"],
            },
            {
                "apiGroups": ["authentication.k8s.io"],
                "resources": ["uids"],
                "verbs": ["impersonate"],
                "resourceNames": ["u 1"],
            },
            {
                "apiGroups": ["authentication.k8s.io"],
                "resources": ["userextras/scopes/read%20"],
                "verbs": ["impersonate"],
                "resourceNames": ["x y", "z"],
            },
        ]
        cluster.create(f"{RBAC}/clusterroles", {"metadata": {"name": "acts"}, "rules": rules})
        bind(
            cluster,
            "acts",
            "acts",
            {"kind": "ServiceAccount", "name": "andiron", "namespace": "shop"},
        )
        bind(
            cluster,
            "watchers",
            "andiron",
            {"kind": "Group", "name": "watchers", "apiGroup": "rbac.authorization.k8s.io"},
        )
        cluster.create(PODS, pod("steady"), running("10.2.0.1"))
        text = (
            'discovery.kubernetes "pods" {\n  role = "pod"\n  kubeconfig_file = "%s"\n}\n'
            'test.journal "pods" {\n  targets = discovery.kubernetes.pods.targets\n  path = '
            '"pods.journal"\n}\n'
        )
        for user, words in (
            (
                {
                    "as": "jane",
                    "as-groups": ["others", "watchers"],
                    "as-uid": "u 1",
                    "as-user-extra": extra,
                },
                None,
            ),
            ({"as": "jane"}, 'User "jane" cannot watch resource "pods"'),
            (
                {"as": "jane", "as-groups": ["system:masters"]},
                'cannot impersonate resource "groups"',
            ),
            (
                {"as": "jane", "as-groups": ["watchers"], "as-uid": "u 2"},
                'cannot impersonate resource "uids"',
            ),
            (
                {
                    "as": "jane",
                    "as-groups": ["watchers"],
                    "as-user-extra": {"scopes/Read%20": ["w"]},
                },
                'cannot impersonate resource "userextras/scopes/read%20"',
            ),
        ):
            journal = Journal("pods.journal")
            with Agent(write("pods.alloy", text % kubeconfig(cluster, bearer, **user))) as agent:
                if words:
                    sick(agent, words)
                else:
                    right(agent, journal, {"steady"})
                    well(agent)
                agent.stop()
            os.remove("pods.journal")


@case
def older_server():
    """A server without initial watches is listed and watched; the targets are the same."""
    with servers("--feature-gates=WatchList=false", "--goaway-chance=0.02") as cluster:
        populate(cluster)
        for path in PATHS.values():  # a cache that is not yet filled is a failure of the server's
            allowed(cluster, ADMIN, 200, f"{path}?limit=1&resourceVersion=0")
        token(ADMIN)
        ours = "".join(discovery(cluster, role, role) for role in ROLES)
        theirs = {role: prometheus(cluster, role) for role in ROLES}
        with Oracle(theirs) as oracle, Agent(write("all.alloy", ours)) as agent:
            agree(
                agent,
                oracle,
                {name: Journal(f"{name}.journal") for name in theirs},
                lambda found: all(found.values()),
            )
            assert agent.metric(FAILURES) == 0, agent.text()
            agent.stop()


PACKAGING = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "kubernetes"
)


def configuration():
    """The ConfigMap's file."""
    lines = read(MANIFEST).split("  config.alloy: |\n")[1].split("\n---\n")[0].splitlines()
    return write("config.alloy", "".join(line[4:] + "\n" for line in lines))


@case
def manifest():
    """A server takes packaging/kubernetes/andiron.yaml to the letter; its account may list and
    watch pods, and nothing else."""
    with servers() as cluster:
        made = cluster.apply(read(MANIFEST))
        bearer = jwt("andiron", "andiron", made["ServiceAccount"]["metadata"]["uid"])
        allowed(cluster, bearer, 200, "/api/v1/pods?limit=1")
        for path in ("/api/v1/nodes", "/api/v1/secrets", f"{CORE}/andiron/configmaps/andiron"):
            assert cluster.ask("GET", path, token=bearer)[0] == 403, path
        assert made["ConfigMap"]["data"]["config.alloy"].strip() == read(configuration()).strip()
    found = andiron("validate", "config.alloy", env=environment(NODE_NAME="n1")).expect(0)
    assert "warning" not in found.out + found.err, found.out + found.err


def image():
    """The image that packaging/kubernetes/image packs holds all that its command needs to check
    the manifest's configuration."""
    need_root()
    run(f"{PACKAGING}/image", BUILD, "andiron.tar").expect(0, "localhost/andiron")
    with tarfile.open("andiron.tar") as archive:
        blob = lambda digest: archive.extractfile("blobs/sha256/" + digest.removeprefix("sha256:"))
        index = json.load(archive.extractfile("index.json"))
        index = json.load(blob(index["manifests"][0]["digest"]))
        described = json.load(blob(index["manifests"][0]["digest"]))
        command = json.load(blob(described["config"]["digest"]))["config"]["Entrypoint"]
        with tarfile.open(fileobj=blob(described["layers"][0]["digest"])) as layer:
            layer.extractall("root", filter="data")
    os.makedirs("root/etc/andiron", exist_ok=True)
    write("root/etc/andiron/config.alloy", read(configuration()))
    env = {
        k: v for k, v in environment(NODE_NAME="n1").items() if k != "ANDIRON_PLUGIN_PATH"
    }  # its own plugins
    run("chroot", "root", *command, "validate", "/etc/andiron/config.alloy", env=env).expect(0)


# Not a skip: sanitizers do not work without /proc, and nobody ships them.
if not SANITIZED:
    case(image)


main()
