# SPDX-License-Identifier: Apache-2.0
"""Agents that are measured, and a server on this machine that takes what they push."""

import contextlib
import os
import signal
import subprocess

SERVERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../servers")
EBPF = """
pyroscope.ebpf "all" {{
  forward_to       = [{to}]
  targets_only     = false
  default_target   = {{"service_name" = "host"}}
  demangle         = "full"
  sample_rate      = 97
  collect_interval = "{interval}"
  comm             = "{comm}"
  {more}
}}
"""
PUSH = """
pyroscope.write "server" {{ endpoint {{ url = "{url}" }} }}
"""
FILE = """
profile.file "out" {{ paths = ["{path}"] }}
"""


@contextlib.contextmanager
def server():
    """The URL of a receiver that takes what is pushed."""
    binary = subprocess.run(
        [f"{SERVERS}/get", "push-receiver"], capture_output=True, text=True, check=True
    ).stdout.strip()
    process = subprocess.Popen(
        [binary, "-rate-mib", "100", "-burst-mib", "100"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextlib.contextmanager
def agent(andiron, folder, config):
    """Runs until the block ends; its ledger and log are in the folder then."""
    with open(f"{folder}/agent.alloy", "w", encoding="utf-8") as file:
        file.write(config)
    command = [andiron, "run", f"{folder}/agent.alloy", "--status", f"{folder}/status"]
    with open(f"{folder}/log", "w", encoding="utf-8") as log:
        process = subprocess.Popen([*command, "--ledger", f"{folder}/ledger.json"], stderr=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
