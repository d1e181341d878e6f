#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A changed configuration: `run --watch` takes it without a signal, however its files change."""

import json
import os
import re
import shutil
import signal
import socket
import time

from ports import free_port
from running import Agent, ask
from tap import ANDIRON, Background, Skip, case, main, read, run, write

WRITER = """
pyroscope.write "w" {
  endpoint {
    url = "http://127.0.0.1:9"
  }
}
"""
BROKEN = WRITER.replace("url", "urk")


def listening(port):
    """A configuration that shows that it runs."""
    return f"status.http {{\n  listen_port = {port}\n}}\n{WRITER}"


def answers(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


class ConfigMap:
    """A volume as the kubelet writes it: each revision is a folder, and one link is swapped."""

    def __init__(self, folder, text):
        self.folder, self.revision = folder, 0
        os.mkdir(folder)
        self.set(text)
        os.symlink("..data/config.alloy", f"{folder}/config.alloy")
        self.path = f"{folder}/config.alloy"

    def set(self, text):
        self.revision += 1
        name = f"..2026_11_25_{self.revision}"
        os.mkdir(f"{self.folder}/{name}")
        write(f"{self.folder}/{name}/config.alloy", text)
        os.symlink(name, f"{self.folder}/..data_tmp")
        os.rename(f"{self.folder}/..data_tmp", f"{self.folder}/..data")
        if self.revision > 1:
            shutil.rmtree(f"{self.folder}/..2026_11_25_{self.revision - 1}")


def inotify_of(agent):
    """The descriptors by which it hears of changes."""
    folder = f"/proc/{agent.pid}/fd"
    return [fd for fd in os.listdir(folder) if "inotify" in os.readlink(f"{folder}/{fd}")]


def watched(agent, folder):
    inode = f" ino:{os.stat(folder).st_ino:x} "
    return any(inode in read(f"/proc/{agent.pid}/fdinfo/{fd}") for fd in inotify_of(agent))


def until_taken(agent, port, other):
    agent.until(lambda: answers(port) and not answers(other), f"port {port} in place of {other}")


@case
def a_config_map():
    """A ConfigMap that changes is taken; a wrong one is refused, with its message, once, in log
    and metrics, and the old one goes on; the next right one is taken."""
    first, second = free_port(), free_port()
    mounted = ConfigMap("mounted", listening(first))
    with Agent("--watch", mounted.path) as a:
        a.until(lambda: answers(first), "it listens")
        assert a.metric("alloy_config_last_load_successful") == 1
        began = a.metric("alloy_config_last_load_success_timestamp_seconds")
        mounted.set(listening(second))
        until_taken(a, second, first)
        a.until_says("reloaded")
        assert a.metric("alloy_config_last_load_success_timestamp_seconds") > began
        mounted.set(listening(first).replace("url", "urk"))
        a.until_says('did you mean "url"?')
        a.until_says("not reloaded, the old configuration goes on")
        assert re.search(r"mounted/config\.alloy:\d+:\d+: error: ", a.text()), a.text()
        assert a.metric("alloy_config_last_load_successful") == 0
        assert answers(second) and not answers(first)
        # As when another key of the ConfigMap changes.
        mounted.set(listening(first).replace("url", "urk"))
        a.until(lambda: watched(a, f"{mounted.folder}/..data"), "it has looked again")
        mounted.set(listening(first))
        until_taken(a, first, second)
        a.until_metric("alloy_config_last_load_successful", exactly=1)
        assert a.metric("andiron_configurations_refused_total") == 1
        a.stop()
    assert a.text().count("not reloaded") == 1, a.text()


@case
def warnings_are_said_once():
    """A reload does not repeat them; other ones are said."""
    first, other = (
        f'discovery.relabel "{label}" {{ targets = concat([]) }}\n' for label in "ab"
    )
    write("warned.alloy", WRITER + first)
    with Agent("warned.alloy") as a:
        a.until_says("concat is deprecated")
        for taken in (1, 2):
            a.signal(signal.SIGHUP)
            a.until(lambda n=taken: a.text().count(": reloaded") == n, "it has reloaded")
        assert a.text().count("concat is deprecated") == 1, a.text()
        write("warned.alloy", WRITER + first + other)
        a.signal(signal.SIGHUP)
        a.until(lambda: a.text().count("concat is deprecated") == 3, "all are said")
        a.stop()


@case
def files_of_a_directory():
    """Of a directory a file may be edited, renamed over, added and removed. A log in JSON has what
    is wrong in one line."""
    first, second = free_port(), free_port()
    os.mkdir("d")
    write("d/a.alloy", WRITER)
    with Agent("--watch", "--log-format", "json", "d") as a:
        a.until_metric("alloy_config_last_load_successful", exactly=1)
        write("d/b.alloy", listening(first).replace(WRITER, ""))
        a.until(lambda: answers(first), "the added file is taken")
        write("new", listening(second).replace(WRITER, ""))
        os.rename("new", "d/b.alloy")
        until_taken(a, second, first)
        write("d/a.alloy", BROKEN)
        a.until_metric("andiron_configurations_refused_total", exactly=1)
        write("d/a.alloy", WRITER)
        a.until_metric("alloy_config_last_load_successful", exactly=1)
        os.unlink("d/b.alloy")
        a.until(lambda: not answers(second), "the removed file is gone")
        os.unlink("d/a.alloy")
        a.until_says("d holds no file named *.alloy")
        assert json.loads(ask("status", "/health")[1])["healthy"]
        a.stop()
    lines = [json.loads(line) for line in a.text().splitlines()]
    wrong = [one["message"] for one in lines if 'did you mean "url"?' in one["message"]]
    assert len(wrong) == 1 and "d/a.alloy:" in wrong[0], lines


@case
def without_inotify():
    """Where the kernel gives no inotify it says so, and looks by itself."""
    unshare = ["unshare", "--user", "--map-root-user"]
    if not shutil.which("unshare") or run(*unshare, "true").code:
        raise Skip("needs a user namespace: sysctl kernel.unprivileged_userns_clone=1")
    port = free_port()
    none = 'echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"'
    write("agent.alloy", WRITER)
    with Background(
        *unshare, "sh", "-c", none, "sh", ANDIRON, "run", "--watch", "agent.alloy"
    ) as a:
        a.until_says("so it is read every 10 s; raise fs.inotify.max_user_instances")
        write("agent.alloy", listening(port))
        a.until(lambda: answers(port), "the change is taken")


@case
def only_if_asked_for():
    """Without --watch a changed file is left alone until SIGHUP comes."""
    port = free_port()
    write("agent.alloy", WRITER)
    with Agent("agent.alloy") as a:
        a.until_metric("alloy_config_last_load_successful", exactly=1)
        assert not inotify_of(a)
        write("agent.alloy", listening(port))
        a.signal(signal.SIGHUP)
        a.until(lambda: answers(port), "the change is taken")
        a.stop()


@case
def ten_thousand_components():
    """As many components as that start, are reloaded and stop, none left behind."""
    text = ""
    for i in range(10000):
        targets = f"discovery.relabel.r{i - 1}.output" if i % 10 else '[{"a" = "b"}]'
        text += f'discovery.relabel "r{i}" {{\n  targets = {targets}\n}}\n'
    began = time.monotonic()
    with Agent(write("agent.alloy", text)) as agent:

        def all_run():
            found = json.loads(ask("status", "/health")[1])["components"]
            return sum(c["health"] == "healthy" for c in found) == 10000

        agent.until(all_run, "all of them run")
        running = time.monotonic()
        write("agent.alloy", text.replace('"r9999"', '"last"'))
        agent.signal(signal.SIGHUP)
        agent.until(
            lambda: "discovery.relabel.last" in ask("status", "/health")[1] and all_run(),
            "the changed one runs",
        )
        changed = time.monotonic()
        agent.stop()
        assert "leaving" not in agent.text(), agent.text()
        stopped = time.monotonic()
    print(
        f"# 10,000 components: {running - began:.1f} s to start, {changed - running:.1f} s to"
        f" reload, {stopped - changed:.1f} s to stop",
        flush=True,
    )


@case
def content_of_files():
    """local.file is followed without --watch. What runs outlives a file that is gone."""
    ports = [free_port(), free_port()]
    write("port", str(ports[0]))
    write(
        "agent.alloy",
        'local.file "port" { filename = "port" }\n'
        f"status.http {{ listen_port = encoding.from_json(local.file.port.content) }}\n{WRITER}",
    )
    with Agent("agent.alloy") as a:
        a.until(lambda: answers(ports[0]), "it listens")
        os.unlink("port")
        a.until_says("cannot read the file port: No such file or directory")
        a.until_says("not reloaded, the old configuration goes on")
        assert answers(ports[0])
        write("agent.alloy", BROKEN)
        a.signal(signal.SIGHUP)
        a.until_says("urk")
        write("port.new", str(ports[1]))
        os.rename("port.new", "port")
        a.until(lambda: answers(ports[1]), "the new content is taken, and the text left alone")
        a.until(lambda: not answers(ports[0]), "the old port is closed")
        assert a.metric("alloy_config_last_load_successful") == 0, "the text is still refused"
        a.stop()


main()
