#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scraping: a real Go program whose work is known, and servers that answer anything but a
profile."""

import contextlib
import gzip
import json
import os
import socket
import threading
import urllib.request

from ports import free_port
from pprofs import Receiver
from running import Agent
from tap import Background, Skip, andiron, case, main, read, write
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
        agent.stop()
    listener.close()


main()
