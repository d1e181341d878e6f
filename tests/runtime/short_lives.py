#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that end before the first interval: a Python script that uses 50 ms of CPU, a `node -e`
of 100 ms, a JVM of 400 ms. Their samples are all there and have the names of their language.

The first life of a program loads what its language needs, and is not named before that. So it lasts
longer, is left out by its pid, and is printed by itself."""

import collections
import contextlib
import os
import re

import profiles
import runtimes
from tap import DEPTH, case, main, write

LIVES = 100 if DEPTH == "all" else 20
RATE = 97 if DEPTH == "all" else 797
FIRST = 1500  # ms of CPU, of the first life
# Runs the command once for FIRST, and then so many times for the ms of CPU that are given. Its last
# line is the CPU time of all.
LAUNCH = """ms=%d n=$0 LIFE=$1
shift
while [ $n -ge 0 ]; do
  MS=$ms "$@" &
  echo $! >>pids
  wait $! || exit 1
  ms=$LIFE n=$((n - 1))
done
times >times""" % FIRST

PYTHON = """import os, time
def burn():
    while time.process_time() < int(os.environ["MS"]) / 1000:
        for i in range(1000):
            pass
burn()
"""
NODE = """function burn() {
  let s = 0;
  while (process.cpuUsage().user < process.env.MS * 1000)
    for (let i = 0; i < 10000; i++) s = (s * 31 + i) | 0;
  return s;
}
burn();
"""
JAVA = """public class Brief {
    static int mix(int s) {
        for (int i = 0; i < 10000; i++) s = s * 31 + i;
        return s;
    }
    public static void main(String[] arguments) {
        int s = 0;
        for (int n = Integer.parseInt(System.getenv("MS")) * 75; n > 0; n--) s = mix(s);
        if (s == 1) System.out.println(s);
    }
}
"""
# What stands for frames of a runtime that have no name.
UNNAMED = re.compile(
    r"\[(runtime|anon|code|jvm|frames in the Java heap|(CPython|HotSpot|V8|Node).*)\]"
    r"|_PyEval_EvalFrameDefault|Builtins_.*"
)
# Code that a JVM makes to ask the processor what it can, before there is any Java.
STARTS = re.compile(r"VM_Version::.*")


def kind(frames, files):
    """A stack with a frame of the language is named; the process's start, its compilers and its
    collector are native."""
    if any(re.search(files, f.file) for f in frames):
        return "named"
    if any(STARTS.fullmatch(f.function) for f in frames):
        return "native"
    return "unnamed" if any(UNNAMED.fullmatch(f.function) for f in frames) else "native"


def cpu_seconds():
    with open("times", encoding="utf-8") as f:
        children = f.read().splitlines()[1]
    return sum(int(m) * 60 + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", children))


def named_of(counts):
    return counts["named"] / max(1, counts["named"] + counts["unnamed"])


def expect_named(what, ms, command, files):
    """`files` is a pattern of the files of the language's functions."""
    with contextlib.suppress(FileNotFoundError):
        os.remove("pids")
    stacks, _ = profiles.of_command("sh", "-c", LAUNCH, str(LIVES), str(ms), *command, rate=RATE)
    with open("pids", encoding="utf-8") as f:
        first, *later = map(int, f)
    counts = {True: collections.Counter(), False: collections.Counter()}
    examples = collections.Counter()
    for frames, n, labels in stacks:
        if labels["pid"] != first and labels["pid"] not in later:
            continue
        is_first, what_it_is = labels["pid"] == first, kind(frames, files)
        counts[is_first][what_it_is] += n
        if what_it_is == "unnamed" and not is_first:
            examples[";".join(f.function for f in frames)] += n
    total = sum(sum(c.values()) for c in counts.values())
    expected, named = cpu_seconds() * RATE, named_of(counts[False])
    print(
        f"# {LIVES} times {what}: {total} samples of {expected:.0f} by CPU time; beside "
        f"{counts[False]['native']} native ones {named:.1%} named, "
        f"{named_of(counts[True]):.1%} in the first life",
        flush=True,
    )
    assert total >= 0.9 * expected - 5 * expected**0.5, (total, expected)
    assert counts[False]["named"] > 0 and named >= 0.9, examples.most_common(5)


def outside_of_roots(found):
    """Those that need no root of their own, whose making would take longer than a life."""
    return [one for one in found if len(one.command) == 1]


@case
def python():
    """Most samples of a Python script of 50 ms have names."""
    script = write("brief.py", PYTHON)
    python = runtimes.system_python()
    expect_named(str(python), 50, [*python.command, script], r"\.py$|^<frozen|^<string>")


@case
def node():
    """Most samples of a `node -e` of 100 ms have names."""
    for node in outside_of_roots(runtimes.nodes()):
        expect_named(
            str(node), 100, [*node.command, "-e", NODE], r"\.[cm]?js$|^node:|^\[eval\]|evalmachine"
        )


@case
def java():
    """Most samples of a JVM of 400 ms have names."""
    found = outside_of_roots(runtimes.javas())
    classes = runtimes.compiled_java(write("Brief.java", JAVA))
    for java in found:
        expect_named(str(java), 250, [*java.command, "-cp", classes, "Brief"], r"\.java$")


main()
