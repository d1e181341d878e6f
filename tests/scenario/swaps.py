#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plugin files that are replaced while an agent runs of them."""

import contextlib
import os
import re
import shutil
import signal
import urllib.request

from books import books_hold
from ports import free_port
from pprofs import Receiver, span
from running import PATIENT, Agent, ask, parse_metrics
from tap import ANDIRON, WORKLOAD, Background, Skip, case, main, need_root, run, write
from waiting import SANITIZED

CONFIG = """
pyroscope.ebpf "node" {
  forward_to       = [pyroscope.write.w.receiver]
  targets_only     = false
  sample_rate      = 97
  collect_interval = "1s"
}

pyroscope.write "w" {
  endpoint {
    url = "http://127.0.0.1:%d"
  }
  spool {
    directory = "%s/spool"
  }
}
"""


def installed(name):
    """Where the agent finds a plugin by default."""
    for folder in os.environ["ANDIRON_PLUGIN_PATH"].split(":"):
        if os.path.exists(f"{folder}/andiron-{name}.so"):
            return f"{folder}/andiron-{name}.so"
    raise AssertionError(f"no plugin {name}")


def put(name, code):
    """By rename, as packages do."""
    write(f"p/.{name}", "")
    with open(f"p/.{name}", "wb") as f:
        f.write(code)
    os.rename(f"p/.{name}", f"p/andiron-{name}.so")


def another_build(code, n):
    """The same plugin with another build id, so it is another file to everybody who asks."""
    at = code.index(b"GNU\0", code.index(b"\x14\0\0\0\x03\0\0\0GNU\0")) + 4
    return code[:at] + bytes([n]) + code[at + 1 :]


class Plugins:
    """A folder of its own, which counts before all others."""

    def __init__(self, *names):
        os.mkdir("p")
        self.code = {}
        for name in names:
            with open(installed(name), "rb") as f:
                self.code[name] = f.read()
            put(name, self.code[name])
        self.n = 0

    def replace(self, *names):
        self.n += 1
        for name in names:
            put(name, another_build(self.code[name], self.n))


def generations(agent, name):
    """{generation: components} of a plugin."""
    metrics = parse_metrics(ask("status", "/metrics")[1])
    return {
        int(re.search(r'generation="(\d+)"', labels)[1]): int(value)
        for (metric, labels), value in metrics.items()
        if metric == "andiron_plugin_components" and f'andiron-{name}.so"' in labels
    }


def until_only(agent, name, generation):
    agent.until(
        lambda: list(generations(agent, name)) == [generation],
        f"generation {generation} of {name} alone",
    )


def no_gap(pushed):
    """The intervals of all series follow each other; the most seconds that two share."""
    spans = sorted({span(raw) for _, raw in pushed})
    end, shared = spans[0][1], 0
    for start, until in spans[1:]:
        # A series' times are made to differ in their low bits (pyroscope-push/series.h).
        assert start <= end + 8192, f"nothing for {(start - end) / 1e6} ms: {spans}"
        shared = max(shared, end - start)
        end = max(end, until)
    return shared / 1e9


@case
def a_writer_and_a_sampler():
    """A writer, a sampler, then both with what is between are replaced, at 97 Hz without a loss.
    No moment is without samples, and what was there before is gone in the end."""
    need_root()
    plugins = Plugins("ebpf", "symbolize", "pyroscope")
    with Receiver() as server, Background(WORKLOAD, "120"):
        write("agent.alloy", CONFIG % (server.port, os.getcwd()))
        with Agent("agent.alloy", *PATIENT, "--plugin-dir", "p") as a:
            a.until_metric("andiron_samples_delivered_total", 50)
            for names in (["pyroscope"], ["ebpf"], ["pyroscope", "ebpf", "symbolize"]):
                before = {n: max(generations(a, n)) for n in plugins.code}
                plugins.replace(*names)
                a.signal(signal.SIGHUP)
                for name, generation in before.items():
                    until_only(a, name, generation + (name in names))
                now = a.metric("andiron_samples_delivered_total")
                a.until_metric("andiron_samples_delivered_total", now + 50)
            books = a.stop()
        assert a.text().count(" reloaded") == 3, a.text()
    taken = books_hold(books)
    (row,) = books["writers"].values()
    # A sanitized sampler that starts on a busy machine may let its buffers fill: that is counted.
    full = row["dropped"].pop("pyroscope.ebpf.node:ring_full", 0) if SANITIZED else 0
    assert row["delivered"] + full == taken and not row["dropped"], books
    print(f"# {taken} samples; two generations share {no_gap(server.pushed):.3f} s", flush=True)


@case
def what_fails_the_checks():
    """A file that is cut off, or is no plugin, is named and changes nothing; a good one is taken.
    /-/reload does what SIGHUP does."""
    port = free_port()
    plugins = Plugins("status-http")
    write("agent.alloy", 'status.http {\n  listen_port = %d\n  reload = true\n}\n' % port)
    with Agent("agent.alloy", "--plugin-dir", "p") as a:
        until_only(a, "status-http", 1)
        put("status-http", plugins.code["status-http"][:-1000])
        a.signal(signal.SIGHUP)
        a.until_says("p/andiron-status-http.so has changed and is refused: it is truncated")
        a.until_says("not reloaded, the old configuration goes on")
        put("status-http", b"#!/bin/sh\n")
        a.signal(signal.SIGHUP)
        a.until_says("is refused: it is not an ELF file")
        a.until_metric("andiron_configurations_refused_total", exactly=2)
        assert generations(a, "status-http") == {1: 1}
        plugins.replace("status-http")
        a.until_ready(port)
        urllib.request.urlopen(f"http://127.0.0.1:{port}/-/reload").close()
        until_only(a, "status-http", 2)
        a.until_ready(port)
        assert a.metric("alloy_config_last_load_successful") == 1
        a.stop()


@case
def a_file_that_is_written_over():
    """Code that is mapped must not be written over; if it was, the agent says what to do."""
    plugins = Plugins("relabel")
    write("agent.alloy", 'discovery.relabel "r" {\n  targets = [{"a" = "b"}]\n}\n')
    with Agent("agent.alloy", "--plugin-dir", "p") as a:
        until_only(a, "relabel", 1)
        with open("p/andiron-relabel.so", "ab") as f:
            f.write(b"\0")
        a.signal(signal.SIGHUP)
        a.until_says("it was written over while this process runs it")
        a.until_says("restart the process, and put a new file in place by renaming it")
        assert generations(a, "relabel") == {1: 1}
        a.stop()


def sender_of(pid):
    """(pid, file) of the process that speaks to servers."""
    with contextlib.suppress(OSError):  # of threads and processes that end meanwhile
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as f:
                children = f.read().split()
            for child in children:
                with open(f"/proc/{child}/cmdline") as f:
                    words = f.read().split("\0")
                if words[1:2] == ["worker"] and "sender" in words:
                    return int(child), words[2]
    return None


@case
def a_sender_of_a_replaced_file():
    """Both ends are the same build: a sender that is started after its file was replaced, and
    before that is taken up, is of the file that the agent runs; after it, of the new one."""
    plugins = Plugins("discovery")
    write("agent.alloy", 'discovery.http "h" {\n  url = "http://127.0.0.1:1/"\n}\n')
    with Agent("agent.alloy", "--plugin-dir", "p") as a:
        until_only(a, "discovery", 1)
        a.until(lambda: sender_of(a.pid), "a sender")
        first, path = sender_of(a.pid)
        assert path.endswith("p/andiron-discovery.so"), path
        plugins.replace("discovery")
        os.kill(first, signal.SIGKILL)
        a.until(lambda: sender_of(a.pid) not in (None, (first, path)), "another sender")
        second, given = sender_of(a.pid)
        assert given.startswith("/proc/self/fd/"), given
        a.signal(signal.SIGHUP)
        until_only(a, "discovery", 2)
        a.until(lambda: sender_of(a.pid) not in (None, (second, given)), "a sender of the new file")
        assert sender_of(a.pid)[1] == path, sender_of(a.pid)
        a.stop()


@case
def a_set_id_agent():
    """Who starts a set-id agent chooses neither its plugins nor where they are looked for; root
    loads nothing from a folder that anybody may write to."""
    need_root()
    Plugins("relabel")
    os.chmod(".", 0o755)
    shutil.copy(ANDIRON, "andiron")
    os.chmod("andiron", 0o4755)
    if os.statvfs(".").f_flag & os.ST_NOSUID:
        raise Skip("needs a file system that is mounted without nosuid")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    shown = run(*nobody, "./andiron", "plugins", "--plugin-dir", "p")
    assert "ANDIRON_PLUGIN_PATH is ignored" in shown.err, shown.err
    shown.expect(0, "may be changed by others than root", "this process may do more than who")
    assert "discovery.relabel" not in shown.out, shown.out
    command = [ANDIRON, "plugins", "--plugin-dir", "p"]
    assert "p/andiron-relabel.so" in run(*command).expect(0).out
    os.chmod("p", 0o777)
    run(*command).expect(0, "anybody may replace what is in", "run `chmod o-w` on it")


main()
