#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_receive.py: pyroscope.receive_http between SDKs and a Pyroscope, otlp.receive behind a
Collector, and both against strangers.

Byte for byte: a recorder before the agent has what the SDK sent, one behind it what the server got.
"""

import contextlib
import gzip
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

from otelcol import Collector
from pyroscope import DEADLINE, Pyroscope, Skip, free_ports, get, run, until
from recorder import Recorder
from wire import piece, profile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "runtime"))
import registries  # noqa: E402

ANDIRON = os.environ["ANDIRON"]
FORM = "multipart/form-data; boundary=b"


def place(protocol, port, options=""):
    return f"""{protocol} {{
    listen_address = "127.0.0.1"
    listen_port    = {port}
    {options}
  }}"""


class Agent:
    """`andiron run` that receives and pushes to `url`; `http` and `endpoint` are options, `places`
    is in place of the block with the first, and `more` is further components."""

    def __init__(
        self,
        url,
        http="",
        endpoint="",
        by="pyroscope.receive_http",
        to="pyroscope.write",
        protocol="http",
        places=None,
        more="",
    ):
        self.folder = tempfile.TemporaryDirectory(prefix="andiron-receive-")
        self.log = pathlib.Path(self.folder.name, "log")
        self.ledger = pathlib.Path(self.folder.name, "ledger")
        self.config = pathlib.Path(self.folder.name, "config.alloy")
        places = places or place(protocol, 0, http)
        self.config.write_text(
            f"""
{by} "sdk" {{
  {places}
  forward_to = [{to}.server.receiver]
}}
{to} "server" {{
  endpoint {{
    url                = "{url}"
    min_backoff_period = "50ms"
    max_backoff_period = "100ms"
    {endpoint}
  }}
}}
{more}
""",
            encoding="utf-8",
        )
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [ANDIRON, "run", "--ledger", self.ledger, self.config], stdout=log, stderr=log
            )
        self.port = int(self.until(self._listening, "it listens")[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def text(self):
        return self.log.read_text(encoding="utf-8")

    def _listening(self):
        return re.search(r"listening at 127\.0\.0\.1 port (\d+)", self.text())

    def until(self, condition, what):
        return until(
            condition, lambda: f"{what}: {self.text()}", alive=lambda: self.process.poll() is None
        )

    def post(self, path, body, **headers):
        """Status, headers and text."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        line.request("POST", path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = line.getresponse()
        text = answer.read().decode()
        line.close()
        return answer.status, answer.headers, text

    def peak(self):
        """MiB of memory that it has had at most."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) >> 10

    def reload(self, before, after, finding):
        """A changed configuration, and what it leads to."""
        text = self.config.read_text(encoding="utf-8")
        assert before in text, text
        self.config.write_text(text.replace(before, after), encoding="utf-8")
        seen = self.text().count(finding)
        self.process.send_signal(signal.SIGHUP)
        self.until(lambda: self.text().count(finding) > seen, finding)

    def stop(self):
        """SIGTERM; the ledger."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(DEADLINE) == 0, self.text()
        return json.loads(self.ledger.read_text(encoding="utf-8"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.folder.cleanup()


def through(command, least, **environment):
    """Runs an SDK's program against a recorder before the agent; all that it was told is taken
    arrives, byte for byte."""
    with Pyroscope() as server, Recorder(server.url) as behind, Agent(behind.url) as agent:
        with Recorder(agent.url) as before:
            done = subprocess.run(
                [*command, before.url],
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            answers = [(status, path) for path, _, _, status in before.requests]
            assert answers and all(status == 200 for status, _ in answers), answers
            sent = before.profiles()
            assert len(sent) >= least, answers
            agent.until(lambda: len(behind.profiles()) >= len(sent), "all of it arrives")
            ledger = agent.stop()
            assert behind.profiles() == sent, (len(behind.profiles()), len(sent))
            assert ledger["taken"] == len(sent), ledger
            paths = [path for path, _, _, _ in behind.requests]
            return server.series() if server.stand_in else [], paths, sent


def go_sdk():
    """Pyroscope's Go client: every profile comes through byte for byte, under its own name."""
    series, _, _ = through([get("sdk-go")], 8)
    names = {one["__name__"] for one in series}
    assert {"process_cpu", "memory", "mutex", "block"} <= names, names
    assert {one["service_name"] for one in series} == {"sdk.go"}, series
    assert {one["region"] for one in series} == {"eu"}, series


def python_sdk():
    """Pyroscope's Python client, which pushes by the push API: the same."""
    program = os.path.join(HERE, "sdk-python", "program.py")
    series, _, _ = through([sys.executable, program], 1, PYTHONPATH=get("sdk-python"))
    assert {one["__name__"] for one in series} == {"process_cpu"}, series
    assert {one["service_name"] for one in series} == {"sdk.python"}, series


def java_sdk():
    """Pyroscope's Java client, which sends recordings of JFR: the same."""
    if not shutil.which("java"):
        raise Skip("Java is missing; install default-jdk-headless")
    try:
        client = registries.maven("io.pyroscope:agent:2.1.2")
    except registries.Missing as why:
        raise Skip(f"needs Pyroscope's Java client: {why}") from why
    program = os.path.join(HERE, "sdk-java", "Program.java")
    _, paths, sent = through(["java", "-cp", client, program], 2)
    for path in paths:
        query = urllib.parse.parse_qs(urllib.parse.urlparse(path).query)
        assert query["name"] == ["sdk.java{pyroscope_spy=javaspy,region=eu}"], path
        assert query["format"] == ["jfr"] and query["spyName"] == ["javaspy"], path
    assert all(gzip.decompress(recording).startswith(b"FLR\0") for recording in sent)


def folded():
    """Folded text arrives as a profile of the same total, at the rate that it says."""
    with Pyroscope() as server, Agent(server.url) as agent:
        body = b"main;work 12\nmain;idle 3\n"
        status, _, text = agent.post("/ingest?name=folded.app.cpu%7Ba=b%7D&sampleRate=50", body)
        assert status == 200, text
        agent.stop()
        assert server.total('{service_name="folded.app.cpu"}') == 15 * 20_000_000


def faults_are_told():
    """What is damaged is a 400 with a sentence, what is too large a 413; nothing of it arrives."""
    push = "/push.v1.PusherService/Push"
    bomb = gzip.compress(bytes(64 << 20))
    form = b'--b\r\nContent-Disposition: form-data; name="profile"\r\n\r\n'
    with Pyroscope() as server, Recorder(server.url) as behind, Agent(behind.url) as agent:
        for path, body, headers, status, says in (
            ("/ingest?name=a&format=pprof", b"garbage", {}, 400, "no pprof"),
            ("/ingest?name=a", form + profile(), {"Content_Type": FORM}, 400, "cut off"),
            ("/ingest?name=a&format=pprof", gzip.compress(profile())[:-9], {}, 400, "gzip"),
            ("/ingest?name=a&format=pprof", bomb, {}, 413, "uncompressed"),
            ("/ingest?name=a", bomb, {"Content_Encoding": "gzip"}, 413, "uncompressed"),
            ("/ingest?name=a", iter([bytes(1 << 20)] * 17), {}, 413, "larger"),
            ("/ingest", b"a 1", {}, 400, "application"),
            (push, b"\x0a\x7f", {"Content_Type": "application/proto"}, 400, "cut off"),
            (push, b"[" * 10**6, {"Content_Type": "application/json"}, 413, "JSON"),
            (push, b"x", {"Content_Type": "application/grpc"}, 415, "gRPC"),
            ("/else", b"x", {}, 404, "/ingest"),
        ):
            got, _, text = agent.post(path, body, **headers)
            assert got == status and says in text, (path, got, text)
        with socket.create_connection(("127.0.0.1", agent.port)) as line:  # by its head alone
            line.sendall(b"POST /ingest HTTP/1.1\r\nHost: x\r\nContent-Length: 16777217\r\n\r\n")
            assert b" 413 " in line.recv(1000)
        assert not behind.requests and agent.stop()["taken"] == 0


def strangers():
    """Clients that are slow, many, or gone cost no more than their connection, and end."""
    limits = 'conn_limit = 40\nserver_read_timeout = "1s"\nserver_idle_timeout = "1s"'
    with Pyroscope() as server, Agent(server.url, limits) as agent:
        agent.post("/ingest?name=a", b"a 1\n")
        before = agent.peak()
        lines = [socket.create_connection(("127.0.0.1", agent.port)) for _ in range(39)]
        for i, line in enumerate(lines):
            line.settimeout(DEADLINE)
            if i % 3 == 0:
                line.sendall(b"POST /ingest?name=a HTTP/1.1\r\nHost: x\r\n")
            elif i % 3 == 1:
                line.sendall(b"POST /ingest?name=a HTTP/1.1\r\nContent-Length: 9999999\r\n\r\na 1")
        for line in lines:  # it is they who are hung up on
            assert line.recv(100) == b"", "answered"
            line.close()
        drip = socket.create_connection(("127.0.0.1", agent.port))
        began = time.monotonic()
        try:
            while time.monotonic() - began < DEADLINE:
                drip.sendall(b"P")
                drip.settimeout(0.1)
                try:
                    if drip.recv(1) == b"":
                        break
                except TimeoutError:
                    pass
            else:
                raise AssertionError("a byte now and then keeps a connection")
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert agent.post("/ingest?name=a", b"a 1\n")[0] == 200
        grown = agent.peak() - before
        assert grown <= 8, f"{grown} MiB more"


def backpressure():
    """While the server stands still and its writer is full, 429 with Retry-After; all that was
    answered 200 arrives, and nothing else."""
    with Pyroscope("--rate-mib", "400", "--burst-mib", "400") as server:
        with Recorder(server.url) as behind:
            behind.open.clear()
            small = 'queue_bytes = 1048576\nremote_timeout = "60s"'
            with Agent(behind.url, endpoint=small) as agent:
                taken, refused = [], 0
                for i in range(400):
                    body = profile(pad=i % 7 + 1, at=time.time_ns() + i)
                    status, headers, text = agent.post("/ingest?name=p&format=pprof", body)
                    if status == 200:
                        taken.append(body)
                    else:
                        assert status == 429 and int(headers["Retry-After"]) > 0, (status, text)
                        refused += 1
                assert taken and refused, (len(taken), refused)
                behind.open.set()
                agent.until(lambda: len(behind.profiles()) >= len(taken), "what was taken arrives")
                agent.until(
                    lambda: agent.post("/ingest?name=p&format=pprof", profile())[0] == 200,
                    "it takes profiles again",
                )
                ledger = agent.stop()
                writer = ledger["writers"]["pyroscope.write.server"]
                assert writer["delivered"] == ledger["taken"] == len(taken) + 1, ledger
                print(f"# {len(taken)} taken, {refused} refused", flush=True)


COLLECTOR = """
receivers:
  otlp:
    protocols:
      http: {endpoint: 127.0.0.1:%d}
exporters:
  %s:
    endpoint: %s
    tls: {insecure: true}
    %s
    retry_on_failure: {initial_interval: 100ms, max_interval: 1s}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    profiles:
      receivers: [otlp]
      exporters: [%s]
"""
PROFILES = "/v1development/profiles"
PROTOBUF = {"Content_Type": "application/x-protobuf"}


def by_http():
    """What a Collector exports by OTLP over HTTP arrives: names, labels of the resource, and the
    total, also where the server stood still meanwhile."""
    from_a_collector("otlp_http", "http")


def by_grpc():
    """The same over gRPC."""
    from_a_collector("otlp_grpc", "grpc")


def by_http_in_json():
    """The same in JSON."""
    from_a_collector("otlp_http", "http", "encoding: json")


def from_a_collector(exporter, protocol, more=""):
    (port,) = free_ports(1)
    with Pyroscope() as server, Recorder(server.url) as behind:
        with Agent(behind.url, by="otlp.receive", protocol=protocol) as last:
            config = COLLECTOR % (port, exporter, last.url, more, exporter)
            with Collector(config, listens=(port,)) as collector:
                assert collector.process.poll() is None, collector.said()
                with Agent(f"http://127.0.0.1:{port}", to="otlp.write") as first:
                    behind.open.clear()
                    for i in range(30):
                        body = b"main;work 12\nmain;idle 3\n"
                        place = (
                            f"/ingest?name=shop.app.cpu%7Bteam=a%7D&sampleRate=50&from={100 + i}"
                        )
                        status, _, text = first.post(place, body)
                        assert status == 200, text
                    ledger = first.stop()["writers"]["otlp.write.server"]
                    assert ledger["delivered"] == 30 * 15, (ledger, collector.said())
                behind.open.set()
                last.until(lambda: len(behind.profiles()) >= 30, "all of it arrives")
                ledger = last.stop()
        assert ledger["taken"] == ledger["writers"]["pyroscope.write.server"]["delivered"] == 30
        assert server.total('{service_name="shop.app.cpu"}') == 30 * 15 * 20_000_000
        if server.stand_in:
            series = server.series()
            assert {one["__name__"] for one in series} == {"process_cpu"}, series
            assert {one["team"] for one in series} == {"a"}, series
        names = {name for _, _, names in server.frames() for name in names}
        assert {"main", "work", "idle"} <= names, names


def faults_of_otlp():
    """What is no request of OTLP's is refused with a sentence, in a Status."""
    with Pyroscope() as server, Recorder(server.url) as behind:
        with Agent(behind.url, by="otlp.receive") as agent:
            for path, body, headers, status, says in (
                (PROFILES, b"\x0a\x7f", PROTOBUF, 400, "cut off"),
                (PROFILES, b"", {"Content_Type": "text/json"}, 415, "proto"),
                (PROFILES, b"", {"Content_Type": "application/grpc"}, 415, "proto"),
                ("/v1/traces", b"", PROTOBUF, 404, PROFILES),
                ("/ingest?name=a", b"a 1", {}, 404, PROFILES),
                (
                    PROFILES,
                    gzip.compress(bytes(64 << 20)),
                    {**PROTOBUF, "Content_Encoding": "gzip"},
                    413,
                    "uncompressed",
                ),
            ):
                got, answer, text = agent.post(path, body, **headers)
                assert got == status and says in text, (path, got, text)
                assert answer["Content-Type"] == "application/x-protobuf", answer
            assert agent.post(PROFILES, b"", **PROTOBUF)[0] == 200  # there is nothing in it
            in_json = {"Content_Type": "application/json"}
            for body, status, says in ((b"{}", 200, "{}"), (b"[", 400, "no JSON object")):
                got, answer, text = agent.post(PROFILES, body, **in_json)
                assert got == status and says in text, (got, text)
                assert answer["Content-Type"] == in_json["Content_Type"], answer
            assert not behind.requests and agent.stop()["taken"] == 0


def spoken(port):
    """What is spoken at a port: whoever takes gRPC's for HTTP/1.1's is told."""
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return {b"505": "grpc", b"404": "http"}[line.recv(1000).split()[1]]


def places_change_hands():
    """A reload may swap the ports of HTTP and gRPC, or give one's to the other. One that is refused
    is not noticed by anybody who is connected."""
    first, second = free_ports(2)
    both = place("http", first) + "\n  " + place("grpc", second)
    swapped = place("http", second) + "\n  " + place("grpc", first)
    with Agent("http://127.0.0.1:1", by="otlp.receive", places=both) as agent:
        assert (spoken(first), spoken(second)) == ("http", "grpc")
        agent.reload(both, swapped, "reloaded")
        assert (spoken(first), spoken(second)) == ("grpc", "http")
        agent.reload(swapped, place("http", first), "reloaded")
        assert spoken(first) == "http"
        with socket.create_server(("127.0.0.1", 0)) as foreign:
            elsewhere = place("grpc", foreign.getsockname()[1])
            with socket.create_connection(("127.0.0.1", first), timeout=DEADLINE) as kept:
                kept.sendall(b"GET / HTTP/1.0\r\n")
                assert spoken(first) == "http"  # so that the other has been taken, too
                agent.reload(place("http", first), elsewhere, "old configuration goes on")
                kept.sendall(b"\r\n")
                assert b" 404 " in kept.recv(1000)
            assert spoken(first) == "http"
        agent.reload(elsewhere, place("grpc", first), "reloaded")
        assert spoken(first) == "grpc"
        agent.stop()


EXPORT = b"/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags])
    return head + stream.to_bytes(4, "big") + payload


def strangers_are_counted():
    """Connections beyond the limit, those that wait and those that are closed, and calls that are
    broken off; who is connected by gRPC at the end is told to go."""
    web, grpc, status = free_ports(3)
    places = place("http", web, "conn_limit = 1") + "\n" + place("grpc", grpc, "conn_limit = 2")
    more = f'status.http {{\n  listen_address = "127.0.0.1"\n  listen_port = {status}\n}}'
    with Agent(
        "http://127.0.0.1:1", by="otlp.receive", places=places, more=more
    ) as agent, contextlib.ExitStack() as lines:

        def connect(port):
            line = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
            return lines.enter_context(line)

        def counted(name):
            with urllib.request.urlopen(f"http://127.0.0.1:{status}/metrics") as answer:
                found = re.search(
                    rf"^andiron_otlp_receive_{name}\{{.*\}} (\d+)$", answer.read().decode(), re.M
                )
            return int(found[1])

        def until_counted(name, n):
            agent.until(lambda: counted(name) == n, f"{name} is {n}")

        for port in (grpc, status):
            agent.until(lambda at=f"127.0.0.1 port {port}": at in agent.text(), "it listens")
        first = connect(grpc)
        head = b"\x83\x86\1\1x\x04%c%s\x0f\x10\x10application/grpc" % (len(EXPORT), EXPORT)
        call = frame(1, 4, 1, head) + frame(0, 0, 1, b"\0\0\0\0\3ab")
        first.sendall(PREFACE + frame(4, 0, 0) + call + frame(3, 0, 1, b"\0\0\0\x08"))
        until_counted("broken_off_requests_total", 1)
        connect(grpc)
        assert connect(grpc).recv(1) == b""
        until_counted("refused_connections_total", 1)
        held, waits = connect(web), connect(web)
        until_counted("tcp_connections_waiting", 1)
        held.close()
        until_counted("tcp_connections_waiting", 0)
        waits.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert b" 404 " in waits.recv(1000)
        agent.stop()
        heard = b"".join(iter(lambda: first.recv(4096), b""))
        assert frame(7, 0, 0, b"\0\0\0\1" + bytes(4)) in heard, heard


sys.exit(
    run(
        [
            go_sdk,
            python_sdk,
            java_sdk,
            folded,
            faults_are_told,
            strangers,
            backpressure,
            by_http,
            by_http_in_json,
            by_grpc,
            faults_of_otlp,
            places_change_hands,
            strangers_are_counted,
        ]
    )
)
