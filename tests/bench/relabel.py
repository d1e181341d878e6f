#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""relabel.py BENCH-RELABEL: nanoseconds per target for twenty rules over a pod's
labels, and what Prometheus's own library takes for the same, in turns in one run."""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS, TARGETS = 7, 50000


def measure(*command):
    with open(f"{HERE}/relabel-kubernetes.txt", "rb") as case:
        out = subprocess.run(
            command, stdin=case, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
    assert f"kept {TARGETS} of {TARGETS}" in out, out
    return [int(n) for n in re.findall(r"^(\d+) ns", out, re.M)]


def oracle():
    """Prometheus's library, or None where there is no Go."""
    made = subprocess.run(
        [f"{HERE}/../servers/get", "prometheus-oracle"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return made.stdout.strip() if made.returncode == 0 else None


prometheus = oracle()
ours, component, theirs = [], [], []
for _ in range(ROUNDS):
    rules, through = measure(sys.argv[1], str(TARGETS))
    ours.append(rules)
    component.append(through)
    if prometheus:
        theirs += measure(prometheus, "measure", str(TARGETS))
print(
    "| relabeling, 20 rules over 29 labels (best thousand of 50,000; best and median of 7 runs) "
    "| here | aim | Prometheus |"
)
print("| --- | --- | --- | --- |")
middle = lambda times: (
    f"{min(times)} and {sorted(times)[len(times) // 2]} ns" if times else "no Go here"
)
print(f"| the rules, per target | {middle(ours)} | ≤ 2000 ns | {middle(theirs)} |")
print(f"| a change through the component: update in, rules, row out | {middle(component)} | | |")
