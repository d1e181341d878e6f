#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program whose own profile is in Pyroscope while it runs, and no other program's.

    itself-to-pyroscope.py SECONDS URL

Functions of Python need CAP_BPF and CAP_PERFMON. A script has none of its own: a unit of systemd
has them with AmbientCapabilities=, and by hand

    sudo setpriv --reuid "$USER" --regid "$USER" --init-groups --inh-caps +bpf,+perfmon \
        --ambient-caps +bpf,+perfmon python3 itself-to-pyroscope.py 60 http://localhost:4040

Without them start() says which is missing, and the profile has the native functions alone: the
interpreter's, and those of extensions. Where the kernel does not allow that either, the program
does its work without a profile.
"""

import os
import sys
import time

import andiron

FUNCTIONS = """pyroscope.ebpf "program" {{
  targets      = [{{"__process_pid__" = "{pid}", "service_name" = "itself-python"}}]
  targets_only = true
  forward_to   = [pyroscope.write.server.receiver]
}}
"""
NATIVE = """profile.self "program" {{
  labels     = {{"service_name" = "itself-python"}}
  forward_to = [pyroscope.write.server.receiver]
}}
"""
SERVER = """pyroscope.write "server" {{
  endpoint {{
    url = "{url}"
  }}
}}
"""


def profile_itself(url, **how):
    """The agent, or None where there will be no profile."""
    for sampler, lost in ((FUNCTIONS, "functions of Python"), (NATIVE, "profile")):
        agent = andiron.Agent(**how)
        try:
            agent.load((sampler + SERVER).format(pid=os.getpid(), url=url))
            agent.start()
            return agent
        except andiron.Error as why:
            print(f"no {lost}: {why}", file=sys.stderr)
            agent.close()
    return None


def work(seconds):
    """What the program is for."""
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        total += sum(range(10000))
    return total


if __name__ == "__main__":
    # For a build that is not installed; else there is nothing to say.
    build = {
        option: os.environ[name]
        for option, name in {"library": "LIBRARY", "worker": "WORKER"}.items()
        if name in os.environ
    }
    if "PLUGIN_DIRS" in os.environ:
        build["plugin_dirs"] = os.environ["PLUGIN_DIRS"].split(":")
    profiler = profile_itself(sys.argv[2], **build)
    print(work(float(sys.argv[1])))
    if profiler:
        profiler.stop()  # what is not sent yet, is now
        profiler.close()
