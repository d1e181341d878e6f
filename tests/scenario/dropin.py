#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`run` in the place of an Alloy: its files, its flags and what its scripts ask."""

import json
import re
import signal

from running import Agent
from tap import case, main, write

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


if __name__ == "__main__":
    main()
