#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`andiron targets`: discovery and relabeling alone, and which rule dropped what."""

import contextlib
import json
import os
import signal

from answers import Server, by_path, says
from kubeapi import TOKEN, KubeApi, pod
from ports import free_port
from running import Agent
from sources import keep, kept
from tap import ANDIRON, Background, andiron, case, environment, main, read, run, write

CONFIG = """
discovery.kubernetes "pods" {
  role = "pod"
}

discovery.relabel "web" {
  targets = concat(discovery.kubernetes.pods.targets, [{"app" = "web", "extra" = "yes"}])

  rule {
    source_labels = ["namespace"]
    regex         = "kube-.*"
    action        = "drop"
  }
  rule {
    source_labels = ["app"]
    regex         = "web|api"
    action        = "keep"
  }
}

discovery.relabel "names" {
  targets = discovery.relabel.web.output
  rule {
    source_labels = ["app"]
    target_label  = "service_name"
  }
}

pyroscope.ebpf "node" {
  forward_to = [profile.file.out.receiver]
  targets    = discovery.relabel.names.output
}

profile.file "out" {
  paths = ["out.folded"]
}
"""
PODS = [
    {"namespace": "shop", "app": "web"},
    {"namespace": "kube-system", "app": "dns"},
    {"namespace": "shop", "app": "batch"},
]


def given(config=CONFIG, pods=PODS):
    write("agent.alloy", config)
    write("pods.json", json.dumps(pods))


def targets(*arguments, code=0):
    return json.loads(andiron("targets", "agent.alloy", "--json", *arguments).expect(code).out)


@case
def tells_who_dropped_what():
    """Every component's targets in order, and for each dropped one the rule with its file and
    line."""
    given()
    seen = targets("--from", "pods.json")
    assert list(seen) == [
        "discovery.kubernetes.pods",
        "discovery.relabel.web",
        "discovery.relabel.names",
    ], list(seen)
    assert seen["discovery.kubernetes.pods"] == {"targets": PODS, "dropped": []}
    assert seen["discovery.relabel.web"] == {
        "targets": [{"app": "web", "namespace": "shop"}, {"app": "web", "extra": "yes"}],
        "dropped": [
            {
                "target": {"app": "dns", "namespace": "kube-system"},
                "rule": 1,
                "at": "agent.alloy:9",
            },
            {"target": {"app": "batch", "namespace": "shop"}, "rule": 2, "at": "agent.alloy:14"},
        ],
    }, seen
    names = seen["discovery.relabel.names"]
    assert [t["service_name"] for t in names["targets"]] == ["web", "web"] and not names[
        "dropped"
    ], names
    andiron("targets", "agent.alloy", "--from", "pods.json").expect(
        0,
        "discovery.relabel.web: 2 targets, 2 dropped",
        "dropped by rule 2 at agent.alloy:14",
        'app = "batch"',
    )
    assert sorted(os.listdir()) == ["agent.alloy", "pods.json"], os.listdir()


@case
def lists_keep_their_order():
    """Joined lists stand as they were joined, literals before components too, and one that is
    joined twice is there twice."""
    write(
        "agent.alloy",
        'discovery.relabel "some" {\n  targets = [{n = "2"}, {n = "3"}]\n}\n'
        'discovery.relabel "all" {\n  targets = array.concat([{n = "1"}], '
        'discovery.relabel.some.output, [{n = "4"}], discovery.relabel.some.output)\n}\n',
    )
    seen = targets()
    assert [t["n"] for t in seen["discovery.relabel.all"]["targets"]] == list("123423"), seen


@case
def one_component():
    """One component alone, with only what is upstream of it; a name that is none is answered with
    those there are."""
    given()
    seen = targets("discovery.relabel.web", "--from", "discovery.kubernetes.pods=pods.json")
    assert list(seen) == ["discovery.relabel.web"]
    assert len(seen["discovery.relabel.web"]["dropped"]) == 2
    replaced = targets("discovery.relabel.names", "--from", "discovery.relabel.web=pods.json")
    assert len(replaced["discovery.relabel.names"]["targets"]) == 3, replaced
    andiron("targets", "agent.alloy", "pyroscope.ebpf.node").expect(
        1, "discovery.relabel.web, discovery.relabel.names"
    )


@case
def bad_input():
    """What cannot be is refused with its place and a reason."""
    given()
    for text, words in (
        ("", "pods.json:1:0"),
        ("{}", "no array of targets"),
        ("[1]", "target 1: it is no object"),
        ('[{"a": "b"}, {"a": 1}]', 'target 2: its label "a" is no string'),
        ('[{"a": "b"', "pods.json:1:"),
        ('[{"a": "1", "a": "2"}]', "duplicate"),
        ("[" * 100000, "pods.json:1:"),
    ):
        write("pods.json", text)
        andiron("targets", "agent.alloy", "--from", "pods.json").expect(1, words)
    andiron("targets", "agent.alloy", "--from", "absent.json").expect(
        1, "absent.json", "No such file"
    )
    andiron("targets", "agent.alloy", "--from", "moon=absent.json").expect(1, 'no component "moon"')
    andiron("targets", "absent.alloy").expect(1, "absent.alloy")
    andiron("targets").expect(2, "which configuration?")
    andiron("targets", "a", "b", "c").expect(2, "one component")
    write("two.alloy", 'discovery.process "a" { }\ndiscovery.process "b" { }\n')
    write("pods.json", "[]")
    andiron("targets", "two.alloy", "--from", "pods.json").expect(
        1, "discovery.process.a or discovery.process.b"
    )
    write("none.alloy", 'profile.file "out" {\n  paths = ["x.folded"]\n}\n')
    andiron("targets", "none.alloy").expect(1, "no component of this configuration exports targets")


@case
def values_of_strangers():
    """Labels that would break a terminal or JSON do neither."""
    given(pods=[{"app": "web", "x\x1b[2J": "\x00\x07\n\"\\\u202e"}])
    seen = targets("discovery.relabel.web", "--from", "pods.json")
    assert seen["discovery.relabel.web"]["targets"][0]["x\x1b[2J"] == "\x00\x07\n\"\\\u202e", seen
    text = andiron("targets", "agent.alloy", "--from", "pods.json").expect(0).out
    assert "\x1b" not in text and "\x07" not in text, text


@case
def unreachable():
    """A source that finds nothing in time: what there is, who kept it waiting and why, and a
    failure."""
    port = free_port()
    given(CONFIG.replace('role = "pod"', f'role = "pod"\n  api_server = "http://127.0.0.1:{port}"'))
    r = andiron("targets", "agent.alloy", "--timeout", "6500ms").expect(
        1,
        "not settled within 6.5 s: discovery.kubernetes.pods",
        f"127.0.0.1:{port}",
        'extra = "yes"',
    )
    assert "discovery.relabel.web: 1 target\n" in r.out, r.out


@case
def pods_of_a_server():
    """Pods of the API server that the file names, all pages of them, and what rules make of
    those."""
    with KubeApi(page=1) as api:
        for name, app in (("web-1", "web"), ("web-2", "web"), ("job-1", "batch")):
            api.set(pod("shop", name, f"uid-{name}", {"main": "0" * 64}, app=app))
        given(f"""
discovery.kubernetes "pods" {{
  role              = "pod"
  api_server        = "https://127.0.0.1:{api.port}"
  bearer_token_file = "{write(os.path.abspath("token"), TOKEN)}"
  tls_config {{
    ca_file = "{os.path.abspath("ca.crt")}"
  }}
}}
""" + keep("web", "discovery.kubernetes.pods", "__meta_kubernetes_pod_label_app", "web"))
        seen = targets()
    names = lambda listed: sorted(t["__meta_kubernetes_pod_name"] for t in listed)
    assert names(seen["discovery.kubernetes.pods"]["targets"]) == ["job-1", "web-1", "web-2"], seen
    assert names(seen["discovery.relabel.web"]["targets"]) == ["web-1", "web-2"], seen
    assert names(d["target"] for d in seen["discovery.relabel.web"]["dropped"]) == ["job-1"], seen


@case
def pods_of_a_kubelet():
    """A kubelet's pods are what the API server's would be; `namespaces` says whose."""
    made = [
        pod(space, name, f"uid-{name}", {"main": "0" * 64}, app="web")
        for space, name in (("shop", "web-1"), ("shop", "web-2"), ("other", "web-3"))
    ]
    made[0]["spec"]["containers"][0]["ports"] = [{"name": "pprof", "containerPort": 6060}]
    listed = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": made}
    with KubeApi() as api, Server(by_path(**{"node/pods": says(json.dumps(listed))})) as kubelet:
        for one in made:
            api.set(one)
        given(f"""
discovery.kubernetes "api" {{
  role              = "pod"
  api_server        = "https://127.0.0.1:{api.port}"
  bearer_token_file = "{write(os.path.abspath("token"), TOKEN)}"
  tls_config {{
    ca_file = "{os.path.abspath("ca.crt")}"
  }}
}}
discovery.kubelet "all" {{
  url          = "http://127.0.0.1:{kubelet.port}/node"
  bearer_token = "let me in"
}}
discovery.kubelet "shop" {{
  url        = "http://127.0.0.1:{kubelet.port}/node"
  namespaces = ["shop", "none"]
}}
""")
        seen = targets()
        asked = {head.get("Authorization") for _, _, head, _ in kubelet.seen}
    by_name = lambda found: sorted(
        seen[found]["targets"], key=lambda t: t["__meta_kubernetes_pod_name"]
    )
    assert by_name("discovery.kubelet.all") == by_name("discovery.kubernetes.api"), seen
    assert by_name("discovery.kubelet.shop") == by_name("discovery.kubelet.all")[:2], seen
    assert by_name("discovery.kubelet.shop")[0]["__address__"] == "10.0.0.7:6060", seen
    assert asked == {None, "Bearer let me in"}, asked


def engine(handler):
    """A Docker engine with one container, whose stream of events says nothing and goes on."""
    path = handler.path.partition("?")[0].strip("/")
    if path == "events":
        handler.send_response(200)
        handler.end_headers()
        handler.rfile.read(1)  # until the client goes
    else:
        network = {"NetworkID": "n", "IPAddress": "10.0.0.9"}
        web = {"Id": "c", "Names": ["/web"], "NetworkSettings": {"Networks": {"n": network}}}
        says(json.dumps({"containers/json": [web], "networks": [{"Id": "n"}]}[path]))(handler)


def senders_of(pid):
    """The processes that speak to servers for an agent, by the components that they are of."""
    found = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in read(f"/proc/{pid}/task/{task}/children").split():
                words = read(f"/proc/{child}/cmdline").split("\0")
                if words[1:2] == ["worker"] and "sender" in words:
                    found[words[3]] = int(child)
    return found


@case
def an_engine_in_the_network():
    """An engine that is reached by TCP is asked by a process of its own; one that is killed is
    replaced, and the targets stay meanwhile. An engine at a socket is asked by the agent itself."""
    with Server(engine) as server:
        write(
            "agent.alloy",
            f'discovery.docker "net" {{\n  host = "tcp://127.0.0.1:{server.port}"\n}}\n'
            'discovery.docker "socket" {\n  host = "unix:///nothing.sock"\n}\n',
        )
        with Agent("agent.alloy") as a:
            label = 'component_id="discovery.docker.net"'
            a.until_metric("andiron_docker_targets", labels=label)
            found = senders_of(a.pid)
            assert list(found) == ["discovery.docker"], found
            a.until_health("discovery.docker.socket", "unhealthy", "connect to /nothing.sock")
            os.kill(found["discovery.docker"], signal.SIGKILL)
            a.until_says("the process that speaks to servers has ended (signal 9 ended it)")
            assert a.metric("andiron_docker_targets", label) == 1
            lists = a.metric("andiron_docker_lists_total", label)
            a.until_metric("andiron_docker_lists_total", lists + 1, label)
            a.until_health("discovery.docker.net", "healthy")
            second = senders_of(a.pid)["discovery.docker"]
            assert second != found["discovery.docker"]
            a.signal(signal.SIGTERM)
            a.end().expect(0)
        assert not os.path.exists(f"/proc/{second}")


@case
def processes_without_privilege():
    """Processes are found without BPF and without root, and --match says which each target stands
    for."""
    write("agent.alloy", kept("__process_pid__", os.getpid()))
    seen = targets("--match")
    me = seen["discovery.relabel.kept"]
    assert [t["__process_pid__"] for t in me["targets"]] == [str(os.getpid())], me["targets"]
    assert me["matched"][0]["processes"][0]["pid"] == os.getpid(), me["matched"]
    assert len(me["dropped"]) + 1 == len(seen["discovery.process.all"]["targets"]) > 1
    assert all(d["rule"] == 1 and d["at"] == "agent.alloy:5" for d in me["dropped"])
    if os.geteuid() != 0:
        return
    plugins = {
        k: v for k, v in environment().items() if k.startswith(("ANDIRON", "LD_", "ASAN", "UBSAN"))
    }
    nobody = run(
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "env",
        *(f"{k}={v}" for k, v in plugins.items()),
        ANDIRON,
        "targets",
        "agent.alloy",
        "discovery.process.all",
        "--json",
    ).expect(0)
    assert any(
        t["__process_pid__"] == "1"
        for t in json.loads(nobody.out)["discovery.process.all"]["targets"]
    )


@case
def matches_none():
    """A target that stands for no process says why."""
    meta, container = "__meta_kubernetes_pod_", {
        "__meta_kubernetes_pod_container_id": "containerd://" + "f" * 64
    }
    whys = {
        "no process has this pid": {"__process_pid__": "4194304"},
        "neither": {"app": "web"},
        "no id for this container yet": {meta + "container_name": "app", meta + "phase": "Pending"},
        "has ended": {**container, meta + "phase": "Succeeded"},
        "another node": {**container, meta + "node_name": "n2"},
    }
    given(pods=[*whys.values(), {**container, meta + "node_name": "n1"}])
    words = [
        "targets",
        "agent.alloy",
        "discovery.kubernetes.pods",
        "--from",
        "pods.json",
        "--match",
        "--json",
    ]

    def reasons(*command):
        found = run(*command, ANDIRON, *words, env=environment(NODE_NAME="n1")).expect(0)
        return [m["why"] for m in json.loads(found.out)["discovery.kubernetes.pods"]["matched"]]

    told = reasons()
    assert all(wanted in why for wanted, why in zip(whys, told)), told
    assert "no visible process" in told[-1], told
    if os.geteuid() == 0:
        told = reasons("unshare", "--pid", "--fork", "--mount-proc")
        assert (
            "hostPID: true" in told[0] and "has ended" in told[3] and "hostPID: true" in told[-1]
        ), told


@case
def many():
    """Ten thousand targets come out whole and in order."""
    given(
        pods=[
            {"namespace": "shop", "app": "web" if i % 3 else "batch", "n": str(i)}
            for i in range(10000)
        ]
    )
    seen = targets("discovery.relabel.web", "--from", "pods.json")["discovery.relabel.web"]
    kept, gone = [int(t["n"]) for t in seen["targets"] if "n" in t], [
        int(d["target"]["n"]) for d in seen["dropped"]
    ]
    assert kept == [i for i in range(10000) if i % 3] and gone == list(range(0, 10000, 3))


@case
def can_be_interrupted():
    """Ctrl-C ends it at once, with a failure and nothing half-written."""
    given()
    with Background(ANDIRON, "targets", "agent.alloy", "--timeout", "1h") as waiting:
        waiting.until(
            lambda: open(f"/proc/{waiting.pid}/stat").read().count("S")
            and len(os.listdir(f"/proc/{waiting.pid}/task")) > 1,
            "its workers run",
        )
        waiting.signal(signal.SIGINT)
        waiting.end().expect(1)


main()
