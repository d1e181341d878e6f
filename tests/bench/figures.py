# SPDX-License-Identifier: Apache-2.0
"""Figures of a benchmark: a line of a table each, led by "|", and the same as JSON, led by "#".

They are printed, never judged, save at ten times what is aimed at: machines are shared and times
wander.
"""

import json
import sys

failed = []


def figure(name, value, unit, aim=None, peers="", signed=False):
    """More than ten times the aim is a failure."""
    if not failed and not figure.begun:
        print("| figure | here | aim | peers |\n| --- | --- | --- | --- |")
    figure.begun = True
    if aim is not None and value > aim * 10:
        failed.append(name)
    print(
        f"| {name} | {value:{'+' if signed else ''}.4g} {unit} | "
        f"{'≤ %g %s' % (aim, unit) if aim is not None else ''} | {peers} |"
    )
    print(
        "# " + json.dumps({"figure": name, "value": round(value, 6), "unit": unit, "aim": aim}),
        flush=True,
    )


figure.begun = False


def finish():
    for name in failed:
        print(f"# ten times over its aim, or wrong: {name}")
    sys.exit(bool(failed))
