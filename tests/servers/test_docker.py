#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_docker.py: discovery.docker and discovery.dockerswarm against a real Docker engine."""

import contextlib
import http.server
import json
import os
import queue
import socketserver
import sys
import threading
import time
import types
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))
from docker import Engine
from kubernetes import Journal
from running import Agent, cpu_seconds
from tap import case, main, need_root, read, write


@contextlib.contextmanager
def followed(engine, more=""):
    """An agent that discovers the engine's containers, and its journal."""
    config = f"""
discovery.docker "all" {{
  host = "unix://{engine.socket}"
{more}
}}
test.journal "all" {{
  targets = discovery.docker.all.targets
  path    = "{os.path.abspath('all.journal')}"
}}
"""
    with Agent(write("docker.alloy", config)) as agent:
        yield agent, Journal("all.journal")


def names(journal):
    return sorted(t["__meta_docker_container_name"] for t in journal.targets())


def waited(journal, wanted, agent):
    """How long it took, in ms, until the journal had these names."""
    began = time.monotonic()
    agent.until(lambda: names(journal) == wanted, f"the containers {wanted}")
    return (time.monotonic() - began) * 1000


@case
def containers_come_and_go():
    """A container that starts or ends is seen at once by events, one that lives for a moment too;
    labels are the engine's."""
    need_root()
    with Engine() as engine, followed(engine) as (agent, journal):
        web = engine.run("web", "host", {"com.example/tier": "front"}, ExposedPorts={"80/tcp": {}})
        took = [waited(journal, ["/web"], agent)]
        (target,) = journal.targets()
        network = engine.ask("GET", "/networks/host")
        assert target == {
            "__address__": "localhost",
            "__meta_docker_container_id": web,
            "__meta_docker_container_label_com_example_tier": "front",
            "__meta_docker_container_name": "/web",
            "__meta_docker_container_network_mode": "host",
            "__meta_docker_network_id": network["Id"],
            "__meta_docker_network_ingress": "false",
            "__meta_docker_network_internal": "false",
            "__meta_docker_network_name": "host",
            "__meta_docker_network_scope": "local",
        }, target
        engine.run("side", f"container:{web}")
        took.append(waited(journal, ["/side", "/web"], agent))
        engine.ask("POST", "/containers/web/rename", name="front")
        took.append(waited(journal, ["/front", "/side"], agent))
        engine.remove("side")
        took.append(waited(journal, ["/front"], agent))
        brief = engine.run("brief")
        engine.ask("POST", "/containers/brief/kill")
        agent.until(
            lambda: any(
                (c["labels"] or {}).get("__meta_docker_container_id") == brief
                for c in changes(journal)
            ),
            "the one that was there for a moment",
        )
        took.append(waited(journal, ["/front"], agent))
        print("# seen after", ", ".join(f"{t:.0f}" for t in took), "ms")
        lists = agent.metric("andiron_docker_lists_total")
        assert lists == 1, f"all containers were listed {lists} times"


def changes(journal):
    """All that the journal has had."""
    return Journal(journal.path).read()


@case
def an_engine_that_is_gone_is_said():
    """What the engine told last stays while it is away, with a word about it; then its containers
    are those that there are."""
    need_root()
    with Engine() as engine, followed(engine) as (agent, journal):
        engine.run("web")
        waited(journal, ["/web"], agent)
        engine.hold()
        agent.until_says(f"cannot be asked: cannot connect to {engine.socket}")
        agent.until_says("the last targets stay")
        assert names(journal) == ["/web"]
        engine.release()
        agent.until_says("the Docker engine answers again")
        waited(journal, sorted(running(engine)), agent)
        engine.run("more")
        waited(journal, sorted(running(engine)), agent)
        assert "/more" in names(journal)


def running(engine):
    return [c["Names"][0] for c in engine.ask("GET", "/containers/json")]


@case
def filters_choose():
    """The engine is asked for what the filters say, and events change nothing of that."""
    need_root()
    more = '  filter {\n    name   = "label"\n    values = ["tier=front"]\n  }\n'
    with Engine() as engine, followed(engine, more) as (agent, journal):
        engine.run("back", labels={"tier": "back"})
        engine.run("front", labels={"tier": "front"})
        waited(journal, ["/front"], agent)
        engine.remove("back")
        engine.remove("front")
        waited(journal, [], agent)
        assert {
            (c["labels"] or {}).get("__meta_docker_container_name") for c in changes(journal)
        } <= {"/front", None}


@case
def processes_are_found_by_their_container():
    """A process that uses a CPU in a container is the target's that its container became."""
    need_root()
    with Engine() as engine:
        engine.run("busy", command=("/waits", "0"))
        config = f"""
discovery.docker "all" {{
  host = "unix://{engine.socket}"
}}
pyroscope.ebpf "all" {{
  targets          = discovery.docker.all.targets
  forward_to       = [profile.file.all.receiver]
  collect_interval = "1s"
}}
profile.file "all" {{
  paths = ["all.folded"]
}}
"""
        with Agent(write("sampled.alloy", config)) as agent:
            agent.until(
                lambda: [
                    found
                    for target, found, _ in agent.targets("pyroscope.ebpf.all")
                    if target.get("__meta_docker_container_name") == "/busy" and found == {"waits"}
                ],
                "the process of the container",
            )


def swarm(engine, role, more=""):
    """A component with its journal."""
    return f"""
discovery.dockerswarm "{role}" {{
  host = "unix://{engine.socket}"
  role = "{role}"
{more}
}}
test.journal "{role}" {{
  targets = discovery.dockerswarm.{role}.targets
  path    = "{os.path.abspath(role + '.journal')}"
}}
"""


@case
def a_swarm_is_followed():
    """An engine that is no manager is said. Once it is, a service, its tasks and the node are
    targets with the labels of the engine's own lists, by events; what is removed goes."""
    need_root()
    running_only = '  filter {\n    name   = "desired-state"\n    values = ["running"]\n  }\n'
    with Engine() as engine:
        config = swarm(engine, "services") + swarm(engine, "nodes")
        config += swarm(engine, "tasks", running_only + "  tasks_without_network = true")
        with Agent(write("swarm.alloy", config)) as agent:
            agent.until_says("answered 503 when asked for its tasks")
            agent.until_says("not a swarm manager")
            engine.begin_swarm()
            journals = {r: Journal(f"{r}.journal") for r in ("services", "nodes", "tasks")}
            agent.until(lambda: len(journals["nodes"].targets()) == 1, "the node")
            (node,) = engine.ask("GET", "/nodes")
            of_node = {
                "__meta_dockerswarm_node_address": node["Status"]["Addr"],
                "__meta_dockerswarm_node_availability": "active",
                "__meta_dockerswarm_node_hostname": node["Description"]["Hostname"],
                "__meta_dockerswarm_node_id": node["ID"],
                "__meta_dockerswarm_node_platform_architecture": os.uname().machine,
                "__meta_dockerswarm_node_platform_os": "linux",
                "__meta_dockerswarm_node_role": "manager",
                "__meta_dockerswarm_node_status": "ready",
            }
            assert {
                k: v for k, v in journals["nodes"].targets()[0].items() if k in of_node
            } == of_node

            port = {"Protocol": "tcp", "TargetPort": 80, "PublishedPort": 8080, "Name": "http"}
            shop = engine.serve("shop", 0, ports=[port])
            agent.until(lambda: len(journals["services"].targets()) == 1, "the service's address")
            (address,) = (
                ip["Addr"]
                for ip in engine.ask("GET", f"/services/{shop}")["Endpoint"]["VirtualIPs"]
            )
            (target,) = journals["services"].targets()
            (network,) = (n for n in engine.ask("GET", "/networks") if n["Name"] == "ingress")
            assert target == {
                "__address__": f"{address.split('/')[0]}:8080",
                "__meta_dockerswarm_network_id": network["Id"],
                "__meta_dockerswarm_network_ingress": "true",
                "__meta_dockerswarm_network_internal": "false",
                "__meta_dockerswarm_network_name": "ingress",
                "__meta_dockerswarm_network_scope": "swarm",
                "__meta_dockerswarm_service_endpoint_port_name": "http",
                "__meta_dockerswarm_service_endpoint_port_publish_mode": "ingress",
                "__meta_dockerswarm_service_id": shop,
                "__meta_dockerswarm_service_label_com_example_tier": "front",
                "__meta_dockerswarm_service_mode": "replicated",
                "__meta_dockerswarm_service_name": "shop",
                "__meta_dockerswarm_service_task_container_image": "waits",
            }, target

            web = engine.serve("web", 2, Labels={"team": "x"})
            agent.until(lambda: states(journals["tasks"]) == ["running"] * 2, "both tasks running")
            for task in engine.ask("GET", "/tasks"):
                assert (
                    of_node
                    | {
                        "__meta_dockerswarm_container_label_team": "x",
                        "__meta_dockerswarm_service_id": web,
                        "__meta_dockerswarm_service_label_com_example_tier": "front",
                        "__meta_dockerswarm_service_mode": "replicated",
                        "__meta_dockerswarm_service_name": "web",
                        "__meta_dockerswarm_task_container_id": task["Status"]["ContainerStatus"][
                            "ContainerID"
                        ],
                        "__meta_dockerswarm_task_desired_state": "running",
                        "__meta_dockerswarm_task_id": task["ID"],
                        "__meta_dockerswarm_task_slot": str(task["Slot"]),
                        "__meta_dockerswarm_task_state": "running",
                    }
                    in journals["tasks"].targets()
                )
            engine.ask("DELETE", "/services/web")
            engine.ask("DELETE", "/services/shop")
            agent.until(
                lambda: not journals["tasks"].targets() and not journals["services"].targets(),
                "nothing is left",
            )


def states(journal):
    return [t.get("__meta_dockerswarm_task_state") for t in journal.targets()]


@case
def processes_are_found_by_their_task():
    """A process in a container of a service is the target's that its task became."""
    need_root()
    with Engine() as engine:
        engine.begin_swarm()
        engine.serve("busy", 1, command=("/waits", "0"))
        config = swarm(engine, "tasks", "  tasks_without_network = true") + """
pyroscope.ebpf "all" {
  targets          = discovery.dockerswarm.tasks.targets
  forward_to       = [profile.file.all.receiver]
  collect_interval = "1s"
}
profile.file "all" {
  paths = ["busy.folded"]
}
"""
        with Agent(write("tasks.alloy", config)) as agent:
            agent.until(
                lambda: [
                    found
                    for target, found, _ in agent.targets("pyroscope.ebpf.all")
                    if target.get("__meta_dockerswarm_service_name") == "busy"
                    and found == {"waits"}
                ],
                "the process of the task",
            )


class Recording(socketserver.ThreadingUnixStreamServer):
    """An engine that says what a real one said of one container, of a thousand."""

    daemon_threads = True

    def __init__(self, path, container, networks):
        self.all = {}
        for i in range(1000):
            one = dict(container, Id=f"{i:064x}", Names=[f"/c{i}"])
            self.all[one["Id"]] = one
        self.networks, self.events = networks, queue.Queue()
        super().__init__(path, Replay)

    def tell(self, action, identity):
        self.events.put(
            {"Type": "container", "Action": action, "Actor": {"ID": identity, "Attributes": {}}}
        )


class Replay(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/events":
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(json.dumps(self.server.events.get()).encode() + b"\n")
        chosen = json.loads(urllib.parse.parse_qs(query).get("filters", ["{}"])[0]).get("id")
        some = self.server.all
        body = self.server.networks if path == "/networks" else list(some.values())
        if chosen:
            body = [some[i] for i in chosen if i in some]
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass

    def address_string(self):
        return ""


@case
def a_thousand_containers():
    """A thousand containers, of which one restarts again and again: only that one is asked for.
    What it cost is printed."""
    need_root()
    with Engine() as engine:
        engine.run("one", "host", {f"com.example/label-{i}": "x" * 20 for i in range(10)})
        (container,) = engine.ask("GET", "/containers/json")
        networks = engine.ask("GET", "/networks")
    with Recording(os.path.abspath("recorded"), container, networks) as recorded:
        threading.Thread(target=recorded.serve_forever, daemon=True).start()
        with followed(types.SimpleNamespace(socket=os.path.abspath("recorded"))) as (
            agent,
            journal,
        ):
            agent.until(lambda: len(journal.targets()) == 1000, "a thousand targets")
            began, moved = cpu_seconds(agent.pid), time.monotonic()
            identity, kept = container_of(recorded, 500)
            for _ in range(100):
                del recorded.all[identity]
                recorded.tell("die", identity)
                agent.until(lambda: len(journal.targets()) == 999, "one fewer")
                recorded.all[identity] = kept
                recorded.tell("start", identity)
                agent.until(lambda: len(journal.targets()) == 1000, "it is back")
            spent, lasted = cpu_seconds(agent.pid) - began, time.monotonic() - moved
            (rss,) = (
                l.split()[1] for l in read(f"/proc/{agent.pid}/status").splitlines() if "VmRSS" in l
            )
            print(f"# 1,000 containers: {began:.2f} s of CPU to begin, {rss} KiB resident;")
            print(f"# 100 restarts in {lasted:.1f} s: {spent:.2f} s of CPU")
            assert agent.metric("andiron_docker_lists_total") == 1
        recorded.shutdown()


def container_of(recorded, i):
    identity = f"{i:064x}"
    return identity, recorded.all[identity]


main()
