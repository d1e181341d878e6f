#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_discovery.py: discovery.file, .http and .dns and local.file_match in a running agent,
against files, an HTTP server and a DNS server of the test's, in a network namespace of its own."""

import contextlib
import http.server
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))
from kubernetes import Journal
from running import Agent
from tap import case, main, need_root, read, write

INSIDE = "ANDIRON_DISCOVERY_INSIDE"


@contextlib.contextmanager
def followed(component, block):
    """An agent with one discovery, and its journal."""
    config = f"""
{component} "all" {{
{block}
}}
test.journal "all" {{
  targets = {component}.all.targets
  path    = "{os.path.abspath('all.journal')}"
}}
"""
    with Agent(write("discovery.alloy", config)) as agent:
        yield agent, Journal("all.journal")


def expect(agent, journal, *wanted):
    """These targets, each a dict, in any order."""
    key = lambda t: sorted(t.items())
    agent.until(
        lambda: sorted(journal.targets(), key=key) == sorted(wanted, key=key),
        lambda: f"the targets {wanted}, not {journal.targets()}",
    )


def groups(*targets, **labels):
    return json.dumps([{"targets": targets, "labels": labels}])


def replace(path, text):
    write(f"{path}.new", text)
    os.rename(f"{path}.new", path)


@case
def files_are_followed():
    """Files that come, change by rename or in place, break and go are seen without a wait; a broken
    one keeps its targets and is named."""
    folder = os.path.abspath("later/targets")
    block = f'  files = ["{folder}/*.json", "{folder}/b.yml"]'
    with followed("discovery.file", block) as (agent, journal):
        agent.until_health("discovery.file.all", "healthy", "0 targets in 0 files")
        os.makedirs(folder)
        a, b = f"{folder}/a.json", f"{folder}/b.yml"
        one = {"__address__": "a:1", "__meta_filepath": a, "job": "x"}
        two = {"__address__": "b:2", "__meta_filepath": b}
        replace(a, groups("a:1", job="x"))
        expect(agent, journal, one)
        write(b, "- targets:\n  - b:2\n")
        expect(agent, journal, one, two)
        replace(a, "[{")
        agent.until_health("discovery.file.all", "unhealthy", f"{a} cannot be used: it is not JSON")
        expect(agent, journal, one, two)
        replace(a, groups("a:1", "c:3", job="x"))
        expect(agent, journal, one, {**one, "__address__": "c:3"}, two)
        os.unlink(a)
        expect(agent, journal, two)
        os.unlink(b)
        expect(agent, journal)


@case
def files_match():
    """Files that come and go are targets with their pattern's labels."""
    folder = os.path.abspath("logs")
    block = f"""  path_targets = [
    {{
      __path__         = "{folder}/**/*.{{log,txt}}",
      __path_exclude__ = "{folder}/**/old-*",
      job              = "x",
    }},
    {{__path__ = "logs/one.?", job = "y"}},
  ]
  sync_period = "100ms"
"""
    target = lambda path, job, **more: {"__path__": f"{folder}/{path}", "job": job, **more}
    excluded = {"__path_exclude__": f"{folder}/**/old-*"}
    with followed("local.file_match", block) as (agent, journal):
        agent.until_health("local.file_match.all", "healthy", "0 files match")
        expect(agent, journal)
        os.makedirs(f"{folder}/deep/er")
        for name in ("deep/er/a.log", "b.txt", "old-c.log", "one.1", "one.more"):
            write(f"{folder}/{name}", "")
        wanted = (target("b.txt", "x", **excluded), target("one.1", "y"))
        expect(agent, journal, target("deep/er/a.log", "x", **excluded), *wanted)
        os.unlink(f"{folder}/deep/er/a.log")
        expect(agent, journal, *wanted)
        agent.until_health("local.file_match.all", "healthy", "2 files match")


@case
def files_that_cannot_match():
    """A target that gives no file is named, and the others still do; an old file is none."""
    folder = os.getcwd()
    write("b.txt", "")
    block = f"""  path_targets = [
    {{job = "x"}},
    {{__path__ = "{folder}/{{b"}},
    {{__path__ = "{folder}/b*"}},
  ]
  sync_period       = "100ms"
  ignore_older_than = "1h"
"""
    with followed("local.file_match", block) as (agent, journal):
        expect(agent, journal, {"__path__": f"{folder}/b.txt"})
        agent.until_health("local.file_match.all", "unhealthy", "a target has no __path__")
        os.utime("b.txt", (1, 1))
        expect(agent, journal)


class Groups(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, kind, text = self.server.answer
        self.server.asked = self.headers["X-Prometheus-Refresh-Interval-Seconds"]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        if status == 302:
            self.send_header("Location", self.path)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


@case
def a_url_is_asked_again():
    """Answers become targets; errors, HTML, damaged JSON and a circle of redirects leave these as
    they are, each with its reason."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Groups)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url, kind = f"http://127.0.0.1:{server.server_port}/groups", "application/json"
    server.answer = (200, kind, groups("a:1", job="x"))
    one = {"__address__": "a:1", "__meta_url": url, "job": "x"}
    block = f'  url = "{url}"\n  refresh_interval = "1s"'
    with server, followed("discovery.http", block) as (agent, journal):
        expect(agent, journal, one)
        assert server.asked == "1", server.asked
        for answer, words in (
            ((500, "text/plain", "no"), "answered 500"),
            ((200, "text/html", "<html>"), 'content type "text/html"'),
            ((200, kind, "[{"), "it is not JSON"),
            ((302, kind, ""), "redirects in a circle"),
        ):
            server.answer = answer
            agent.until_health("discovery.http.all", "unhealthy", words)
            assert journal.targets() == [one], (words, journal.targets())
        server.answer = (200, kind, groups("b:2"))
        expect(agent, journal, {"__address__": "b:2", "__meta_url": url})
        server.shutdown()


def encoded(name):
    return b"".join(bytes([len(p)]) + p.encode() for p in name.split(".") if p) + b"\0"


class Names(threading.Thread):
    """A DNS server: what it says of a name, by name and type; for others, that there is none. It
    answers with the code `fails` where that is set."""

    def __init__(self, records):
        super().__init__(daemon=True)
        self.records, self.fails = records, 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))

    def run(self):
        while True:
            query, peer = self.socket.recvfrom(4096)
            end = query.index(b"\0", 12) + 1
            kind = struct.unpack(">H", query[end : end + 2])[0]
            found = self.records.get((query[12:end], kind), [])
            code = self.fails or (0 if found else 3)
            found = [] if self.fails else found
            head = query[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(found), 0, 0)
            body = b"".join(
                b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 60, len(data)) + data for data in found
            )
            self.socket.sendto(head + query[12 : end + 4] + body, peer)


def sender_of(agent):
    """The process that asks servers for the agent, which has one."""
    (found,) = (
        int(child)
        for task in os.listdir(f"/proc/{agent.pid}/task")
        for child in read(f"/proc/{agent.pid}/task/{task}/children").split()
        if "sender" in read(f"/proc/{child}/cmdline").split("\0")
    )
    return found


@case
def names_are_looked_up():
    """Records of each type are targets; a name that goes has none; where no server answers, what
    was known stays."""
    srv = struct.pack(">HHH", 1, 2, 8080) + encoded("web.example")
    names = Names(
        {
            (encoded("_web._tcp.example"), 33): [srv],
            (encoded("a.example"), 1): [bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])],
            (encoded("mail.example"), 15): [b"\0\1" + encoded("mx.example")],
        }
    )
    names.start()
    often = '  refresh_interval = "1s"'
    with followed("discovery.dns", f'  names = ["_web._tcp.example"]\n{often}') as (agent, journal):
        service = {
            "__address__": "web.example:8080",
            "__meta_dns_name": "_web._tcp.example",
            "__meta_dns_srv_record_port": "8080",
            "__meta_dns_srv_record_target": "web.example.",
        }
        expect(agent, journal, service)
        names.fails = 2
        agent.until_health("discovery.dns.all", "unhealthy", "no server of /etc/resolv.conf")
        assert journal.targets() == [service]
        names.fails = 3
        expect(agent, journal)
        agent.until_health("discovery.dns.all", "healthy")
        names.fails = 0
        expect(agent, journal, service)
        first = sender_of(agent)
        os.kill(first, signal.SIGKILL)
        agent.until_metric("andiron_sender_restarts_total", exactly=1)
        names.fails = 3
        expect(agent, journal)
        assert sender_of(agent) != first
        names.fails = 0
        expect(agent, journal, service)
    os.unlink("all.journal")
    block = f'  names = ["a.example"]\n  type = "A"\n  port = 90\n{often}'
    with followed("discovery.dns", block) as (agent, journal):
        expect(
            agent,
            journal,
            {"__address__": "10.0.0.1:90", "__meta_dns_name": "a.example"},
            {"__address__": "10.0.0.2:90", "__meta_dns_name": "a.example"},
        )
    os.unlink("all.journal")
    block = f'  names = ["mail.example"]\n  type = "mx"\n  port = 25\n{often}'
    with followed("discovery.dns", block) as (agent, journal):
        expect(
            agent,
            journal,
            {
                "__address__": "mx.example:25",
                "__meta_dns_name": "mail.example",
                "__meta_dns_mx_record_target": "mx.example.",
            },
        )


if os.geteuid() == 0 and not os.environ.get(INSIDE):
    # A network of its own, whose resolver is the test's.
    resolver = 'printf "nameserver 127.0.0.1\\n" >"$0" && mount --bind "$0" /etc/resolv.conf'
    enter = f'ip link set lo up && {resolver} && exec "$@"'
    with open(f"/tmp/andiron-resolv-{os.getpid()}", "w", encoding="utf-8") as file:
        code = subprocess.call(
            ["unshare", "-m", "-n", "sh", "-c", enter, file.name, sys.executable, *sys.argv],
            env={**os.environ, INSIDE: "1"},
        )
    os.unlink(file.name)
    sys.exit(code)
if os.geteuid() != 0:
    print("1..0 # SKIP needs root: run it by `sudo ./check`")
    sys.exit(0)
main()
