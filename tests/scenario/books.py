# SPDX-License-Identifier: Apache-2.0
"""Checking the books that --ledger writes."""

import json


def books_hold(books):
    """The equation, for every writer; returns the samples taken."""
    assert books["writers"], books
    for name, w in books["writers"].items():
        left = books["taken"] + w["carried"]
        right = (
            w["delivered"]
            + w["spooled"]
            + w["uncertain"]
            + w["in_flight"]
            + sum(w["dropped"].values())
        )
        assert left == right, f"{name}: {left} != {right} in {books}"
    return books["taken"]


def ledger_holds(path):
    """The same of a file."""
    with open(path) as f:
        return books_hold(json.load(f))


def delivered(path):
    """What the one writer of a ledger was given that holds: of a machine with more to do than it
    can, samples may be lost, and are named."""
    ledger_holds(path)
    with open(path) as f:
        (writer,) = json.load(f)["writers"].values()
    return writer["delivered"]
