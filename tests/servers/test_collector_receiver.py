#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""host-abi/agents/collector: andiron's receiver in a real OpenTelemetry Collector.

TEST_LIBRARY, TEST_PLUGINS: libandiron.so and the folders of plugins
ANDIRON: the command, which parses files
WORKLOAD: a program whose function workload_70 takes most of its time
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request

from otelcol import Collector, processors, shop
from otlp import all_of
from pyroscope import Skip, free_ports, get, run, until

import tap
from cgroups import Container
from running import cpu_seconds

CONFIG = """
receivers:
  andiron:
    library: %(library)s
    plugins: %(plugins)s
    worker: %(worker)s
%(what)s
%(processors)s
exporters:
  journal: {path: FOLDER/journal}
service:
  telemetry:
    metrics:
      readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %(port)d}}}}]
  pipelines:
    profiles:
      receivers: [andiron]
%(pipeline)s
      exporters: [journal]
"""
SAMPLED = """
    config: |
      pyroscope.ebpf "all" {
        targets_only     = true
        targets          = [{%(target)s}]
        sample_rate      = 499
        collect_interval = "1s"
        forward_to       = [embed.profiles.collector.receiver]
      }
      embed.profiles "collector" {}
"""


def config(what, *, association=None, port=0):
    return CONFIG % {
        "library": os.environ["TEST_LIBRARY"],
        "plugins": json.dumps(os.environ["TEST_PLUGINS"].split(":")),
        "worker": os.environ["ANDIRON"],
        "what": what,
        "processors": processors(association) if association else "",
        "pipeline": "      processors: [k8s_attributes]" if association else "",
        "port": port or free_ports(1)[0],
    }


def sampled(pid, **labels):
    target = {"__process_pid__": str(pid), **labels}
    return SAMPLED % {"target": ", ".join(f'"{k}" = "{v}"' for k, v in target.items())}


@contextlib.contextmanager
def workload():
    if os.geteuid() != 0:
        raise Skip("needs root: run it by `sudo ./check`")
    with subprocess.Popen([os.environ["WORKLOAD"], "300"], stdout=subprocess.DEVNULL) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@contextlib.contextmanager
def container():
    """The workload, in what the sampler takes for a container."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # where its log is
        try:
            made = Container()
        except tap.Skip as why:
            raise Skip(str(why)) from why
        with made:
            yield made


def of_service(collector, name):
    """The messages with profiles of that service."""
    return [
        message
        for message in collector.messages()
        if name in {resource["service.name"] for resource, _ in message.profiles()}
    ]


def children(pid):
    """Processes that this one has started, now."""
    found = pathlib.Path("/proc", str(pid), "task").glob("*/children")
    return {int(child) for path in found for child in path.read_text(encoding="ascii").split()}


def accepted(port):
    """What the receiver says of itself to whoever scrapes the Collector."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    found = re.findall(
        r'^otelcol_receiver_accepted_profile_samples\w*\{.*receiver="andiron".*\} (\d+)', text, re.M
    )
    assert len(found) == 1, text
    return int(found[0])


def handed_on():
    """profiles reach the exporter clean, whole and with their functions; a reload and an end leave
    nothing"""
    port = free_ports(1)[0]
    with workload() as pid, Collector(config(sampled(pid, service_name="one"), port=port)) as c:
        until(lambda: len(of_service(c, "one")) > 1, c.said, alive=lambda: c.process.poll() is None)
        messages = c.messages()
        for message in messages:
            message.check()
            message.check_elsewhere()
            assert message.sample_types() == {"samples:count:cpu:nanoseconds"}
        assert "workload_70" in messages[-1].names(), messages[-1].names()
        (resource, _), *others = messages[-1].profiles()
        assert not others and resource["process.executable.name"] == "workload", resource
        assert resource.get("host.name") or resource.get("k8s.node.name"), resource
        known = {"profile.frame.type", "process.executable.build_id.gnu"}
        assert known <= set(messages[-1].strings), messages[-1].strings
        entries = sum(len(all_of(profile, 2)) for m in messages for _, profile in m.profiles())
        until(lambda: accepted(port) >= entries, "that it counts")
        assert accepted(port) <= sum(m.total() for m in c.messages()), "more than was sampled"
        first = children(c.process.pid)
        assert first, "there is no sandbox"
        c.configure(config(sampled(pid, service_name="two"), port=port))
        c.process.send_signal(signal.SIGHUP)
        until(lambda: of_service(c, "two"), c.said, alive=lambda: c.process.poll() is None)
        assert not first & children(c.process.pid), "a child of before the reload"
        rest = children(c.process.pid)
        c.process.send_signal(signal.SIGTERM)
        assert c.process.wait(100) == 0, c.said()
        until(lambda: not any(os.path.exists(f"/proc/{p}") for p in rest), "the sandbox's end")
        # What the second one took until its end is there, too.
        last = of_service(c, "two")[-1]
        last.check()


def enriched():
    """the k8sattributes processor finds the pod by the container that the sampler knows"""
    if os.geteuid() != 0:
        raise Skip("needs root: run it by `sudo ./check`")
    with container() as own, shop(own.id) as (pods, kubeconfig):
        text = config(sampled(own.pid, service_name="web"), association="container.id")
        with Collector(text, kubeconfig) as c:

            def found():
                for message in reversed(of_service(c, "web")):
                    return next(message.profiles())[0]
                return {}

            until(lambda: "team" in found(), c.said, alive=lambda: c.process.poll() is None)
            wanted = {
                "team": "front",
                "container.id": own.id,
                "process.pid": own.pid,
                "k8s.container.name": "app",
                "k8s.pod.uid": pods["web-1"]["metadata"]["uid"],
                "k8s.pod.name": "web-1",
                "k8s.namespace.name": "shop",
                "k8s.node.name": "n1",
            }
            assert wanted.items() <= found().items(), found()
            of_service(c, "web")[-1].check()


def documented():
    """the page's configuration samples the machine; what was taken before an end is handed on"""
    page = pathlib.Path(__file__).parents[2].joinpath("docs/collector.md").read_text("utf-8")
    what = re.search(r"^    config: \|\n(?:      .*\n)+", page, re.M)[0]
    with workload() as pid, Collector(config(what)) as c:
        until(
            lambda: "Everything is ready" in c.whole_log() or c.process.poll() is not None, c.said
        )
        spent = cpu_seconds(pid)
        until(lambda: cpu_seconds(pid) > spent + 0.5, "half a second of work")
        c.process.send_signal(signal.SIGTERM)
        assert c.process.wait(100) == 0, c.said()
        for message in c.messages():
            message.check()
        assert "workload_70" in c.messages()[-1].names(), c.said()
        pids = {resource.get("process.pid") for resource, _ in c.messages()[-1].profiles()}
        assert {pid, c.process.pid} & pids, pids


def refused():
    """a mistake ends the Collector's start with andiron's words"""
    for what, *words in (
        (
            "    config: |\n      embed.profiles \"collector\" {}\n      discovery.proces \"x\" {}",
            "andiron config:2:1",
            "discovery.proces",
        ),
        ("    config_file: FOLDER/nowhere.alloy", "nowhere.alloy"),
        ("    config_file: FOLDER/nowhere.alloy\n    config: x", "leave one out"),
        ("", "give an andiron configuration"),
        ("    config: 'discovery.process \"all\" {}'", "hands no profiles to the Collector"),
        ("    configuration: x", "invalid keys: configuration"),
    ):
        with Collector(config(what)) as c:
            until(lambda: c.process.poll() is not None, c.said)
            text = c.whole_log()
            missing = [word for word in words if word not in text]
            assert c.process.returncode == 1 and not missing, (missing, c.said())
    with Collector(config("    config: x").replace(os.environ["TEST_LIBRARY"], "/no.so")) as c:
        until(lambda: c.process.poll() is not None, c.said)
        assert "/no.so" in c.said() and "libandiron" in c.said(), c.said()


def component_tests():
    """the Collector's own checks of a component pass: life cycle, configuration, errors"""
    done = subprocess.run(
        [get("collector-receiver"), "-test.v", "-test.timeout=180s"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    skipped = re.findall(r"--- SKIP.*\n.*", done.stdout)
    if skipped and os.geteuid() != 0:
        raise Skip("needs root: run it by `sudo ./check`")
    assert done.returncode == 0 and not skipped, done.stdout + done.stderr
    assert done.stdout.count("--- PASS: Test") >= 5, done.stdout


sys.exit(run([component_tests, refused, handed_on, documented, enriched]))
