#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that end before the first interval: a Python script that uses 50 ms of CPU, a `node -e`
of 100 ms, a JVM of 400 ms. Their samples are all there and have the names of their language."""

import collections
import re

import profiles
import runtimes
from tap import DEPTH, case, main, write

LIVES = 100 if DEPTH == "all" else 20
# The first life of a program is not known when it begins, and weighs more among few; and a busy
# machine knows the others later.
NAMED = 0.9 if DEPTH == "all" else 0.7
RATE = 97 if DEPTH == "all" else 797
# Runs the command so many times; the shell's last line is the CPU time of its children.
LAUNCH = 'n=$0; while [ $n -gt 0 ]; do n=$((n - 1)); "$@" || exit 1; done; times >times'

PYTHON = """import time
def burn():
    while time.process_time() < 0.05:
        for i in range(1000):
            pass
burn()
"""
NODE = """function burn() {
  let s = 0;
  while (process.cpuUsage().user < 100000) for (let i = 0; i < 10000; i++) s = (s * 31 + i) | 0;
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
        long end = System.nanoTime() + 250_000_000L;
        int s = 0;
        while (System.nanoTime() < end) s = mix(s);
        if (s == 1) System.out.println(s);
    }
}
"""
# What stands for frames of a runtime that have no name.
UNNAMED = re.compile(
    r"\[(runtime|anon|code|jvm|frames in the Java heap|(CPython|HotSpot|V8|Node).*)\]"
    r"|_PyEval_EvalFrameDefault|Builtins_.*"
)


def kind(frames, files):
    """A stack with a frame of the language is named; the process's start, its compilers and its
    collector are native."""
    if any(re.search(files, f.file) for f in frames):
        return "named"
    return "unnamed" if any(UNNAMED.fullmatch(f.function) for f in frames) else "native"


def cpu_seconds():
    with open("times", encoding="utf-8") as f:
        children = f.read().splitlines()[1]
    return sum(int(m) * 60 + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", children))


def expect_named(what, command, files):
    """`files` is a pattern of the files of the language's functions."""
    stacks, _ = profiles.of_command("sh", "-c", LAUNCH, str(LIVES), *command, rate=RATE)
    counts, examples = collections.Counter(), collections.Counter()
    for frames, n, _ in stacks:
        if "dash" in str(frames[0]):
            continue
        counts[kind(frames, files)] += n
        if kind(frames, files) == "unnamed":
            examples[";".join(f.function for f in frames)] += n
    total, expected = sum(counts.values()), cpu_seconds() * RATE
    named = counts["named"] / max(1, counts["named"] + counts["unnamed"])
    print(
        f"# {LIVES} times {what}: {total} samples of {expected:.0f} by CPU time, "
        f"{counts['native']} native, of the others {named:.1%} named",
        flush=True,
    )
    assert total >= 0.9 * expected - 5 * expected**0.5, (total, expected)
    assert counts["named"] > 0 and named >= NAMED, examples.most_common(5)


def outside_of_roots(found):
    """Those that need no root of their own, whose making would take longer than a life."""
    return [one for one in found if len(one.command) == 1]


@case
def python():
    """Most samples of a Python script of 50 ms have names."""
    script = write("brief.py", PYTHON)
    python = runtimes.system_python()
    expect_named(str(python), [*python.command, script], r"\.py$|^<frozen|^<string>")


@case
def node():
    """Most samples of a `node -e` of 100 ms have names."""
    for node in outside_of_roots(runtimes.nodes()):
        expect_named(
            str(node), [*node.command, "-e", NODE], r"\.[cm]?js$|^node:|^\[eval\]|evalmachine"
        )


@case
def java():
    """Most samples of a JVM of 400 ms have names."""
    found = outside_of_roots(runtimes.javas())
    classes = runtimes.compiled_java(write("Brief.java", JAVA))
    for java in found:
        expect_named(str(java), [*java.command, "-cp", classes, "Brief"], r"\.java$")


main()
