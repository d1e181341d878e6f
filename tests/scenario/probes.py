#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""status.http: what scrapers and probes get, and what clients that mean no good do not."""

import contextlib
import ctypes
import errno
import os
import re
import signal
import socket
import urllib.error
import urllib.request

from answers import TAKEN, Server
from ports import free_port
from running import Agent, ask, get, parse_metrics
from tap import DEADLINE, WORKLOAD, Background, andiron, case, main, need_root, read, write

HTTP = "status.http {\n  listen_port = 0\n}\n"
WRITER = """
pyroscope.write "w" {
  endpoint {
    url                = "http://127.0.0.1:%d"
    min_backoff_period = "50ms"
    max_backoff_period = "100ms"
  }
}
"""
SAMPLER = """
pyroscope.ebpf "node" {
  forward_to       = [pyroscope.write.w.receiver]
  targets_only     = false
  sample_rate      = 199
  collect_interval = "1s"
}
"""


def port_of(agent):
    agent.until_says("listening at 127.0.0.1 port ")
    return int(re.search(r"listening at 127\.0\.0\.1 port (\d+)", agent.text())[1])


def port_when_ready(agent):
    """It listens before the other components have started, which it says to whoever asks in
    between."""
    port = port_of(agent)
    agent.until_ready(port)
    return port


@case
def waiting_for_agents():
    """`andiron wait` says of each agent that it asks how far that came, and what to try."""
    with Agent(write("agent.alloy", HTTP + WRITER % free_port())) as a:
        port = port_when_ready(a)
        andiron("wait", f"127.0.0.1:{port}", "--timeout", "1s").expect(
            1,
            "within 1s",
            f"http://127.0.0.1:{port}: its configuration has neither discovery.kubernetes nor "
            "discovery.kubelet",
        )
    andiron("wait", f"http://[::1]:{port}/", "--timeout", "0s").expect(
        1, f"http://[::1]:{port}: connection refused", "does the pod run"
    )
    andiron("wait", "no.such.invalid", "--timeout", "0s").expect(1, "leads to no address")
    for wrong in ("https://a", ":1", "a:", ""):
        andiron("wait", wrong).expect(2, "is no HOST:PORT")
    andiron("wait").expect(2, "for which agents?")


@case
def what_is_served():
    """The metrics are those of the status socket; probes are well; all else is refused in a
    line."""
    with Agent(write("agent.alloy", HTTP + WRITER % free_port())) as a:
        port = port_when_ready(a)
        status, text = get(port, "/metrics")
        names = {name for name, _ in parse_metrics(text)}
        assert status == 200 and names == {
            name for name, _ in parse_metrics(ask("status", "/metrics")[1])
        }, names
        for figure in (
            "sent_profiles_total",
            "sent_bytes_total",
            "sent_raw_bytes_total",
            "retries_total",
            "split_requests_total",
            "spooled_profiles",
            "expired_profiles_total",
            "uncertain_profiles_total",
            "latency_nanoseconds_total",
        ):
            assert "pyroscope_write_" + figure in names, (figure, names)
        assert get(port, "/-/ready") == (200, "andiron is ready.\n")
        assert get(port, "/-/healthy") == (200, "andiron is healthy.\n")
        code, text = get(port, "/nowhere")
        assert code == 404 and "/metrics, /-/ready, /-/healthy, " in text, text
        assert get(port, "/-/ready?x=1")[0] == 200
        assert get(port, "/metrics", data=b"x" * 100000)[0] == 405
        a.stop()


def other_address():
    """An address of this machine beside the loopback ones; None where it has no route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.99", 9))  # sends nothing, but chooses an address
        except OSError:
            return None
        return s.getsockname()[0]


@case
def names_of_strangers():
    """At loopback a name that others may lead here gets metrics and probes alone; at another
    address of this machine, where Services and proxies ask, every name gets all."""

    def code(address, path, host, **more):
        request = urllib.request.Request(
            f"http://{address}:{port}{path}", headers={"Host": host}, **more
        )
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            assert path != "/" or "localhost" in error.read().decode()
            return error.code

    port = free_port()
    text = place("0.0.0.0", port).replace("{", "{\n  reload = true", 1)
    with Agent(write("agent.alloy", text)) as a:
        a.until_ready(port)
        strangers = [
            "evil.example",
            "evil.example:80",
            "127.0.0.1.evil.example",
            "localhost.evil.x.",
        ]
        for host in strangers:
            for path in ("/", "/api/v0/web/components", "/targets", "/flame", "/-/reload"):
                assert code("127.0.0.1", path, host) == 403, (path, host)
            assert code("127.0.0.1", "/-/reload", host, method="POST") == 403, host
            for path in ("/metrics", "/-/ready", "/-/healthy"):
                assert code("127.0.0.1", path, host) == 200, (path, host)
        own = ["localhost:1", "a.localhost", "localhost.", "10.0.0.1", "[::1]:80", "node"]
        own += ["localhost.localdomain:80"]
        for host in [*own, socket.gethostname()]:
            assert code("127.0.0.1", "/", host) == 200, host
        address = other_address()
        for host in strangers if address else []:
            assert code(address, "/", host) == 200, host
        assert "reloaded" not in a.text()
        a.stop()


@case
def reloads_for_web_sites():
    """A picture in a stranger's page reloads nothing; who typed the address does."""

    def code(site):
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/-/reload", headers={"Sec-Fetch-Site": site}
        )
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            assert "web site" in error.read().decode()
            return error.code

    port = free_port()
    text = place("127.0.0.1", port).replace("{", "{\n  reload = true", 1)
    with Agent(write("agent.alloy", text)) as a:
        a.until_ready(port)
        assert code("cross-site") == code("same-site") == 403
        assert "reloaded" not in a.text()
        assert code("none") == code("same-origin") == 200
        a.stop()


@case
def readiness_follows_delivery():
    """Not ready while nothing is delivered, with the cause; healthy, since a restart mends no
    server; ready again after."""
    need_root()
    server = free_port()
    with Background(WORKLOAD, "60"), Agent(
        write("agent.alloy", HTTP + WRITER % server + SAMPLER)
    ) as a:
        port = port_of(a)

        def undelivered():
            status, text = get(port, "/-/ready")
            return (
                status == 503
                and text.startswith(f"pyroscope.write.w: http://127.0.0.1:{server}: ")
                and text.count("\n") == 1
            )

        a.until(undelivered, "it says why it is not ready")
        assert get(port, "/-/healthy")[0] == 200
        with Server(TAKEN, server):
            a.until_ready(port)
            a.stop()


class Held:
    """The threads of an agent but its first, stopped one by one: its loop turns, its work stands
    still."""

    SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000

    def __init__(self, pid):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.threads = [int(t) for t in os.listdir(f"/proc/{pid}/task") if int(t) != pid]
        self.held = []

    def trace(self, request, thread):
        """False: the thread has ended."""
        code = self.libc.ptrace(request, thread, None, None)
        error = ctypes.get_errno()
        assert code == 0 or error == errno.ESRCH, (request, os.strerror(error))
        return code == 0

    def hold(self, thread):
        if not self.trace(self.SEIZE, thread):
            return
        self.held.append(thread)
        self.trace(self.INTERRUPT, thread)
        if not os.WIFSTOPPED(os.waitpid(thread, self.WALL)[1]):
            self.held.remove(thread)  # it has ended, and is reaped

    def __enter__(self):
        try:
            for thread in self.threads:
                self.hold(thread)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        """All of them go on. One that has ended is to be reaped: until then the whole process
        cannot be waited for."""
        for thread in self.held:
            if not self.trace(self.DETACH, thread):
                os.waitpid(thread, self.WALL)


@case
def readiness_follows_sampling():
    """Not ready while nothing reads the samples, with the cause; ready again after."""
    need_root()
    server = free_port()
    with Background(WORKLOAD, "120"), Server(TAKEN, server), Agent(
        write("agent.alloy", HTTP + WRITER % server + SAMPLER)
    ) as a:
        port = port_when_ready(a)
        a.until_metric("andiron_samples_delivered_total")
        with Held(a.pid):
            a.until(lambda: get(port, "/-/ready")[0] == 503, "it is not ready")
            text = get(port, "/-/ready")[1]
            assert text.startswith("pyroscope.ebpf.node: no samples have been read for "), text
            assert get(port, "/-/healthy")[0] == 200
        a.until_ready(port)
        a.stop()


@case
def slow_and_greedy_clients():
    """Clients that say nothing, half of something or too much end; they cost no memory and keep
    nobody out."""

    def resident():
        return int(read(f"/proc/{a.process.pid}/statm").split()[1])

    with Agent(write("agent.alloy", HTTP + WRITER % free_port())) as a:
        port = port_when_ready(a)
        get(port, "/metrics")
        before = resident()
        slow = [socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) for _ in range(31)]
        for at, one in enumerate(slow):
            one.sendall(b"GET /metrics HTTP/1.1\r\nHost: x"[:at])
        assert get(port, "/-/ready")[0] == 200  # the one place that is left
        for one in slow:
            with contextlib.suppress(ConnectionResetError):
                while one.recv(4096):
                    pass
            one.close()
        for _ in range(20):
            with socket.create_connection(
                ("127.0.0.1", port), timeout=DEADLINE
            ) as greedy, contextlib.suppress(ConnectionResetError, BrokenPipeError):
                greedy.sendall(
                    b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + b"X-A: " + b"a" * 60000 + b"\r\n\r\n"
                )
                while greedy.recv(4096):
                    pass
        assert get(port, "/metrics")[0] == 200
        assert resident() - before < 512, (before, resident())  # pages: 2 MiB
        a.stop()


@case
def what_cannot_be_listened_at():
    """An address that is none is refused with its line; a port that is taken keeps nothing but
    this from working."""
    bad = andiron(
        "validate",
        write("bad.alloy", 'status.http {\n  listen_address = "agent.example"\n}\n' + WRITER % 9),
    ).expect(1)
    assert "bad.alloy:2" in bad.err + bad.out and "is no IP address" in bad.err + bad.out, bad
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Agent(write("agent.alloy", HTTP.replace("= 0", f"= {port}") + WRITER % 9)) as a:
            a.until_says(f"cannot listen at 127.0.0.1 port {port}")
            a.until_health("pyroscope.write.w", "healthy")
            a.signal(15)
            a.end()


def reload(agent, text, finding):
    """What a changed file leads to."""
    before = agent.text().count(finding)
    write("agent.alloy", text)
    agent.signal(signal.SIGHUP)
    agent.until(lambda: agent.text().count(finding) > before, finding)


def place(address, port):
    return (
        f'status.http {{\n  listen_address = "{address}"\n  listen_port = {port}\n}}\n' + WRITER % 9
    )


def refused(address, port):
    with socket.socket() as s:
        return s.connect_ex((address, port)) == errno.ECONNREFUSED


@case
def a_reload_elsewhere():
    """Who is connected stays so over a reload that does not concern the place; a changed one takes
    effect, one that cannot be had is refused, and the old one goes on."""
    first, second = free_port(), free_port()
    with Agent(write("agent.alloy", place("127.0.0.1", first))) as a:
        assert port_of(a) == first
        for text in (
            place("127.0.0.1", first).replace(":9", ":10"),
            place("", first),
        ):  # the writer's URL; the default
            with socket.create_connection(("127.0.0.1", first), timeout=DEADLINE) as kept:
                kept.sendall(b"GET /-/healthy HTTP/1.0\r\n")
                assert get(first, "/-/healthy")[0] == 200  # so the other has been taken, too
                reload(a, text, "reloaded")
                kept.sendall(b"\r\n")
                assert b"".join(iter(lambda: kept.recv(4096), b"")).endswith(
                    b"andiron is healthy.\n"
                )
        reload(a, place("127.0.0.1", second), "reloaded")
        assert get(second, "/-/healthy")[0] == 200 and refused("127.0.0.1", first)
        a.until_health("status.http", "healthy", f"port {second}")
        with socket.create_server(("127.0.0.1", first)):
            reload(
                a,
                place("127.0.0.1", first),
                f"status.http: cannot listen at 127.0.0.1 port {first}",
            )
            reload(a, place("127.0.0.1", first), "old configuration goes on")
            assert get(second, "/-/healthy")[0] == 200
        assert refused("127.0.0.2", second)
        reload(a, place("0.0.0.0", second), "reloaded")  # the old place is in the way of it
        assert get(second, "/-/healthy")[0] == 200 and not refused("127.0.0.2", second)
        reload(a, place("127.0.0.1", second), "reloaded")
        assert get(second, "/-/healthy")[0] == 200 and refused("127.0.0.2", second)
        with socket.create_server(("127.0.0.2", second)):  # of which all cannot be had
            reload(
                a, place("0.0.0.0", second), f"status.http: cannot listen at 0.0.0.0 port {second}"
            )
            assert get(second, "/-/healthy")[0] == 200
        a.until_health("status.http", "healthy", f"127.0.0.1 port {second}")
        a.stop()


os.environ.pop("http_proxy", None)
main()
