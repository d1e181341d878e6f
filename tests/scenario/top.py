#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`andiron top`: what is on CPU now, as tables in a pipe, and on a terminal that obeys keys and is
given back as it was."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from tap import ANDIRON, DEADLINE, WORKLOAD, andiron, case, environment, main, need_root

HOT = "workload_70"
SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ROWS, COLUMNS = 30, 100


@contextlib.contextmanager
def busy():
    with subprocess.Popen([WORKLOAD, "600"]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def tables(text):
    """[{function: (self, total)}] of plain tables; figures are per cent of a core."""
    return [
        {
            name: (float(own), float(total))
            for own, total, name in re.findall(r"^ *([\d.]+)% +([\d.]+)%   (\S+)", table, re.M)
        }
        for table in text.split("\n\n\n")
    ]


class Terminal:
    """A program on a terminal of its own, and what stands on it."""

    def __init__(self, *command):
        self.text = ""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.master, self.slave = master, slave
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment()
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def read(self):
        if select.select([self.master], [], [], 0.1)[0]:
            self.text += os.read(self.master, 65536).decode(errors="replace")

    def screen(self):
        """The lines of the last whole picture."""
        whole = self.text.rpartition("\x1b[J")[0].rpartition("\x1b[H")[2]
        return SEQUENCE.sub("", whole).replace("\r", "").split("\n")

    def until(self, condition, what):
        end = time.monotonic() + DEADLINE
        while not condition(self.screen()):
            assert time.monotonic() < end, f"{what}:\n" + "\n".join(self.screen())
            assert self.process.poll() is None, f"ended before {what}: {self.text[-2000:]}"
            self.read()

    def type(self, keys):
        os.write(self.master, keys.encode())

    def end(self):
        """Waits for its end; its terminal is as it was."""
        end = time.monotonic() + DEADLINE
        while self.process.poll() is None:
            assert time.monotonic() < end, self.text[-2000:]
            self.read()
        for _ in range(5):
            self.read()
        assert self.text.endswith("\x1b[?25h\x1b[?1049l"), repr(self.text[-200:])
        assert termios.tcgetattr(self.slave) == self.before
        return self.process.returncode


def rows(screen):
    return [line for line in screen[4:] if "%" in line]


@case
def plain_tables():
    """Where output is no terminal, tables follow each other; the hot function has most of it."""
    need_root()
    with busy() as pid:
        # So often that chance moves no share by a tenth, also where others leave it a little.
        view = ("-F", "997", "-i", "1s", "-c", "3", "-n", "5")
        done = andiron("top", "-p", str(pid), *view).expect(0)
    found = [t for t in tables(done.out) if t]
    assert found and "\x1b" not in done.out, done.out
    own, total = found[-1][HOT]
    everything = sum(figures[0] for figures in found[-1].values())
    assert total >= own > 0.5 * everything > 0, found
    assert all(len(t) <= 5 for t in found), found
    assert "cores busy" in done.out and "samples of the last" in done.out, done.out


@case
def nothing_to_see():
    """A process that sleeps has an empty table, and `-c` ends all the same."""
    need_root()
    with subprocess.Popen(["sleep", "600"]) as idle:
        done = andiron("top", "-p", str(idle.pid), "-i", "1s", "-c", "1").expect(0, "0.00 cores")
        idle.kill()
    assert not any(tables(done.out)), done.out


@case
def keys():
    """Search, the other order, programs, pause, scrolling, leaving."""
    need_root()
    with busy() as pid, Terminal(ANDIRON, "top", "-F", "997", "-i", "1s") as t:
        t.until(lambda s: any(HOT in line for line in rows(s)), "the hot function is there")
        assert len(t.screen()) <= ROWS and max(map(len, t.screen())) <= COLUMNS, t.screen()
        assert "no samples yet" in t.text.partition("cores busy")[0], t.text[:400]
        assert "q quit" in t.screen()[1][:40], t.screen()[1]
        t.type("/LOAD_70")
        t.until(
            lambda s: "/LOAD_70_" in s[1] and rows(s) and all(HOT in r for r in rows(s)),
            "only rows that hold the text",
        )
        t.type("x")
        t.until(lambda s: not rows(s), "no row holds that")
        t.type("\x7f\r")
        t.until(lambda s: "Esc shows all" in s[1] and rows(s), "the search is kept")
        t.type("\x1b")
        t.until(lambda s: "/ search" in s[1], "all rows again")
        t.type("s")
        t.until(lambda s: "s by self" in s[1], "sorted by total")
        t.type("p")
        t.until(
            lambda s: "program" in s[3] and any("workload" in r for r in rows(s)),
            "programs in place of functions",
        )
        t.type("p")
        t.until(lambda s: any(HOT in r for r in rows(s)), "functions again")
        t.type(" ")
        t.until(lambda s: "paused" in s[0], "it is paused")
        while not rows(t.screen()):  # a busy machine may have had nothing to show just then
            t.type(" ")
            t.until(lambda s: "paused" not in s[0] and rows(s), "rows to be paused")
            t.type(" ")
            t.until(lambda s: "paused" in s[0], "it is paused with rows")
        t.type("\x1b[B\x1b[B\x1b[A")
        t.until(lambda s: rows(s), "scrolled by one row")
        t.type(" q")
        assert t.end() == 0
    assert pid


@case
def ends_by_signal():
    """Ctrl-C and a lost terminal end it, and leave nothing behind."""
    need_root()
    for number in (signal.SIGINT, signal.SIGTERM):
        with Terminal(ANDIRON, "top", "-i", "1s") as t:
            t.until(lambda s: len(s) > 3 and "total" in s[3], "the table is there")
            t.process.send_signal(number)
            assert t.end() == 0


@case
def refusals():
    """What makes no sense is refused in a sentence."""
    for words, arguments in (
        ("there is no process 2147480000", ("-p", "2147480000")),
        ("no process id", ("-p", "none")),
        ('what is "x"?', ("x",)),
        ("--window is at least", ("-i", "5s", "-w", "2s")),
    ):
        andiron("top", *arguments).expect(2, words)


main()
