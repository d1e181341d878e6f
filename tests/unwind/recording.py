#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""recording.py [--replay COMMAND] FOLDER [PROGRAM…]: states of real programs, with the stacks that
gdb finds in them.

They are there to be walked natively: with --replay, that command (replay.c) is run over them.

A recording holds what a walker sees and what it has to find; it is made with ptrace alone, no BPF,
on the machine that has the files, since rows are of one build of a file. Lines of words:

    arch x86_64
    reg NAME HEX                  rip, rsp and the other general registers
    map START END OFFSET PATH     a mapping that holds code; PATH may be empty, or in brackets
    stack ADDRESS HEXBYTES        from the red zone on
    pc HEX                        of each frame, leaf first: then return addresses; where a signal
    interrupted
                                  something, its address
    whole | beyond                whether gdb's stack ends where threads begin

Only stacks of which the copy holds all return addresses are kept. TAP comes out.
"""

import argparse
import glob
import os
import subprocess
import sys
import tempfile

import entries
from freezing import command, freeze, need_gdb
from running import cpu_seconds
from stacks import address_in_file
from tap import Skip, environment, until

DEPTH = os.environ.get("UNWIND_DEPTH", "fast")
POINTS = {"fast": 10, "full": 20, "all": 150}[DEPTH]
COPY, SPARE = 512 << 10, 256  # bytes: read of a stack, and kept behind the outermost return address
PROGRAMS = [
    "openssl",
    "python3",
    "perl",
    "sqlite3",
    "cc1plus",
    "rust-work",
    "go-work",
    "cfi",
    "realign",
    "realign-clang",
    "throws",
    "altstack",
    "threads",
    "longjmps",
    "plt",
    "vdso",
    "threads-static",
    "fortran-work",
]
FAST = ["openssl", "perl", "rust-work", "cfi"]


def record(name):
    process = subprocess.Popen(
        command(name),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: cpu_seconds(process.pid) >= 0.1, f"{name} has begun")
        return freeze(process.pid, POINTS, COPY)
    finally:
        process.kill()
        process.wait()


def cut(point):
    """Cuts the copy behind what gdb walked; whether it holds every return address (the leaf's own
    may be in a register)."""
    start, text = point["stack"]
    copy, at, end = bytes.fromhex(text), 0, 0
    for i, pc in enumerate(point["pcs"][1:]):
        word = pc.to_bytes(8, "little")
        found = copy.find(word, at)
        if found < 0:
            found = copy.find(word)  # another stack: a signal's
        if found < 0 and i > 0:
            return False
        at = max(found, 0)
        end = max(end, at)
    point["stack"] = start, copy[: end + SPARE].hex()
    return True


def whole(point):
    file, offset, _ = point["gdb"][-1]
    return entries.is_entry((file, address_in_file(file, offset) if file[:1] == "/" else offset))


def text_of(point):
    lines = ["arch " + os.uname().machine]
    lines += [f"reg {name} {value:x}" for name, value in point["registers"].items()]
    lines += [
        f"map {start:x} {end:x} {offset:x} {path}".rstrip()
        for start, end, offset, path in point["maps"]
    ]
    lines += [f"stack {point['stack'][0]:x} {point['stack'][1]}"]
    lines += [f"pc {pc:x}" for pc in point["pcs"]]
    return "\n".join(lines + ["whole" if whole(point) else "beyond"]) + "\n"


def keep(folder, name):
    """(kept, whole) of its points; one file for each."""
    points = record(name)
    kept = [p for p in points if p["pcs"] and cut(p)]
    for i, point in enumerate(kept):
        with open(f"{folder}/{name}-{i}.stack", "w", encoding="utf-8") as file:
            file.write(text_of(point))
    return len(points), len(kept), sum(map(whole, kept))


def replay(command, folder):
    """Whether it finds in all of them what gdb found; its words as comments."""
    done = subprocess.run(
        [command],
        env=environment(RECORDINGS=folder),
        capture_output=True,
        text=True,
        errors="replace",
    )
    for line in (done.stdout + done.stderr).splitlines():
        print("#", line.removeprefix("# "))
    return done.returncode == 0


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--replay")
    arguments.add_argument("folder")
    arguments.add_argument("names", nargs="*")
    given = arguments.parse_args()
    replayer = given.replay and os.path.abspath(given.replay)
    folder, names, failed = (
        os.path.abspath(given.folder),
        given.names or (FAST if DEPTH == "fast" else PROGRAMS),
        False,
    )
    os.makedirs(folder, exist_ok=True)
    for old in glob.glob(f"{glob.escape(folder)}/*.stack"):
        os.unlink(old)
    print(f"1..{len(names) + bool(given.replay)}")
    with tempfile.TemporaryDirectory(prefix="recording-") as scratch:
        os.chdir(scratch)
        for number, name in enumerate(names, 1):
            try:
                need_gdb(name)
                points, kept, complete = keep(folder, name)
                good = points > 0 and kept > 0
                print(f"{'ok' if good else 'not ok'} {number} - {name} is recorded")
                print(
                    f"# {points} points, {kept} with their whole stack in the copy, {complete} "
                    f"of these end where threads begin"
                )
                failed |= not good
            except Skip as reason:
                print(f"ok {number} - {name} # SKIP {reason}")
            sys.stdout.flush()
        os.chdir("/")
    if given.replay:
        good = replay(replayer, folder)
        print(f"{'ok' if good else 'not ok'} {len(names) + 1} - walked natively, they are gdb's")
        failed |= not good
    sys.exit(failed)


main()
