#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods: from a Kubernetes API server to profiles under their pod's labels."""

import contextlib
import json
import os
import signal
import sys

from answers import Server, says
from cgroups import Container
from kubeapi import (
    TOKEN,
    KubeApi,
    authority,
    event,
    garbage,
    half_a_line,
    pod,
    refuses,
    silence,
    status,
)
from running import PATIENT, Agent, cpu_seconds
from tap import (
    WORKLOAD,
    Background,
    Skip,
    case,
    environment,
    folded,
    main,
    need_root,
    read,
    share,
    write,
)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "servers"))
import pyroscope  # the servers' tests have it too

DISCOVERY = "discovery.kubernetes.pods"
API = """
  api_server        = "https://127.0.0.1:%d"
  bearer_token_file = "%s"
  tls_config {
    ca_file = "%s"
  }
"""
CONFIG = """
discovery.kubernetes "pods" {
  role = "pod"
%s}
discovery.relabel "pods" {
  targets = discovery.kubernetes.pods.targets
  rule {
    source_labels = ["__meta_kubernetes_namespace"]
    target_label  = "namespace"
  }
  rule {
    source_labels = ["__meta_kubernetes_pod_name"]
    target_label  = "pod"
  }
  rule {
    source_labels = ["__meta_kubernetes_pod_container_name"]
    target_label  = "container"
  }
}
pyroscope.ebpf "instance" {
  forward_to       = [%s]
  targets          = discovery.relabel.pods.output
  collect_interval = "1s"
  sample_rate      = 199
}
profile.file "out" {
  paths = ["%s"]
}
"""
WRITE = """
pyroscope.write "server" {
  endpoint {
    url = "%s"
  }
}
"""
TAKEN = "andiron_samples_taken_total"
PODS = "andiron_kubernetes_pods"
TARGETS = "pyroscope_ebpf_active_targets"


def config_of(api):
    return API % (api.port, write(os.path.abspath("token"), TOKEN), os.path.abspath("ca.crt"))


def config(api, server=None):
    where = config_of(api) if api else ""
    receivers = "profile.file.out.receiver" + (
        ", pyroscope.write.server.receiver" if server else ""
    )
    text = CONFIG % (where, receivers, os.path.abspath("out.folded")) + (
        WRITE % server.url if server else ""
    )
    return write("pods.alloy", text)


def receiver():
    try:
        return pyroscope.Pyroscope()
    except pyroscope.Skip as why:
        raise Skip(str(why)) from why


def space(container):
    """A namespace that no other test uses, so that servers may be shared."""
    return f"shop-{container.uid[:8]}"


def web(container):
    return pod(space(container), "web-1", container.uid, {"app": container.id})


def database(container):
    made = pod(space(container), "db-1", container.uid, {"db": container.id})
    made["metadata"]["annotations"] = {"pyroscope.io/service_name": "database"}
    return made


def goes_through(api, agent, faults, fault, words):
    """The fault is met until the agent has said so; then it recovers."""
    faults.extend([fault] * 1000)  # of one it might have recovered between two looks at its health
    api.end_watches()
    agent.until_health(DISCOVERY, "unhealthy", words)
    assert agent.metric(TARGETS) == 2
    faults.clear()
    recovers(agent)


def recovers(agent):
    """Healthy, and past the first bookmark, which ends the doubling of waits."""
    agent.until_health(DISCOVERY, "healthy")
    bookmarks = "andiron_kubernetes_bookmarks_total"
    agent.until_metric(bookmarks, agent.metric(bookmarks) + 1)


def goes_on(agent):
    """Whether pods are still sampled."""
    agent.until_metric(TAKEN, agent.metric(TAKEN) + 50)


@contextlib.contextmanager
def two_pods():
    """Two pods that are known and sampled, and their API server."""
    need_root()
    with Container() as first, Container() as second, KubeApi(page=1) as api:
        api.set(web(first))
        api.set(database(second))
        with Agent(config(api)) as agent:
            agent.until_metric(TARGETS, exactly=2)
            goes_on(agent)
            yield api, agent
            agent.until_health(DISCOVERY, "healthy")
            assert agent.metric(TARGETS) == agent.metric(PODS) == 2
            goes_on(agent)
            agent.stop()


@case
def told_apart():
    """Two containers: each under its pod's labels and service_name, every sample at the server."""
    need_root()
    with receiver() as server, Container() as first, Container() as second, Background(
        WORKLOAD, "600"
    ), KubeApi() as api:
        for thing in (web(first), database(second), pod("shop", "gone", "u3", {"app": "0" * 64})):
            api.set(thing)
        with Agent(config(api, server), *PATIENT) as agent:
            agent.until_metric("andiron_ebpf_matched_targets", exactly=2)
            began = [(one, cpu_seconds(one.pid)) for one in (first, second)]
            agent.until(
                lambda: all(cpu_seconds(one.pid) - before > 1.5 for one, before in began),
                "1.5 s of work in each",
            )
            assert agent.metric(PODS) == 3
            books = agent.stop()
        assert books["writers"]["pyroscope.write.server"]["delivered"] == books["taken"], books
        wanted = [
            {
                "namespace": space(first),
                "pod": "web-1",
                "container": "app",
                "service_name": f"ebpf/{space(first)}/app",
            },
            {
                "namespace": space(second),
                "pod": "db-1",
                "container": "db",
                "service_name": "database",
            },
        ]
        parts = []
        for labels in wanted:
            selector = "{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "}"
            if server.stand_in:
                assert server.series(selector, *labels) == [labels], (labels, server.series())
            parts.append(server.total(selector))
        assert all(part > 10**9 for part in parts), parts  # 1.5 s less what chance takes
        period = 10**9 // 199
        assert sum(parts) == books["taken"] * period, (parts, books)
        assert not server.stand_in or server.total() == sum(parts)
    stacks = folded("out.folded")
    assert sum(stacks.values()) == books["taken"]
    assert share(stacks, "workload_70") > 0.5


@case
def a_kubelet_is_asked_again_and_again():
    """Its targets come and go with its pods. What is no list of pods, or half of one, takes none
    away, and its health says why."""
    made = [pod("shop", f"web-{i}", f"u{i}", {"app": "0" * 64}) for i in range(3)]
    made[0]["metadata"]["annotations"] = {"by-a-stranger": "a\0b"}
    twins = [made[0], pod("shop", "web-0", "another", {"app": "1" * 64})]
    listed = lambda items: json.dumps({"kind": "PodList", "metadata": {}, "items": items})
    answer = lambda n: listed(made[:n])
    targets = "andiron_kubelet_targets"
    with Server(says(answer(2))) as kubelet:
        path = write(
            "agent.alloy",
            f"""
discovery.kubelet "node" {{
  url              = "http://127.0.0.1:{kubelet.port}"
  refresh_interval = "10ms"
}}
discovery.relabel "node" {{
  targets = discovery.kubelet.node.targets
}}
""",
        )
        with Agent(path) as agent:
            agent.until_metric(targets, exactly=2)
            for wrong, words in (
                (says("no", 403), "answered 403"),
                (says("<html>"), "127.0.0.1"),
                (says("{}"), "127.0.0.1"),
                (says(answer(3)[:-9]), "127.0.0.1"),
            ):
                kubelet.answer = wrong
                agent.until_health("discovery.kubelet.node", "unhealthy", words)
                assert agent.metric(targets) == 2
                kubelet.answer = says(answer(2))
                agent.until_health("discovery.kubelet.node", "healthy", "2 pods")
            for n in (3, 1, 0):
                kubelet.answer = says(answer(n))
                agent.until_metric(targets, exactly=n)
            reads, evaluated = "andiron_kubelet_reads_total", set()
            for items in twins, twins[::-1], twins:
                kubelet.answer = says(listed(items))
                agent.until_metric(reads, agent.metric(reads) + 2)
                evaluated.add(agent.metric("andiron_relabel_evaluations_total"))
            assert len(evaluated) == 1, evaluated
            kubelet.answer = says(answer(2))
            agent.until_metric(targets, exactly=2)
            text = open(path).read()
            write("agent.alloy", text.replace('"10ms"', '"0s"\n  namespaces = ["none"]'))
            agent.signal(signal.SIGHUP)
            agent.until_metric(targets, exactly=0)
            write("agent.alloy", text)
            agent.signal(signal.SIGHUP)
            agent.until_metric(targets, exactly=2)
            made[1]["\0"] = "is not to be read"
            kubelet.answer = says(answer(3))
            agent.until_metric(targets, exactly=2)
            agent.until_metric("andiron_kubelet_unreadable_pods_total", 1)
            assert {path for _, path, _, _ in kubelet.seen} == {"/pods"}, kubelet.seen


@case
def status_says_who_matched():
    """/targets names the processes of each target, or why there is none."""
    need_root()
    with Container() as first, KubeApi() as api:
        waiting, done, far = (
            pod("shop", name, f"u-{name}", {"app": name[0] * 64})
            for name in ("waiting", "done", "far")
        )
        waiting["status"].update(phase="Pending", containerStatuses=[])
        done["status"]["phase"] = "Succeeded"
        far["spec"]["nodeName"] = "node-2"
        for thing in (
            web(first),
            waiting,
            done,
            far,
            pod("shop", "idle", "u-idle", {"app": "1" * 64}),
        ):
            api.set(thing)
        write(
            "pods.alloy",
            read(config(api)).replace('role = "pod"', 'role = "pod"\n  scope = "cluster"'),
        )
        with Agent("pods.alloy", env=environment(NODE_NAME="node-1")) as agent:
            told = lambda: {
                labels["pod"]: (names, why)
                for labels, names, why in agent.targets("pyroscope.ebpf.instance")
            }
            agent.until(
                lambda: told().get("web-1", [None])[0] == {"workload"}, "the workload under its pod"
            )
            found = told()
            agent.stop()
    for name, words in (
        ("waiting", "no id for this container yet"),
        ("done", "has ended"),
        ("far", "another node"),
        ("idle", "has used a CPU"),
    ):
        assert found[name][0] == set() and words in found[name][1], found
    assert found["web-1"] == ({"workload"}, "") and len(found) == 5, found


@case
def pods_come_change_and_go():
    """What happens to pods while the agent runs is followed."""
    need_root()
    with receiver() as server, Container() as container, KubeApi() as api, Agent(
        config(api, server), *PATIENT
    ) as agent:
        agent.until_health(DISCOVERY, "healthy")
        assert agent.metric(PODS) == agent.metric(TARGETS) == agent.metric(TAKEN) == 0
        api.set(web(container))
        agent.until_metric(TARGETS, exactly=1)
        total = lambda name: server.total(
            f'{{namespace="{space(container)}",service_name="{name}"}}'
        )
        agent.until(lambda: total(f"ebpf/{space(container)}/app"), "the pod's profile")
        changed = web(container)
        changed["metadata"]["annotations"] = {"pyroscope.io/service_name": "renamed"}
        api.set(changed)
        agent.until(lambda: total("renamed"), "a profile under the new name")
        assert agent.metric(TARGETS) == agent.metric(PODS) == 1
        api.set(changed, "DELETED")
        agent.until_metric(PODS, exactly=0)
        agent.until_metric(TARGETS, exactly=0)
        sessions = "pyroscope_ebpf_profiling_sessions_total"
        agent.until_metric(sessions, agent.metric(sessions) + 2)
        taken = agent.metric(TAKEN)
        agent.until_metric(sessions, agent.metric(sessions) + 2)
        assert agent.metric(TAKEN) == taken > 0
        assert agent.stop()["writers"]["pyroscope.write.server"]["delivered"] == taken


@case
def server_is_away():
    """A server that stops: unhealthy with the cause, known pods go on; it is found again when it
    is back."""
    with two_pods() as (api, agent):
        lists = api.count("list")
        api.stop()
        agent.until_health(DISCOVERY, "unhealthy", f"127.0.0.1:{api.port}")
        assert agent.metric(TARGETS) == 2
        goes_on(agent)
        api.start()
        recovers(agent)
        assert api.count("list") == lists, "it began anew and need not have"


@case
def server_refuses():
    """401, 403, 429 and 500: the cause and its fix are named, the targets stay, and it goes on."""
    with two_pods() as (api, agent):
        for fault, words in (
            (refuses(403, "pods is forbidden"), "verbs list and watch"),
            (refuses(500, "etcdserver: leader changed"), "leader changed"),
            (refuses(429, "too many requests", Retry_After="2"), "answered 429: too many requests"),
        ):
            goes_through(api, agent, api.watch_faults, fault, words)
        api.token = "second-token"
        api.end_watches()
        agent.until_health(DISCOVERY, "unhealthy", "bearer_token_file")
        write("token", api.token + "\n")


@case
def server_has_forgotten():
    """410, as an event and to a list: everything is listed again, and no target goes meanwhile."""
    with two_pods() as (api, agent):
        for fault in (
            event("ERROR", status(410, "too old resource version: 5 (2302)")),
            refuses(410, "too old"),
        ):
            lists = api.count("list")
            api.list_faults.append(refuses(410, "the provided continue parameter is too old"))
            api.watch_faults.append(fault)
            api.end_watches()
            agent.until(
                lambda: api.count("list") >= lists + 3, "a list that fails, and one of two pages"
            )
            assert agent.metric(TARGETS) == 2
            recovers(agent)


@case
def server_talks_nonsense():
    """HTML, half an event, an event without sense, a watch that says nothing: the targets stay."""
    with two_pods() as (api, agent):
        for fault, words in (
            (garbage, "It works!"),
            (half_a_line, f"127.0.0.1:{api.port}"),
            (
                event("ADDED", {"kind": "Pod", "metadata": 7}),
                "not what a Kubernetes API server sends",
            ),
            (silence, "ended at once"),
        ):
            goes_through(api, agent, api.watch_faults, fault, words)


@case
def nonsense_from_the_start():
    """A first list of HTML, and a certificate of another CA: unhealthy with the cause."""
    need_root()
    with KubeApi() as api:
        api.list_faults.extend([garbage] * 1000)
        with Agent(config(api)) as agent:
            agent.until_health(DISCOVERY, "unhealthy", "It works!")
            api.list_faults.clear()
            agent.until_health(DISCOVERY, "healthy")
            agent.stop()
        authority("other.key", "ca.crt")
        with Agent(config(api)) as agent:
            agent.until_health(DISCOVERY, "unhealthy", "certificate")
            agent.stop()


@case
def no_cluster():
    """Neither an API server nor a cluster: unhealthy with the cause, the rest runs; a reload heals
    it."""
    need_root()
    everything = lambda path: write(
        "pods.alloy", read(path).replace("sample_rate", "targets_only = false\n  sample_rate")
    )
    env = {k: v for k, v in environment().items() if not k.startswith("KUBERNETES_")}
    with Background(WORKLOAD, "600"), KubeApi() as api, Agent(
        everything(config(None)), *PATIENT, env=env
    ) as agent:
        agent.until_health(DISCOVERY, "unhealthy", "no api_server")
        agent.until_metric(TAKEN, 200)
        assert agent.health("pyroscope.ebpf.instance")[0] == "healthy"
        everything(config(api))
        agent.signal(signal.SIGHUP)
        agent.until_health(DISCOVERY, "healthy")
        goes_on(agent)
        assert agent.stop()["taken"] == sum(folded("out.folded").values())


# Without sampling, and so without root.
ALONE = """
discovery.kubernetes "pods" {
  role = "pod"
%s}
discovery.relabel "pods" {
  targets = discovery.kubernetes.pods.targets
}
"""


@case
def initial_watch():
    """A server that tells all there is at the beginning of a watch is asked for no list."""
    with KubeApi(initial=True) as api:
        things = [pod("shop", f"web-{i}", f"u{i}", {"app": "a" * 64}) for i in range(3)]
        for thing in things:
            api.set(thing)
        with Agent(write("alone.alloy", ALONE % config_of(api))) as agent:
            agent.until_metric(PODS, exactly=3)
            api.set(things[0], "DELETED")
            agent.until_metric(PODS, exactly=2)
            api.watch_faults.append(event("ERROR", status(410, "too old")))
            api.set(things[1], "DELETED")
            api.end_watches()
            recovers(agent)
            agent.until_metric(PODS, exactly=1)
            assert api.count("list") == 0
            agent.stop()


@case
def node_scope():
    """With NODE_NAME the pods of this node are asked for; scope = "cluster" asks for all, and says
    so."""
    with KubeApi() as api:
        for scope, wanted, words in (
            ("", "spec.nodeName=node-1", "only pods of the node node-1 are watched"),
            ('  scope = "cluster"\n', None, "pods of all nodes are watched"),
            (
                '  selectors {\n    role = "pod"\n    field = "status.phase=Running"\n  }\n',
                "spec.nodeName=node-1,status.phase=Running",
                "only pods of the node",
            ),
        ):
            api.seen.clear()
            with Agent(
                write("alone.alloy", ALONE % (config_of(api) + scope)),
                env=environment(NODE_NAME="node-1"),
            ) as agent:
                agent.until_says(words)
                agent.until(lambda: api.count("watch"), "a watch")
                agent.stop()
            assert all(query.get("fieldSelector") == wanted for _, _, query in api.seen), api.seen
        with Agent(write("alone.alloy", ALONE % (config_of(api) + '  scope = "node"\n'))) as agent:
            agent.until_health(DISCOVERY, "unhealthy", "NODE_NAME is not set")
            agent.stop()


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: "https://127.0.0.1:%d", certificate-authority: ca.crt}}]
users: [{name: test, user: %s}]
"""
PROGRAM = """#!/bin/sh
echo run >> runs
if [ "$(cat credential)" = none ]; then echo "log in first" >&2; exit 3; fi
case $KUBERNETES_EXEC_INFO in *'"interactive":false'*) ;; *) exit 4 ;; esac
echo '{"kind": "ExecCredential", "status": {"token": "'"$(cat credential)"'"}}'
"""


@case
def kubeconfig_file():
    """A kubeconfig file: a token in a file, then a program; a token that is refused runs it
    anew."""
    with KubeApi() as api:
        api.set(pod("shop", "web-1", "u1", {"app": "a" * 64}))
        named = lambda name: write("alone.alloy", ALONE % f'  kubeconfig_file = "{name}"\n')
        with Agent(named("nowhere")) as agent:
            agent.until_health(DISCOVERY, "unhealthy", "cannot read the kubeconfig file nowhere")
            write("token", TOKEN)
            named(write("with-token", KUBECONFIG % (api.port, "{tokenFile: token}")))
            agent.signal(signal.SIGHUP)
            agent.until_metric(PODS, exactly=1)
            write("credential", "none")
            os.chmod(write("program", PROGRAM), 0o755)
            named(
                write(
                    "with-program",
                    KUBECONFIG
                    % (
                        api.port,
                        "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./program}}",
                    ),
                )
            )
            agent.signal(signal.SIGHUP)
            agent.until_health(DISCOVERY, "unhealthy", "it ended with 3: log in first")
            assert agent.metric(PODS) == 1
            write("credential", TOKEN)
            agent.until_health(DISCOVERY, "healthy")
            runs = len(read("runs").splitlines())
            api.token = "second-token"
            write("credential", api.token)
            api.set(pod("shop", "web-2", "u2", {"app": "b" * 64}))
            api.end_watches()
            again = lambda: len(read("runs").splitlines()) > runs
            agent.until(again, "the program to be run again")
            agent.until_metric(PODS, exactly=2)
            agent.until_health(DISCOVERY, "healthy")
            agent.stop()


main()
