# SPDX-License-Identifier: Apache-2.0
"""What is run on a node of many emulated CPUs, and what must come of it.

All CPUs share one thread of the host, so the load is tiny: loops that stay on some of the CPUs,
each with a name of its own, at a low rate. The interval is longer in return, so logs and ring have
the size that they have at 97 Hz and 15 s.
"""

import json
import re

from books import books_hold
import plan

SCRIPT = "tests/kernels/node.sh"
SAMPLES = 97 * 15  # of a CPU in an interval
PLUGGED = 6  # CPUs that come to a machine that may get more
MEBIBYTE = 1 << 20
# CPUs, and what an agent may take there, kernel memory included.
MAX_BYTES = [(64, 64 * MEBIBYTE), (256, 128 * MEBIBYTE)]


def memory_max(n_cpus):
    return next(most for n, most in MAX_BYTES if n_cpus <= n)


def told(text):
    """{(moment, what): bytes}"""
    return {
        (at, what): int(n)
        for at, what, n in re.findall(r"^(idle|loaded|plugged|back) (\w+) (\d+)$", text, re.M)
    }


def judge(outcome, facts):
    """It samples all CPUs of a big node, those that go and come included; its memory is bounded."""
    assert outcome.code == 0 and "ended 0" in outcome.text, outcome.text
    n, possible = facts["cpus"], facts["possible"]
    assert f"possible 0-{possible - 1}\n" in outcome.text, outcome.text
    assert f"online {n}\n" in outcome.text and "mismatches 0" in outcome.text, outcome.text
    found = told(outcome.text)
    facts["map_bytes"] = found["back", "maps"]
    facts["memory"] = {f"{at} {what}": n for (at, what), n in found.items()}
    taken = books_hold(json.loads(outcome.files["ledger"]))
    stacks = plan.folded(outcome.files["stacks.folded"].decode())
    facts["closed"] = facts["recordings"] = 1
    written = {}
    for frames, samples in stacks.items():
        written[frames[0]] = written.get(frames[0], 0) + samples
    assert sum(written.values()) == taken, (sum(written.values()), taken)
    loops = {f"early{cpu}" for cpu in [*range(0, n, max(1, n // 16)), n - 1]}
    loops |= {"away", "late3", f"late{n // 2}"}
    if possible > n:
        loops |= {f"plugged{n + PLUGGED - 1}"}
    assert loops <= set(written), f"no sample of {loops - set(written)}: {written}"
    most = max(bytes for (_, what), bytes in found.items() if what == "current")
    assert most <= memory_max(possible), f"{most} bytes are too many:\n{outcome.text}"


def steps(n_cpus, n_possible):
    """For a machine of so many CPUs, of which some are plugged in while it runs."""
    rate = max(2, 640 // n_cpus)
    plug = min(PLUGGED, n_possible - n_cpus)
    command = f"sh {{build}}/{SCRIPT} {{build}} {rate} {SAMPLES // rate}s {plug}"
    programs = [plan.ANDIRON, "tests/kernels/chain", SCRIPT]
    return [plan.Step("node", command, judge, programs, None)]
