#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scraping: a real Go program whose work is known, and servers that answer anything but a
profile."""

import contextlib
import gzip
import json
import os
import re
import resource
import signal
import socket
import ssl
import threading
import urllib.request

from answers import Server, says
from kubeapi import certify
from ports import carry, free_port
from pprofs import Receiver
from running import Agent, ask, parse_metrics, sender_of
from tap import Background, Skip, andiron, case, main, need_root, read, write
from waiting import SANITIZED

SCRAPED = os.environ.get("SCRAPED", "")

SCRAPE = """
pyroscope.scrape "s" {
  targets         = [%s]
  forward_to      = [pyroscope.write.w.receiver]
  scrape_interval = "2s"
  %s
}
pyroscope.write "w" {
  endpoint {
    url = "http://127.0.0.1:%d"
  }
}
"""


def target(address, **labels):
    pairs = {"__address__": address, **labels}
    return "{" + ", ".join(f'"{k}" = "{v}"' for k, v in pairs.items()) + "}"


def near(value, wanted):
    assert abs(value - wanted) <= 0.03 * wanted, f"{value} is not within 3% of {wanted}"


@case
def a_go_program_comes_back_as_it_is():
    """What a Go program allocates, and how long it waits for a lock and a channel, comes back
    within 3 % of what it says itself, and once; each profile has Alloy's name and labels."""
    if not SCRAPED:
        raise Skip("needs Go: install golang-go")
    with Background(SCRAPED) as program:
        the_work_comes_back(program)


def the_work_comes_back(program):
    program.until(lambda: "listens at" in program.text(), "it listens")
    address = program.text().split("listens at ")[1].split()[0]
    with Receiver() as receiver, contextlib.ExitStack() as ends:
        more = 'job_name = "go"'
        config = write(
            "scrape.alloy", SCRAPE % (target(address, service_name="scraped"), more, receiver.port)
        )
        andiron("validate", config).expect(0)
        agent = ends.enter_context(Agent(config))
        # Totals are known from the first scrape on: what is done after it is seen.
        agent.until_metric("andiron_scrape_requests_total", 6)
        agent.until(
            lambda: agent.metric("andiron_scrape_totals_bytes") > 0
            and {l["__name__"] for l, _ in receiver.pushed} >= {"goroutine", "memory", "block"},
            "differences come",
        )
        with urllib.request.urlopen(f"http://{address}/work", timeout=30) as answer:
            did = json.load(answer)
        agent.until(
            lambda: receiver.sums("mutex").get(("main.releaseLock", "delay"))
            and receiver.sums("block").get(("main.waitForSignal", "delay"))
            and receiver.sums("memory").get(("main.allocateChunk", "alloc_space")),
            "the work is pushed",
        )
        # Two more rounds add nothing.
        before = agent.metric("andiron_scrape_requests_total")
        agent.until_metric("andiron_scrape_requests_total", before + 10)
        memory = receiver.sums("memory")
        near(memory["main.allocateChunk", "alloc_space"], did["bytes"])
        near(memory["main.allocateChunk", "alloc_objects"], did["objects"])
        near(receiver.sums("mutex")["main.releaseLock", "delay"], did["lock_ns"])
        near(receiver.sums("block")["main.waitForSignal", "delay"], did["channel_ns"])
        agent.until(
            lambda: any(l["__name__"] == "process_cpu" for l, _ in receiver.pushed),
            "a CPU profile comes",
        )
        for labels, raw in receiver.pushed:
            wanted = {"service_name": "scraped", "job": "go", "instance": address}
            assert wanted.items() <= labels.items(), labels
            assert gzip.decompress(raw), labels
        assert [why for _, _, why in agent.targets("pyroscope.scrape.s")] == [""]
        books = agent.stop()
        assert books["taken"] == len(receiver.pushed), (books, len(receiver.pushed))


def endless(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"10000\r\n" + b"\x00" * 65536 + b"\r\n")


def dripping(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        connection.sendall(b"\x0a")
        connection.settimeout(0.1)
        try:
            if not connection.recv(1):
                return
        except TimeoutError:
            pass


def whole(status, body, more=""):
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{more}\r\n"
    return lambda connection: connection.sendall(head.encode() + body)


BOMB = gzip.compress(bytes(100 << 20))

# Path → what the server does, and what is said of the target.
BAD = {
    "html": (whole("200 OK", b"<!DOCTYPE html><html>Log in</html>"), "a text and not a profile"),
    "garbage": (whole("200 OK", b"\x1f\x8b" + bytes(range(256))), "begins like gzip"),
    "noise": (whole("200 OK", bytes(range(128, 256)) * 9), "not a pprof profile"),
    "empty": (whole("200 OK", b""), "is empty"),
    "bomb": (whole("200 OK", BOMB), "larger than 48 MiB uncompressed"),
    "endless": (endless, "larger than 1000000 bytes"),
    "dripping": (dripping, "no answer from"),
    "circle": (whole("302 Found", b"", "Location: /circle\r\n"), "redirects in a circle"),
    "missing": (whole("404 Not Found", b"no such page"), "HTTP status 404: no such page"),
    "closing": (lambda connection: None, "closed the connection without an answer"),
    "babble": (
        lambda connection: connection.sendall(b"\x00\x01 what\r\n\r\n"),
        "does not speak HTTP",
    ),
}


def answer(connection):
    with connection:
        request = b""
        try:
            while b"\r\n\r\n" not in request:
                piece = connection.recv(65536)
                if not piece:
                    return
                request += piece
            BAD[request.split()[1].decode().strip("/")][0](connection)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            return


def rss_bytes(pid):
    return int(read(f"/proc/{pid}/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@case
def servers_that_answer_anything_else():
    """Each of them, and a target that cannot be asked, has a reason in its status; nothing is
    pushed and nothing is kept."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    port = listener.getsockname()[1]

    def serve():
        while True:
            try:
                connection = listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    targets = [target(f"127.0.0.1:{port}", __profile_path__=f"/{path}") for path in BAD]
    targets += [target(f"127.0.0.1:{free_port()}"), '{"job" = "x"}']
    reasons = [why for _, why in BAD.values()] + ["connection refused", "no __address__"]
    more = """
  scrape_timeout  = "500ms"
  body_size_limit = 1000000
  profiling_config {
    profile.custom "goroutine" {
      enabled = true
      path    = "/g"
    }
    profile.memory { enabled = false }
    profile.block { enabled = false }
    profile.mutex { enabled = false }
    profile.process_cpu { enabled = false }
  }
"""
    with Receiver() as receiver, contextlib.ExitStack() as ends:
        config = write("scrape.alloy", SCRAPE % (", ".join(targets), more, receiver.port))
        agent = ends.enter_context(Agent(config))
        agent.until_metric("andiron_scrape_failures_total", len(BAD) + 1)

        def told():
            found = [why for _, _, why in agent.targets("pyroscope.scrape.s")]
            return found if all(w and "not scraped yet" not in w for w in found) else None

        found = agent.until(told, "every target has its reason")
        for why, wanted in zip(found, reasons, strict=True):
            assert wanted in why, (why, wanted)
        first = rss_bytes(agent.process.pid)
        rounds = agent.metric("andiron_scrape_failures_total")
        agent.until_metric("andiron_scrape_failures_total", rounds + 4 * (len(BAD) + 1))
        grown = rss_bytes(agent.process.pid) - first
        most = (512 if SANITIZED else 32) << 20  # sanitizers keep what was freed
        assert grown < most, f"it has grown by {grown} bytes"
        agent.until_metric("andiron_scrape_held_bytes", exactly=0)
        assert agent.metric("andiron_scrape_sent_profiles_total") == 0
        assert not receiver.pushed, receiver.pushed
        agent.until_health("pyroscope.scrape.s", "healthy", "12 of these fail, and 1 targets")
        agent.until_health("pyroscope.scrape.s", "healthy", "one is goroutine of 127.0.0.1:")
        agent.stop()
    listener.close()


class Farm(Background):
    """Targets of tests/scenario/target-farm.c, by number."""

    def __init__(self):
        with open("farm.pb.gz", "wb") as out:
            out.write(gzip.compress(PROFILE))
        super().__init__(os.environ["TARGET_FARM"], "farm.pb.gz")
        self.port = int(self.until(self.text, "it listens"))

    def target(self, i, path):
        # One has an address for each, but for 0.
        i += 1
        return target(f"127.0.{i >> 8}.{i & 255}:{self.port}", __profile_path__=path)

    def counts(self):
        """(connections open, {target: how often it was asked})."""
        with urllib.request.urlopen(f"http://127.255.0.1:{self.port}/counts") as answer:
            first, *rest = answer.read().decode().splitlines()
        asked = dict(map(int, line.split()) for line in rest)
        return int(first), {i - 1: n for i, n in asked.items()}


# One sample type and its strings.
PROFILE = b"\x0a\x04\x08\x01\x10\x02\x12\x04\x0a\x00\x12\x00" b"\x32\x00\x32\x01n\x32\x01u"

ONE_KIND = """
pyroscope.scrape "s" {
  targets         = [%s]
  forward_to      = []
  scrape_interval = "%s"
  scrape_timeout  = "%s"
  body_size_limit = 100000
  profiling_config {
    profile.goroutine { enabled = true }
    profile.memory { enabled = false }
    profile.block { enabled = false }
    profile.mutex { enabled = false }
    profile.process_cpu { enabled = false }
  }
}
"""

# Path → what is said of the target.
SORTS = {
    "profile": "",
    "once": "",
    "away": "",
    "error": "HTTP status 500: no",
    "circle": "redirects in a circle",
    "text": "a text and not a profile",
    "closing": "closed the connection without an answer",
    "mute": "no answer from",
    "dripping": "no answer from",
    "endless": "larger than 100000 bytes",
}


# They end by the time, or come again at once.
SLOW = {"mute", "dripping", "away", "circle"}


@case
def thousands_of_targets_of_all_sorts():
    """Each is asked as often as every other one, whatever these do; connections are kept for some
    and not for thousands; the agent has as many descriptors as it may."""
    n = 500 if SANITIZED else 2000
    sorts = [list(SORTS)[i // 10 % len(SORTS)] if i % 10 == 0 else "profile" for i in range(n)]
    with Farm() as farm, contextlib.ExitStack() as ends:
        targets = ",\n".join(farm.target(i, sort) for i, sort in enumerate(sorts))
        config = write("many.alloy", ONE_KIND % (targets, "2s", "5s"))
        agent = ends.enter_context(
            Agent(
                config, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))
            )
        )
        limits = read(f"/proc/{agent.pid}/limits")
        assert re.search(r"Max open files +4096 +4096", limits), limits

        def rounds(least):
            asked = farm.counts()[1]
            times = [asked.get(i, 0) for i, sort in enumerate(sorts) if sort not in SLOW]
            return times if min(times) >= least and len(asked) == n else None

        agent.until(lambda: rounds(2), "each was asked twice")
        first = rss_bytes(agent.pid)
        times = agent.until(lambda: rounds(6), "each was asked six times")
        assert max(times) - min(times) <= 3, times
        # Kept are 128; beside them some are in use.
        agent.until(lambda: farm.counts()[0] <= 128 + n // 5, "few connections are kept")

        def told():
            found = [why for _, _, why in agent.targets("pyroscope.scrape.s")]
            told.wrong = [
                (sort, why)
                for why, sort in zip(found, sorts, strict=True)
                if SORTS[sort] not in why or (why and not SORTS[sort])
            ]
            return not told.wrong

        try:
            agent.until(told, "each has its reason")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{told.wrong[:20]}") from error
        assert agent.metric("andiron_scrape_postponed_total") == 0
        grown = rss_bytes(agent.pid) - first
        most = (512 if SANITIZED else 16) << 20  # sanitizers keep what was freed
        assert grown < most, f"it has grown by {grown} bytes"
        books = agent.stop()
        assert books["taken"] >= 5 * sum(not SORTS[sort] for sort in sorts), books


@case
def targets_that_hang_leave_room():
    """Where descriptors are few, targets that answer are asked on, although many others never
    answer."""
    hanging, n = 512, 544
    with Farm() as farm, contextlib.ExitStack() as ends:
        targets = [farm.target(i, "mute" if i < hanging else "profile") for i in range(n)]
        config = write("hanging.alloy", ONE_KIND % (",\n".join(targets), "1s", "1s"))
        # Half of these for requests.
        agent = ends.enter_context(
            Agent(config, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)))
        )
        agent.until_metric("andiron_scrape_profiles_down", exactly=hanging)
        before = farm.counts()[1]

        def more():
            now = farm.counts()[1]
            asked = [now.get(i, 0) - before.get(i, 0) for i in range(n)]
            return asked if min(asked[hanging:]) >= 8 and min(asked[:hanging]) >= 1 else None

        # In turn with all others, each of these would have been asked as often.
        asked = agent.until(more, "those that answer were asked eight times, each other once")
        assert sum(asked[:hanging]) <= 4 * hanging, asked
        agent.stop()


def connections(pid, port):
    """How many a process has to this port."""
    lines = [line.split() for line in read("/proc/net/tcp").splitlines()[1:]]
    inodes = {f"socket:[{line[9]}]" for line in lines if line[2].endswith(f":{port:04X}")}
    found = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found += os.readlink(f"/proc/{pid}/fd/{fd}") in inodes
    return found


@case
def what_speaks_to_targets_dies():
    """The agent has no connection to a target. Where the process that has them is killed, what was
    under way has failed and is counted, all targets are asked on, and nothing stays behind."""
    need_root()
    n, hanging = 300, 100
    sorts = ["mute" if i < hanging else "profile" for i in range(n)]
    with Farm() as farm, contextlib.ExitStack() as ends:
        targets = ",\n".join(farm.target(i, sort) for i, sort in enumerate(sorts))
        config = write("dying.alloy", ONE_KIND % (targets, "1s", "60s"))
        agent = ends.enter_context(Agent(config))

        def descriptors():
            return len(os.listdir(f"/proc/{agent.pid}/fd"))

        def all_hang():
            """In the end of a connection that the agent should not have."""
            sender = sender_of(agent.pid)
            found = connections(sender, farm.port) if sender else 0
            assert connections(agent.pid, farm.port) == 0
            return sender if found >= hanging else None

        def asked_since(before):
            now = farm.counts()[1]
            return all(now.get(i, 0) > before.get(i, 0) for i in range(n))

        def balanced():
            values = parse_metrics(ask("status", "/metrics")[1])
            m = {name.removeprefix("andiron_scrape_"): v for (name, _), v in values.items()}
            ended = m["sent_profiles_total"] + m["failures_total"]
            return m["requests_total"] == ended + m["requests_in_flight"]

        for died in range(1, 3):
            sender = agent.until(all_hang, "one process has all connections")
            own = descriptors() if died == 1 else own
            before = farm.counts()[1]
            os.kill(sender, signal.SIGKILL)
            agent.until_metric("andiron_sender_restarts_total", exactly=died)
            agent.until(lambda: asked_since(before), "each is asked again")
            assert agent.metric("andiron_scrape_failures_total") >= died * hanging
        agent.until(balanced, "each request is in the books")
        agent.until(all_hang, "they hang again")
        whys = {why for _, _, why in agent.targets("pyroscope.scrape.s")[:hanging]}
        ends = ("signal 9 ended it", "it was killed and has not ended yet")
        assert all(any(end in why for end in ends) for why in whys), whys
        agent.until(lambda: descriptors() <= own, "descriptors do not stay")
        # A reload ends what nobody wants any more, in that process, too.
        write("dying.alloy", ONE_KIND % (farm.target(n - 1, "once"), "1s", "60s"))
        sender = sender_of(agent.pid)
        agent.signal(signal.SIGHUP)
        agent.until_metric("andiron_scrape_targets", exactly=1)
        agent.until(lambda: connections(sender, farm.port) <= 128, "connections are closed")
        assert sender_of(agent.pid) == sender
        agent.stop()


class Proxy:
    """Carries bytes to where CONNECT says; `led` has these addresses."""

    def __init__(self):
        self.led, self.listener = [], socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                args = (self.listener.accept()[0],)
                threading.Thread(target=self.lead, args=args, daemon=True).start()

    def lead(self, client):
        with client, contextlib.suppress(OSError):
            head = more = client.recv(1)
            while more and not head.endswith(b"\r\n\r\n"):
                more = client.recv(1)
                head += more
            method, address = head.decode().split()[:2]
            self.led.append((method, address))
            host, port = address.split(":")
            with socket.create_connection((host, int(port))) as server:
                client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                threading.Thread(target=carry, args=(server, client), daemon=True).start()
                carry(client, server)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


# Path → the header by which the server knows who asks; "user:pass".
KNOWN = {"/token": "Bearer let me in", "/user": "Basic dXNlcjpwYXNz"}

# Name → its path, its arguments, and what is said of its target.
CALLERS = {
    "token": ("/token", 'bearer_token_file = "%(token)s"\n tls_config { ca_file = "%(ca)s" }', ""),
    "user": (
        "/user",
        'proxy_url = "http://127.0.0.1:%(proxy)d"\n tls_config { ca_file = "%(ca)s" }\n'
        ' basic_auth {\n username = "user"\n password = "pass"\n }',
        "",
    ),
    "nobody": ("/token", 'tls_config { ca_file = "%(ca)s" }', "HTTP status 401"),
    "stranger": ("/token", "", "certificate"),
}


@case
def targets_behind_tls_and_a_proxy():
    """Who trusts the server's authority and says who he is gets profiles, also by a proxy, and
    nobody else: he tells why. A token's file is read for each request."""
    certify()
    known = dict(KNOWN)

    def answer(handler):
        it_is = handler.headers.get("Authorization") == known[handler.path]
        says(*((gzip.compress(PROFILE), 200) if it_is else ("who?", 401)))(handler)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("server.pem", "server.key")
    with Server(answer) as server, Proxy() as proxy, contextlib.ExitStack() as ends:
        server.server.socket = context.wrap_socket(server.server.socket, server_side=True)
        address = f"127.0.0.1:{server.port}"
        files = {"ca": os.path.abspath("ca.crt"), "token": os.path.abspath("scraped.token")}
        write("scraped.token", "let me in\n")
        text = ""
        for name, (path, more, _) in CALLERS.items():
            one = ONE_KIND % (target(address, __profile_path__=path), "1s", "5s")
            more = 'scheme = "https"\n' + more % {**files, "proxy": proxy.port}
            text += one.replace('scrape "s" {', f'scrape "{name}" {{\n{more}')
        agent = ends.enter_context(Agent(write("tls.alloy", text)))

        def until_scraped(name):
            labels = f'"pyroscope.scrape.{name}"'
            before = agent.metric("andiron_scrape_sent_profiles_total", labels)
            agent.until_metric("andiron_scrape_sent_profiles_total", before + 2, labels)

        for name, (_, _, why) in CALLERS.items():
            if not why:
                until_scraped(name)
                continue
            agent.until_metric("andiron_scrape_failures_total", labels=f'"pyroscope.scrape.{name}"')
            told = [w for _, _, w in agent.targets(f"pyroscope.scrape.{name}")]
            assert len(told) == 1 and why in told[0], told
        known["/token"] = "Bearer another"
        os.rename(write("new.token", "another\n"), "scraped.token")
        until_scraped("token")
        agent.stop()
    assert {path for _, path, head, _ in server.seen if "Authorization" in head} == set(known)
    assert proxy.led and set(proxy.led) == {("CONNECT", address)}, proxy.led


main()
