#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`run` in the place of an Alloy: its files, its flags and what its scripts ask."""

import json
import os
import re
import signal

from ports import free_port
from running import Agent, get, parse_metrics
from tap import andiron, case, main, write

WRITER = """
pyroscope.write "w" {
  endpoint {
    url = "http://127.0.0.1:9"
  }
}
"""


def config(settings="", name="agent.alloy"):
    return write(name, settings + WRITER)


def taken_at(a):
    return a.metric("alloy_config_last_load_success_timestamp_seconds")


def reload(a, settings):
    """Until it is taken."""
    before = taken_at(a)
    config(settings)
    a.signal(signal.SIGHUP)
    a.until(lambda: taken_at(a) != before, "the configuration is taken")


def end(a):
    a.signal(signal.SIGTERM)
    return a.end().expect(0).out


@case
def the_block_logging_is_obeyed():
    """Its level and format decide from the first line on, and a reload changes both."""
    with Agent(config('logging {\n  level = "debug"\n  format = "logfmt"\n}\n')) as a:
        a.until_says("level=info msg=")
        reload(a, 'logging {\n  format = "json"\n}\n')
        reload(a, 'logging {\n  level = "error"\n}\n')
        config('logging {\n  level = "loud"\n}\n')
        a.signal(signal.SIGHUP)
        a.until_says("not reloaded")
        lines = end(a).splitlines()
    assert re.match(r"ts=\d{4}-\d\d-\d\dT[\d:.]+Z level=\w+ msg=", lines[0]), lines[0]
    said = [json.loads(line)["message"] for line in lines if line.startswith("{")]
    assert said.count("reloaded") == 1, lines  # the second one is below the level
    assert not any("stopping" in line for line in lines), lines


@case
def the_command_line_decides_over_the_block():
    """--log-level and --log-format win, each by itself, also at a reload."""
    path = config('logging {\n  level = "error"\n  format = "json"\n}\n')
    with Agent(path, "--log-level=info") as a:
        a.until_says('"level":"info"')
        end(a)
    with Agent(path, "--log-format=logfmt") as a:
        reload(a, 'logging {\n  level = "info"\n  format = "json"\n}\n')
        a.until_says("msg=reloaded")
        assert "{" not in end(a)


@case
def it_listens_where_alloy_is_told_to():
    """A command line written for Alloy: a directory of files, probes and metrics at the address of
    its flag, also after a reload, and a line for what has no counterpart."""
    port = free_port()
    os.mkdir("conf")
    write("conf/writer.alloy", WRITER)
    write("conf/logging.alloy", 'logging {\n  format = "logfmt"\n}\n')
    write("conf/notes.txt", "no configuration")
    with Agent(
        "conf",
        f"--server.http.listen-addr=127.0.0.1:{port}",
        "--stability.level=experimental",
        "--cluster.enabled=true",
        "--cluster.join-addresses",
        "alloy-cluster",
        "--server.http.enable-pprof=false",
        "--disable-reporting",
        "--config.format=alloy",
    ) as a:
        a.until(lambda: get(port, "/-/ready")[0] == 200, "it is ready")
        assert get(port, "/-/healthy")[0] == 200
        assert parse_metrics(get(port, "/metrics")[1])["alloy_config_last_load_successful", ""] == 1
        before = taken_at(a)
        write("conf/writer.alloy", WRITER.replace('"w"', '"v"'))
        a.signal(signal.SIGHUP)
        a.until(lambda: taken_at(a) != before, "the configuration is taken")
        assert get(port, "/-/ready")[0] == 200
        said = end(a)
    for words in [
        "level=warn msg=\"--cluster.enabled: without effect, agents of andiron form no cluster",
        "--cluster.join-addresses: without effect",
        "--stability.level: without effect",
        "--disable-reporting: without effect",
    ]:
        assert said.count(words) == 1, (words, said)
    assert "enable-pprof" not in said and "config.format" not in said, said


@case
def what_makes_no_sense_is_refused():
    """A flag that is not Alloy's, an address that is none, another format, and a listener that
    flag and file both describe."""
    path = config("status.http {\n  listen_port = 1\n}\n")
    listen = "--server.http.listen-addr"
    andiron("run", "--server.http.listen-adr=:1", path).expect(2, "did you mean", f"{listen}?")
    andiron("run", f"{listen}=node-1:80", path).expect(2, "127.0.0.1:12345", '"node-1:80"')
    andiron("run", "--config.format=static", path).expect(2, "alloy convert")
    andiron("run", "--cluster.enabled=perhaps", path).expect(2, "true or false")
    andiron("run", f"{listen}=:80", path).expect(
        1, f"{listen}:1:1: error: status.http is defined twice", "it stands at agent.alloy:1:1"
    )


main()
