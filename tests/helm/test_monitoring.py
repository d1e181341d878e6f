#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_monitoring.py: alerts and the dashboard, against a real agent and Prometheus's own code.

Whatever the chart's files read is asked of an agent that runs with all writers, so a rule that
names a metric of nobody fails. Prometheus's rule checker loads the rules, and its engine says when
they fire.
"""

import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "scenario"), os.path.join(HERE, "..", "servers")]
import yaml
from ports import free_port
from pyroscope import Skip, get
from running import Agent, ask, parse_metrics
from tap import case, main, need_root, read, write

CHART = os.path.join(HERE, "..", "..", "packaging", "helm", "andiron")
ALERTS = os.path.join(CHART, "files", "alerts.yaml")
DASHBOARD = os.path.join(CHART, "files", "dashboard.json")
CONFIG = """
discovery.process "all" {}
discovery.kubernetes "pods" {
  role       = "pod"
  api_server = "http://127.0.0.1:9"
}
pyroscope.ebpf "all" {
  forward_to = [
    pyroscope.write.w.receiver, parca.write.w.receiver, otlp.write.w.receiver,
    pyroscope.write.gives_up.receiver,
  ]
  targets          = discovery.process.all.targets
  collect_interval = "1s"
  runtimes         = ["jvm", "v8", "python"]
}
pyroscope.receive_http "sdks" {
  http {
    listen_port = %d
  }
  forward_to = [pyroscope.write.w.receiver]
}
pyroscope.write "gives_up" {
  endpoint {
    url                 = "http://127.0.0.1:9"
    min_backoff_period  = "50ms"
    max_backoff_retries = 1
  }
}
"""
WRITER = """
%s "w" {
  endpoint {
    url = "http://127.0.0.1:9"
  }
  spool {
    directory = "%s"
  }
}
"""
WRITERS = ("pyroscope.write", "parca.write", "otlp.write")

# What Prometheus has of an agent that is well: values at each minute.
WELL = {
    'pyroscope_ebpf_profiling_sessions_total{component_id="pyroscope.ebpf.pods"}': "0+4x60",
    'andiron_component_healthy{component_id="pyroscope.ebpf.pods"}': "1x60",
    'andiron_component_healthy{component_id="discovery.kubernetes.pods"}': "1x60",
    'andiron_component_healthy{component_id="pyroscope.write.server"}': "1x60",
    "andiron_samples_taken_total": "0+1000x60",
    'andiron_samples_delivered_total{writer="pyroscope.write.server"}': "0+990x60",
    'andiron_samples_dropped_total{writer="pyroscope.write.server",reason="a:queue_full"}': (
        "0+9x60"
    ),
    'andiron_samples_dropped_total{writer="pyroscope.write.server",reason="b:ring_full"}': "0+1x60",
    'pyroscope_write_spool_bytes{component_id="pyroscope.write.server"}': "1048576x60",
    'pyroscope_write_spool_max_bytes{component_id="pyroscope.write.server"}': "268435456x60",
    "alloy_config_last_load_successful": "1x60",
    'andiron_samples_spooled{writer="pyroscope.write.server"}': "300x60",
    'pyroscope_receive_http_accepted_requests_total{component_id="pyroscope.receive_http.a"}': (
        "0+60x60"
    ),
    'pyroscope_receive_http_refused_requests_total{component_id="pyroscope.receive_http.a"}': (
        "0+1x60"
    ),
    'pyroscope_receive_http_delayed_requests_total{component_id="pyroscope.receive_http.a"}': (
        "0+1x60"
    ),
    'pyroscope_receive_http_failed_requests_total{component_id="pyroscope.receive_http.a"}': (
        "0x60"
    ),
    "andiron_process_resident_memory_bytes": "60000000x60",
    'andiron_ebpf_map_bytes{component_id="pyroscope.ebpf.pods"}': "20000000x60",
}
# What is another with the agent, and what fires then: alert and the label that says more.
ILL = {
    "sampling stalls": (
        "AndironNotSampling",
        {"pyroscope_ebpf_profiling_sessions_total": "0+4x35 140x25"},
    ),
    "the API server refuses": (
        "AndironNotSampling",
        {'andiron_component_healthy{component_id="discovery.kubernetes.pods"}': "1x50 0x10"},
    ),
    "the backend is away": (
        "AndironNothingDelivered",
        {
            "andiron_samples_delivered_total": "0+990x30 29700x30",
            'andiron_component_healthy{component_id="pyroscope.write.server"}': "1x30 0x30",
        },
    ),
    "the queue is full": ("AndironSamplesLost", {"a:queue_full": "0+9x25 225+90x35"}),
    "two things lose a little": (
        "AndironSamplesLost",
        {"a:queue_full": "0+30x60", "b:ring_full": "0+30x60"},
    ),
    "the spool fills": ("AndironSpoolNearlyFull", {"pyroscope_write_spool_bytes": "0+4300000x60"}),
    "the backend is slow": (
        "AndironDeliveredLate",
        {"andiron_samples_delivered_total": "0+200x60", "andiron_samples_spooled": "0+800x60"},
    ),
    "senders are wrong": ("AndironPushesRefused", {"refused_requests": "0+5x60"}),
    "there is no room for senders": (
        "AndironPushesRefused",
        {"accepted_requests": "0+60x20 1200x40", "delayed_requests": "0+1x20 20+60x40"},
    ),
    "nobody is behind": (
        "AndironPushesRefused",
        {"accepted_requests": "0x60", "failed_requests": "0+1x60"},
    ),
    "a configuration is wrong": (
        "AndironConfigurationRefused",
        {"alloy_config_last_load_successful": "1x40 0x20"},
    ),
    "memory grows": (
        "AndironMemoryNearLimit",
        {"andiron_process_resident_memory_bytes": "60000000+3000000x60"},
    ),
    "a gateway's memory grows": (
        "AndironMemoryNearLimit",
        {
            "andiron_ebpf_map_bytes": "_x60",
            "andiron_process_resident_memory_bytes": "60000000+9000000x60",
        },
    ),
}
# Of these, nobody is to be told.
FINE = {
    "well": {},
    "an idle machine": {
        "andiron_samples_taken_total": "700x60",
        "andiron_samples_delivered_total": "700x60",
        "dropped": "0x60",
    },
    "a restart": {
        name: values.replace("x60", "x30 ") + values.replace("x60", "x29")
        for name, values in WELL.items()
        if "+" in values
    },
    "a backend that is away for five minutes": {
        "andiron_samples_delivered_total": "0+990x30 29700x5 29700+990x25",
        'andiron_component_healthy{component_id="pyroscope.write.server"}': "1x30 0x5 1x24",
    },
    "an API server that is away for a minute": {
        'andiron_component_healthy{component_id="discovery.kubernetes.pods"}': "1x58 0x1"
    },
    "a gateway that may have more memory than an agent": {
        "andiron_ebpf_map_bytes": "_x60",
        "andiron_process_resident_memory_bytes": "400000000x60",
    },
    "a spool that empties after an hour without a backend": {
        "andiron_samples_spooled": "60000-6000x10 0x50",
        "andiron_samples_delivered_total": "0+7000x10 70000+990x50",
    },
    "nobody pushes": {"_requests_total": "7x60"},
    "a machine with three writers' metrics": {
        "pyroscope_write_spool_bytes": "0x60",
        "pyroscope_write_spool_max_bytes": "0x60",
    },
}


def oracle(*arguments, text=""):
    done = subprocess.run(
        [get("prometheus-oracle"), *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def fired(cases):
    """{case: what fires in it}. Series whose name a change is in have its values."""
    text = ""
    for name, changes in cases.items():
        series = dict(WELL)
        for part, values in changes.items():
            meant = [full for full in WELL if part in full]
            assert meant, part
            series.update(dict.fromkeys(meant, values))
        text += f"== {name}\n"
        for full, values in series.items():
            labels = full.partition("{")[2] or "}"
            text += full.partition("{")[0] + '{instance="n1",' + f"{labels} {values}\n"
    answers = oracle("fired", ALERTS, text=text).splitlines()
    return {name: rest.split(" Andiron") for name, _, rest in (a.partition(":") for a in answers)}


def served():
    """The metrics of an agent with every writer."""
    need_root()
    text = CONFIG % free_port() + "".join(WRITER % (w, os.path.abspath(w)) for w in WRITERS)
    with Agent(write("all.alloy", text), "--drain-deadline", "1s") as agent:
        agent.until_metric("pyroscope_ebpf_profiling_sessions_total", 1)
        agent.until_metric("andiron_samples_dropped_total", 1)
        names = {name for name, _ in parse_metrics(ask("status", "/metrics")[1])}
        agent.stop()
    return names


@case
def rules_fire():
    """Each rule fires for what it is about, alone, and none where all is well."""
    for name, firing in fired(FINE).items():
        assert firing == [""], (name, firing)
    found = fired({name: changes for name, (_, changes) in ILL.items()})
    for name, (alert, _) in ILL.items():
        assert [f.partition("{")[0] for f in found[name]] == ["", alert[len("Andiron") :]], (
            name,
            found[name],
        )
        assert 'instance="n1"' in found[name][1], found
    rules = {rule["alert"] for rule in json.loads(oracle("rules", ALERTS))}
    assert rules == {alert for alert, _ in ILL.values()}, rules
    assert len(rules) >= 5


@case
def rules_of_a_release():
    """The chart's rules are those of the file, with the release's own limit of memory."""
    done = subprocess.run(
        [get("helm3"), "template", "andiron", CHART, "--kube-version=1.37"]
        + ["--set=backend.pyroscope.url=http://p:4040,prometheusRule.enabled=true"]
        + ["--set=resources.limits.memory=512Mi,gateway.resources.limits.memory=256Mi"]
        + ["--show-only=templates/monitors.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rules = oracle("rules", write("rules", json.dumps(yaml.safe_load(done.stdout)["spec"])))
    assert json.loads(rules) == json.loads(oracle("rules", ALERTS))
    assert re.findall(r"> 0\.9 \* (\d+)", read("rules")) == [str(512 << 20), str(256 << 20)]


@case
def dashboard():
    """Panels have ids and places of their own, one data source, and expressions that parse."""
    board = json.loads(read(DASHBOARD))
    panels = board["panels"]
    assert len({p["id"] for p in panels}) == len(panels) > 10
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel
        assert len({t["refId"] for t in panel["targets"]}) == len(panel["targets"]) > 0, panel
    source, instance = board["templating"]["list"]
    assert (source["name"], source["query"]) == ("datasource", "prometheus"), source
    assert instance["query"] == "label_values(andiron_build_info, instance)", instance
    expressions = [t["expr"] for panel in panels for t in panel["targets"]]
    assert all('instance=~"$instance"' in e for e in expressions), expressions
    asked = "\n".join(expressions).replace("$__rate_interval", "5m")
    assert len(oracle("expressions", text=asked).splitlines()) == len(expressions)


@case
def metrics_exist():
    """A real agent serves whatever the rules and the dashboard read."""
    board = json.loads(read(DASHBOARD))
    expressions = [t["expr"] for panel in board["panels"] for t in panel["targets"]]
    asked = "\n".join(expressions).replace("$__rate_interval", "5m")
    wanted = set(oracle("expressions", text=asked).split())
    for rule in json.loads(oracle("rules", ALERTS)):
        wanted |= set(rule["metrics"])
    missing = wanted - served()
    assert len(wanted) > 20 and not missing, missing


try:
    get("prometheus-oracle"), get("helm3")
except Skip as why:
    print(f"1..0 # SKIP {why}")
    sys.exit()
main()
