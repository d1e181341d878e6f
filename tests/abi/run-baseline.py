#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run-baseline.py ANDIRON PLUGIN: a plugin of version 1.0 of the ABI in the host of today.

In one graph with components of today: its targets pass through discovery.relabel back to it, and
its samples go to itself and into a file.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile

ANDIRON, PLUGIN = sys.argv[1:]
CONFIG = """
baseline.source "a" {
  forward_to = [baseline.sink.b.receiver, profile.file.out.receiver]
}
discovery.relabel "all" {
  targets = baseline.source.a.targets
}
baseline.sink "b" {
  targets = discovery.relabel.all.output
}
profile.file "out" {
  paths = ["%s/out.folded"]
}
"""
SAYS = ["baseline has targets: 1", "baseline has samples: 97"]


def run(folder):
    """What it said, its exit status, the books, and what is in the file."""
    config, ledger = f"{folder}/baseline.alloy", f"{folder}/ledger.json"
    with open(config, "w", encoding="utf-8") as f:
        f.write(CONFIG % folder)
    command = [ANDIRON, "run", "--ledger", ledger, "--plugin-dir", os.path.dirname(PLUGIN), config]
    said = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as agent:
        for line in agent.stderr:
            said.append(line)
            if all(any(words in line for line in said) for words in SAYS):
                break
        agent.send_signal(signal.SIGTERM)
        said += agent.stderr
    if agent.returncode:
        return said, agent.returncode, {"taken": 0, "writers": {}}, ""
    with open(ledger, encoding="utf-8") as f, open(f"{folder}/out.folded", encoding="utf-8") as out:
        return said, agent.returncode, json.load(f), out.read()


def holds(books):
    return books["taken"] == 97 and all(w["delivered"] == 97 for w in books["writers"].values())


print("1..1")
with tempfile.TemporaryDirectory() as scratch:
    lines, status, counts, folded = run(scratch)
for one in [*lines, str(counts), folded]:
    print(f"# {one.rstrip()}")
good = status == 0 and holds(counts) and len(counts["writers"]) == 2 and "work" in folded
print(f"{'ok' if good else 'not ok'} 1 - it runs as when it was built")
sys.exit(not good)
