# SPDX-License-Identifier: Apache-2.0
"""Programs under gdb, stopped at random points (freeze.py): what frozen.py and recording.py
share."""

import contextlib
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import threading

import programs
from tap import DEADLINE, Skip, environment, read, until

SPIN_NS, RUN_MS = 12_000_000, (1, 9)  # of CPU time
FOREVER = "100000"
LIBC, SYS_TGKILL = ctypes.CDLL(None), 234


def command(name):
    if name == "cc1plus":
        return programs.cc1("c++")
    if name == "sqlite3":
        return programs.sql(20_000_000)
    if name == "openssl":
        return [
            "openssl",
            "speed",
            "-seconds",
            "60",
            "-bytes",
            "8192",
            "sha256",
            "rsa2048",
            "ecdsap256",
        ]
    for system, words in programs.system(False):
        if system == name:
            return [FOREVER if w == "%s" else w for w in words]
    return [dict(programs.own())[name], FOREVER]


def on_cpu_ns(pid, tid):
    try:
        return int(read(f"/proc/{pid}/task/{tid}/schedstat").split()[0])
    except OSError:  # it has ended
        return 0


def interrupt_later(pid, words):
    """Once the process has run for a moment, or the frozen thread for long enough to be sampled."""
    if words[0] == "spin":
        tid = int(words[1])
        goal = on_cpu_ns(pid, tid) + SPIN_NS
        until(lambda: on_cpu_ns(pid, tid) >= goal, "a frozen thread's spinning")
    else:
        goal = on_cpu_total(pid) + random.uniform(*RUN_MS)
        until(lambda: on_cpu_total(pid) >= goal, "a moment of running")
    tid = int(words[1]) if words[0] == "spin" else pid
    LIBC.syscall(SYS_TGKILL, pid, tid, signal.SIGSTOP)  # which no thread can block


def on_cpu_total(pid):
    """ms of all threads that there are."""
    with contextlib.suppress(OSError):
        return sum(on_cpu_ns(pid, tid) for tid in os.listdir(f"/proc/{pid}/task")) / 1e6
    return float("inf")


class Watchdog:
    """Kills a program that has said nothing for long."""

    def __init__(self, program):
        self.program, self.timer = program, None
        self.fed()

    def fed(self):
        self.cancel()
        self.timer = threading.Timer(2 * DEADLINE, self.kill)
        self.timer.start()

    def kill(self):
        print(f"# gdb: silent for {2 * DEADLINE} s, so killed")
        self.program.kill()

    def cancel(self):
        if self.timer:
            self.timer.cancel()


def freeze(pid, points, copy=0):
    """gdb's points: [{name, gdb, fp}], or those of freeze.py's FREEZE_COPY."""
    found = []
    with open("gdb.log", "w", encoding="utf-8") as log:
        gdb = subprocess.Popen(
            [
                "gdb",
                "-nx",
                "-q",
                "-batch",
                "-ex",
                "set debuginfod enabled off",
                "-ex",
                "set auto-load off",
                "-p",
                str(pid),
                "-x",
                os.path.join(os.path.dirname(__file__), "freeze.py"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment(FREEZE_POINTS=str(points), FREEZE_COPY=str(copy)),
        )
    watchdog = Watchdog(gdb)
    try:
        for line in gdb.stdout:
            watchdog.fed()
            words = line.split()
            if words and words[0] in ("run", "spin"):
                interrupt_later(pid, words)
            elif line.startswith("point "):
                found.append(json.loads(line[6:]))
            elif line.startswith("error "):
                print("# gdb:", line.rstrip())
            elif words and words[0] == "end" and int(words[2]) > 2 * points:
                print(
                    f"# gdb: {words[1]} points in {words[2]} tries; unfit: "
                    f"{line.split(None, 3)[3].rstrip()}"
                )
    finally:
        watchdog.cancel()
        gdb.kill()
        gdb.wait()
        gdb.stdout.close()
    if len(found) < points:
        print(f"# gdb: {len(found)} of {points} points; its last words: {read('gdb.log')[-600:]!r}")
    return found


def need_gdb(name):
    if not shutil.which("gdb") or os.uname().machine != "x86_64":
        raise Skip("needs gdb on x86-64: apt-get install gdb")
    try:
        words = command(name)
    except (KeyError, FileNotFoundError, subprocess.CalledProcessError) as error:
        raise Skip(f"needs what builds {name}") from error
    if not shutil.which(words[0]):
        raise Skip(f"needs {words[0]}")
