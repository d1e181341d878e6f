#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""V8's own frames: a program of known call tree, calls.js, under each Node.js that can be had and
each of its compilers."""

import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(HERE, "../../scenario")]
import calltree  # noqa: E402
import profiles  # noqa: E402
import runtimes  # noqa: E402
from tap import DEPTH, case, main  # noqa: E402

SOURCES = [os.path.join(HERE, name) for name in ("calls.js", "other.js")]
TREE = calltree.Tree(r".* \(anonymous\)", *SOURCES)
# What runs on after an await has its caller no more.
TASKS = calltree.Tree(r".* (\(anonymous\)|tasks|topTask|middleTask|leafTask)", *SOURCES)
INTERPRETER, BASELINE = ["--no-opt", "--max-lazy"], ["--always-sparkplug", "--no-opt"]
MAGLEV = ["--maglev", "--turbo-filter=~"]  # also of loops that are entered in their middle


def command(node, flags, how="main"):
    """`how`: main, tasks or workers."""
    for path in SOURCES:
        shutil.copy(path, ".")
    return [*node.command, *flags, "calls.js", "10" if "--no-opt" in flags else "13", how]


class Told(calltree.Calls):
    """A frame whose code was replaced or moved before it was read has no line: that is counted, and
    no wrong one."""

    @property
    def lost(self):
        return sum(n for why, n in self.wrong.items() if re.search(r":0\b", why))

    @property
    def right(self):
        return super().right + self.lost / max(1, self.samples)

    def __str__(self):
        return f"{super().__str__()}, {self.lost} of them right without a line"


def expect_right(runs, tree=TREE):
    """Each of (Node.js, flags, how), all at the same time."""
    commands = [command(*one) for one in runs]
    for (node, flags, how), profile in zip(runs, profiles.of_programs(commands, warm="warm")):
        told = Told(profile, tree)
        told.expect(f"{node} {' '.join(flags)} {how}", beside=0.5)
        assert told.lost <= 0.7 * told.samples, told.wrong.most_common(5)
        if not flags and how == "main":
            told.expect_shares()


@case
def compiled():
    """As its compilers choose: functions, order, lines, shares, entries."""
    some = runtimes.nodes()
    for at in range(0, len(some), 4):
        expect_right([(node, [], "main") for node in some[at : at + 4]])


@case
def each_compiler():
    """The interpreter alone, the baseline compiler, and the middle one."""
    some = runtimes.nodes()
    runs = [(some[0], INTERPRETER), (some[-1], INTERPRETER)]
    runs += [(node, BASELINE) for node in some if node.major >= 18]
    runs += [(node, MAGLEV) for node in some if node.major >= 24]
    for at in range(0, len(runs), 4):
        expect_right([(*one, "main") for one in runs[at : at + 4]])


@case
def tasks_and_workers():
    """Functions that await, and worker threads."""
    some = runtimes.nodes()
    some = some if DEPTH == "all" else [some[0], some[-1]]
    expect_right([(node, [], "tasks") for node in some], TASKS)
    expect_right([(node, [], "workers") for node in some])


main()
