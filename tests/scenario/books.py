# SPDX-License-Identifier: Apache-2.0
"""Checking the books that --ledger writes."""
import json


def ledger_holds(path):
    """The equation, for every writer; returns the samples taken."""
    with open(path) as f:
        books = json.load(f)
    assert books["writers"], books
    for name, w in books["writers"].items():
        left = books["taken"] + w["carried"]
        right = (w["delivered"] + w["spooled"] + w["uncertain"] + w["in_flight"] + sum(w["dropped"].values()))
        assert left == right, f"{name}: {left} != {right} in {books}"
    return books["taken"]
