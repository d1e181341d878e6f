#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The running agent: what it says of itself, reloads, ends, servers that fail."""

import contextlib
import json
import os
import signal
import socket
import threading

from ports import free_port
from running import PATIENT, Agent, ask, books, cpu_seconds, parse_metrics
from tap import WORKLOAD, Background, andiron, case, main, need_root, read, until, write

SAMPLER = """
pyroscope.ebpf "node" {
  forward_to       = [%s]
  targets_only     = false
  sample_rate      = %d
  collect_interval = "1s"
}
"""
FILE = 'profile.file "out" {\n  paths = ["%s"]\n}\n'
TO_FILE = "profile.file.out.receiver"
WRITER = """
pyroscope.write "%s" {
  endpoint {
    url                 = "http://127.0.0.1:%d"
    remote_timeout      = "300ms"
    min_backoff_period  = "50ms"
    max_backoff_retries = %d
  }
}
"""


def only(text, pid):
    """The configuration, so that it samples this process alone."""
    return text.replace("targets_only     = false", f'targets = [{{"__process_pid__" = "{pid}"}}]')


def config(rate, end="", pid=None):
    text = SAMPLER % (TO_FILE, rate) + FILE % os.path.abspath("out.pb.gz") + end
    return write("agent.alloy", only(text, pid) if pid else text)


@contextlib.contextmanager
def server(answer):
    """A port on which every connection is given to `answer`, None: nobody listens."""
    if answer is None:
        yield free_port()
        return
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def serve():
        kept = []  # a connection that is forgotten is closed
        with contextlib.suppress(OSError):
            while True:
                kept.append(listener.accept()[0])
                with contextlib.suppress(OSError):
                    answer(kept[-1])

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield port
    listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    listener.close()


def hang(connection):
    del connection  # it stays open, and silent


def garbage(connection):
    connection.recv(65536)
    connection.sendall(b"\x00\x01\xff this is not HTTP\r\n\r\n")
    connection.close()


@case
def metrics_and_health():
    """/metrics is Prometheus text by the letter, /health is JSON, all else is 404."""
    need_root()
    with Background(WORKLOAD, "60"), Agent(config(199), *PATIENT) as a:
        a.until_metric("andiron_samples_taken_total", 100)
        head, text = ask("status", "/metrics")
        assert head.startswith("HTTP/1.0 200 ") and "text/plain; version=0.0.4" in head, head
        values = parse_metrics(text)
        assert values["andiron_ledger_balanced", ""] == 1, text
        assert (
            values["pyroscope_ebpf_active_targets", '{component_id="pyroscope.ebpf.node"}'] == 0
        ), text
        head, text = ask("status", "/health")
        assert "application/json" in head and json.loads(text)["healthy"] is True, text
        assert {c["id"] for c in json.loads(text)["components"]} >= {
            "pyroscope.ebpf.node",
            "profile.file.out",
        }, text
        assert all(
            set(c) == {"id", "health", "message", "since"} for c in json.loads(text)["components"]
        ), text
        ((labels, names, why),) = a.targets("pyroscope.ebpf.node")
        assert labels["service_name"] == "ebpf/unspecified" and not why, (labels, why)
        assert "workload" in names, names
        assert ask("status", "/nothing")[0].startswith("HTTP/1.0 404 ")
        assert a.stop()["taken"] >= 100


@case
def reload_loses_no_window():
    """SIGHUP with another rate: it changes, and no time of the workload is missing."""
    need_root()
    rate, burnt = "andiron_ebpf_sample_rate_hertz", {}
    with Background(WORKLOAD, "600") as worker:
        worker.signal(signal.SIGSTOP)
        until(lambda: ") T " in read(f"/proc/{worker.pid}/stat"), "that it has stopped")
        burnt["unseen"] = cpu_seconds(worker.pid)
        # Often: where others work, too, chance moves what n samples say by up to 1 / √n of it.
        with Agent(config(997, pid=worker.pid), *PATIENT) as a:
            a.until_metric(rate, exactly=997)
            worker.signal(signal.SIGCONT)
            a.until_metric("andiron_samples_taken_total", 1000)
            config(499, pid=worker.pid)
            a.signal(signal.SIGHUP)
            a.until_metric(rate, exactly=499)
            burnt["first"] = cpu_seconds(worker.pid)
            until(
                lambda: cpu_seconds(worker.pid) - burnt["first"] > 2, "2 s of work at the new rate"
            )
            worker.signal(signal.SIGSTOP)
            until(lambda: ") T " in read(f"/proc/{worker.pid}/stat"), "that it has stopped again")
            burnt["all"] = cpu_seconds(worker.pid)
            taken = a.stop()["taken"]
    report = json.loads(andiron("report", "--json", "-n", "1000", "out.pb.gz").expect(0).out)
    assert report["samples"] == taken, (report["samples"], taken)
    assert report["shown"] == "cpu", report["shown"]
    seen, work = report["sum"] / 1e9, burnt["all"] - burnt["unseen"]
    assert abs(seen - work) < 0.12 * work, (seen, burnt)


@case
def broken_reloads():
    """SIGHUP with a broken file prints what is wrong; the old graph goes on as it was."""
    need_root()
    with Agent(config(199), *PATIENT) as a:
        a.until_metric("andiron_ebpf_sample_rate_hertz", exactly=199)

        def refused(times, finding):
            a.signal(signal.SIGHUP)
            a.until(
                lambda: a.text().count("old configuration goes on") == times, f"refusal {times}"
            )
            a.until_says(finding)

        for times, (end, finding) in enumerate(
            (
                ("\n}", "agent.alloy:12:1: error"),
                ('profile.fil "x" { }\n', '"profile.file"'),
                ('discovery.relabel "r" {\n targets = nobody.here.targets\n}\n', "nobody.here"),
            ),
            1,
        ):
            config(49, end)
            refused(times, finding)
        write("agent.alloy", "")
        refused(4, "holds no components")
        os.remove("agent.alloy")
        refused(5, "No such file")
        assert a.metric("andiron_ebpf_sample_rate_hertz") == 199, a.text()
        before = a.metric("pyroscope_ebpf_profiling_sessions_total")
        a.until_metric("pyroscope_ebpf_profiling_sessions_total", before + 2)
        assert a.stop()["taken"] > 0
    assert os.path.exists("out.pb.gz")


@case
def second_signal_skips_the_drain():
    """A second signal does not wait for a server that hangs; what is lost is in the books."""
    need_root()
    with server(hang) as port, Background(WORKLOAD, "60"):
        text = SAMPLER % ("pyroscope.write.slow.receiver", 199) + WRITER % ("slow", port, 0)
        with Agent(
            write("agent.alloy", text.replace("300ms", "10m")), "--drain-deadline", "10m"
        ) as a:
            a.until_metric("andiron_samples_in_flight", 100)
            a.signal(signal.SIGTERM)
            a.until_says("stopping: ")
            a.signal(signal.SIGINT)  # the same one is an echo for half a second
            a.end().expect(0)
    left = books()["writers"]["pyroscope.write.slow"]
    assert left["delivered"] == 0, left


def kept_as_coming():
    """What the page beside the spool says is on its way to the writer."""
    with contextlib.suppress(FileNotFoundError):
        with open("spool/page", "rb") as page:
            return int.from_bytes(page.read(48)[24:32], "little")


@case
def what_a_kill_costs():
    """kill -9 within an interval: what the kernel had counted by then is named by the next start,
    and once."""
    need_root()
    text = (SAMPLER % ("pyroscope.write.w.receiver", 199)).replace('"1s"', '"10m"') + WRITER % (
        "w",
        9,
        0,
    )
    config_ = write(
        "agent.alloy",
        text.replace(
            "  endpoint {",
            f'  spool {{\n    directory = "{os.path.abspath("spool")}"\n  }}\n  endpoint {{',
        ),
    )
    with Background(WORKLOAD, "60"):
        with Agent(config_) as a:
            a.until(lambda: (kept_as_coming() or 0) > 200, "the page says what is coming")
            a.signal(signal.SIGKILL)
            a.process.wait()
        kept = kept_as_coming()
        with Agent(config_) as a:
            a.until_metric("andiron_samples_dropped_total", kept, "lost_at_kill")
            assert a.metric("andiron_ledger_balanced") == 1
            found = a.stop()["writers"]["pyroscope.write.w"]
            assert found["carried"] == found["dropped"]["pyroscope.write.w:lost_at_kill"] == kept, (
                found,
                kept,
            )
        with Agent(config_) as a:
            assert a.metric("andiron_samples_dropped_total", "lost_at_kill") == 0
            a.stop()


@case
def failing_servers():
    """Servers that hang, answer garbage or refuse: unhealthy with the cause. What went out whole
    is uncertain, all else is dropped for a reason."""
    need_root()
    kinds = {"hangs": hang, "garbage": garbage, "refuses": None}
    ends = {
        "hangs": "andiron_samples_uncertain",
        "garbage": "andiron_samples_uncertain",
        "refuses": "andiron_samples_dropped_total",
    }
    with contextlib.ExitStack() as stack:
        ports = {name: stack.enter_context(server(answer)) for name, answer in kinds.items()}
        worker = stack.enter_context(Background(WORKLOAD, "600"))
        text = only(SAMPLER, worker.pid) % (
            ", ".join(f"pyroscope.write.{name}.receiver" for name in kinds),
            199,
        )
        text += "".join(WRITER % (name, port, 2) for name, port in ports.items())
        a = stack.enter_context(Agent(write("agent.alloy", text), "--drain-deadline", "2s"))
        for name in kinds:
            a.until_metric(ends[name], 1, f'writer="pyroscope.write.{name}"')
            a.until_health(f"pyroscope.write.{name}", "unhealthy", f"127.0.0.1:{ports[name]}")
        assert a.health("pyroscope.ebpf.node")[0] == "healthy"
        found = a.stop()
    for name in kinds:
        w = found["writers"][f"pyroscope.write.{name}"]
        assert w["delivered"] == w["spooled"] == w["in_flight"] == 0, (name, w)
        assert bool(w["uncertain"]) == (name != "refuses") and (
            w["dropped"] or name != "refuses"
        ), (name, w)
        assert all(reason.startswith(f"pyroscope.write.{name}:") for reason in w["dropped"]), (
            name,
            w,
        )


main()
