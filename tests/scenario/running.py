# SPDX-License-Identifier: Apache-2.0
"""An agent that runs beside a test, and what it says of itself."""

import contextlib
import json
import os
import re
import signal
import socket
import urllib.error
import urllib.request

from tap import ANDIRON, DEADLINE, Background, read

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(
    rf"({NAME})(\{{{LABEL}(?:,{LABEL})*\}})? (NaN|[+-]Inf|-?[0-9.]+(?:e[+-]?[0-9]+)?)"
)


def parse_metrics(text):
    """{(name, labels): value} of the Prometheus text format, taken by the letter."""
    values, kinds, helps, family = {}, {}, {}, None
    assert text.endswith("\n"), "the last line is not ended"
    for line in text[:-1].split("\n"):
        if line.startswith("# "):
            _, word, name, rest = line.split(" ", 3)
            seen = {"HELP": helps, "TYPE": kinds}[word]
            assert re.fullmatch(NAME, name) and name not in seen, line
            assert name == family or (
                name not in helps and name not in kinds
            ), f"{name} is not in one piece"
            assert word == "HELP" or rest in ("counter", "gauge"), line
            seen[name] = rest
            family = name
            continue
        found = SAMPLE.fullmatch(line)
        assert found, f"not a sample: {line!r}"
        name, labels, value = found.groups()
        assert name == family and name in kinds, f"{name} has no type, or is not in one piece"
        assert (name, labels or "") not in values, f"twice: {line}"
        assert kinds[name] != "counter" or float(value) >= 0, line
        values[name, labels or ""] = float(value)
    return values


def ask(path, what):
    """Head and body of the answer to one GET over the unix socket."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(DEADLINE)
        s.connect(path)
        s.sendall(f"GET {what} HTTP/1.0\r\n\r\n".encode())
        answer = b"".join(iter(lambda: s.recv(65536), b""))
    head, _, body = answer.decode().partition("\r\n\r\n")
    assert int(re.search(r"Content-Length: (\d+)", head)[1]) == len(body.encode()), head
    return head, body


def get(port, path, **more):
    """Status and text of an answer over TCP."""
    try:
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", **more)
        with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def answers():
    with contextlib.suppress(
        FileNotFoundError, ConnectionRefusedError
    ):  # not bound, not listening yet
        return ask("status", "/health")


# For a test in which all that was taken has to be written: on a busy machine, naming it takes long.
PATIENT = ("--drain-deadline", "2m")


class Agent(Background):
    """`andiron run` with a status socket and a ledger."""

    def __init__(self, config, *arguments, **options):
        super().__init__(
            ANDIRON,
            "run",
            "--status",
            "status",
            "--ledger",
            "ledger.json",
            *arguments,
            config,
            **options,
        )
        self.until(answers, "the status socket answers")

    def metric(self, name, labels=""):
        """The sum over all series of that name whose labels contain the text."""
        values = parse_metrics(ask("status", "/metrics")[1])
        return sum(v for (n, l), v in values.items() if n == name and labels in l)

    def targets(self, component):
        """[(labels, {process names}, why or "")] of what it samples; asked again while it is at
        work."""

        def told():
            head, body = ask("status", "/targets")
            return body if head.startswith("HTTP/1.0 200 ") else None

        found = json.loads(self.until(told, "it has time to tell its targets")).get(component, [])
        return [(t["target"], {p["name"] for p in t["processes"]}, t.get("why", "")) for t in found]

    def health(self, component):
        """Its state and message."""
        found = [
            c for c in json.loads(ask("status", "/health")[1])["components"] if c["id"] == component
        ]
        assert len(found) == 1, (component, found)
        return found[0]["health"], found[0]["message"]

    def until_health(self, component, state, words=""):
        def is_so():
            now = self.health(component)
            return now if now[0] == state and words in now[1] else None

        try:
            return self.until(is_so, f"{component} {state} {words!r}")
        except AssertionError as error:
            raise AssertionError(
                f"{error}\nit is {self.health(component)}\n{self.text()}"
            ) from error

    def until_metric(self, name, at_least=1, labels="", exactly=None):
        def is_so():
            now = self.metric(name, labels)
            return now >= at_least if exactly is None else now == exactly

        wanted = f"at least {at_least}" if exactly is None else exactly
        self.until(is_so, f"{name}{labels} {wanted}")

    def until_ready(self, port):
        """Also where its component that serves there has not begun."""

        def is_so():
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                return get(port, "/-/ready")[0] == 200

        self.until(is_so, "it is ready")

    def stop(self):
        """A normal end; the books."""
        self.signal(signal.SIGTERM)
        self.end().expect(0)
        return books()


def worker_of(pid, sends):
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in read(f"/proc/{pid}/task/{task}/children").split():
                words = read(f"/proc/{child}/cmdline").split("\0")
                if words[1:2] == ["worker"] and ("sender" in words) == sends:
                    return int(child)
    return None


def sender_of(pid):
    """The process that speaks to servers for it."""
    return worker_of(pid, sends=True)


def cpu_seconds(pid):
    """What a process has used of the CPUs."""
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


KEYS = {"carried", "delivered", "spooled", "uncertain", "in_flight", "dropped"}


def counts(values):
    assert all(type(v) is int and v >= 0 for v in values), values
    return sum(values)


def books(path="ledger.json"):
    """The ledger, after its shape and its equation have been checked."""
    found = json.loads(read(path))
    assert set(found) == {"taken", "skipped", "writers"}, found
    counts([found["taken"], *found["skipped"].values()])
    for name, w in found["writers"].items():
        assert set(w) == KEYS and all(":" in reason for reason in w["dropped"]), (name, w)
        out = counts(
            [w["delivered"], w["spooled"], w["uncertain"], w["in_flight"], *w["dropped"].values()]
        )
        assert found["taken"] + counts([w["carried"]]) == out, (name, found)
    return found
