# SPDX-License-Identifier: Apache-2.0
"""Stacks as the tests judge them, from three sources: our pprof files, perf, and gdb.

A stack is (weight, process, comm, frames, marker): the names of its process and of its thread, as
far as they are known; frames leaf first, each (file, address within the file), user frames only;
marker is the text of the frame that says why a stack is not whole, or None.
"""

import collections
import gzip
import os
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../scenario"))
from protobuf import fields, packed  # noqa: E402

Stack = collections.namedtuple("Stack", "weight process comm frames marker")


class Profile:
    """A pprof file: its stacks, and the names that its functions have."""

    def __init__(self, path):
        with gzip.open(path) as f:
            parts = collections.defaultdict(list)
            for number, value in fields(f.read()):
                parts[number].append(value)
        self.strings = [s.decode(errors="replace") for s in parts[6]]
        self.files, self.functions, self.locations = {}, {}, {}
        for message in parts[3]:
            m = dict(fields(message))
            self.files[m[1]] = self.strings[m.get(5, 0)]
        for message in parts[5]:
            m = dict(fields(message))
            self.functions[m[1]] = self.strings[m.get(2, 0)]
        for message in parts[4]:
            m, function = {}, 0
            for number, value in fields(message):
                if number == 4:
                    function = dict(fields(value)).get(1, 0)
                else:
                    m[number] = value
            self.locations[m[1]] = (
                self.files.get(m.get(2, 0), ""),
                m.get(3, 0),
                self.functions.get(function, ""),
            )
        self.samples = list(map(self.sample, parts[2]))

    def sample(self, message):
        """(samples, labels, locations leaf first)"""
        locations, values, labels = [], [], {}
        for number, value in fields(message):
            if number == 1:
                locations += packed(value)
            elif number == 2:
                values += packed(value)
            elif number == 3:
                label = dict(fields(value))
                labels[self.strings[label.get(1, 0)]] = (
                    self.strings[label[2]] if 2 in label else label.get(3, 0)
                )
        return values[0], labels, [self.locations[i] for i in locations]

    def stacks(self):
        """Those of samples that have a user part, kernel frames left out."""
        for weight, labels, locations in self.samples:
            user = [
                (f, a) for f, a, _ in locations if not f.startswith("[kernel") and f != "[andiron]"
            ]
            markers = [name for f, _, name in locations if f == "[andiron]"]
            if user or markers:
                comm = labels.get("comm", "")
                yield Stack(
                    weight,
                    labels.get("process", comm),
                    comm,
                    tuple(user),
                    markers[0] if markers else None,
                )


# --- perf ---


class Segments:
    """Where a file's bytes are loaded: file offset → address."""

    cache = {}

    @classmethod
    def of(cls, path):
        if path not in cls.cache:
            cls.cache[path] = cls.read(path)
        return cls.cache[path]

    @staticmethod
    def read(path):
        try:
            with open(path, "rb") as f:
                head = f.read(64)
                if head[:5] != b"\x7fELF\x02":
                    return []
                (offset,) = struct.unpack_from("<Q", head, 32)
                size, count = struct.unpack_from("<HH", head, 54)
                f.seek(offset)
                table = f.read(size * count)
        except OSError:
            return []
        found = []
        for i in range(count):
            kind, _, start, address, _, length = struct.unpack_from("<IIQQQQ", table, i * size)
            if kind == 1:
                found.append((start, start + length, address))
        return found


def address_in_file(path, offset):
    for start, end, address in Segments.of(path):
        if start <= offset < end:
            return offset - start + address
    return offset


class Names:
    """What processes are called, as perf's events tell."""

    def __init__(self):
        self.of = {}

    def take(self, text):
        if named := COMM.search(text):
            if named[2] == named[3]:
                self.of[int(named[3])] = named[1]
        elif forked := FORK.search(text):
            if forked[1] != forked[2]:
                self.of[int(forked[1])] = self.of.get(int(forked[2]), "")


HEAD = re.compile(r"^(.*?)\s+(\d+)/(\d+)\s+([\d.]+):\s*(.*)$")
FRAME = re.compile(r"^\s+([0-9a-f]+) \((.*)\)$")
COMM = re.compile(r"PERF_RECORD_COMM(?: exec)?: (.*):(\d+)/(\d+)$")
FORK = re.compile(r"PERF_RECORD_FORK\((\d+):\d+\):\((\d+):\d+\)")
KERNEL = 1 << 63


def perf_stacks(path, by_thread=False):
    """The stacks of a perf.data file under the name of their process or thread, callers as perf
    gives them: by return address from frame pointers, by the call's last byte from DWARF."""
    script = subprocess.Popen(
        [
            "perf",
            "script",
            "-i",
            path,
            "--no-inline",
            "--show-task-events",
            "--max-stack",
            "2000",
            "-F",
            "comm,pid,tid,time,ip,dso",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
    )
    names, head, frames = Names(), None, []

    def finish():
        name = None if by_thread else names.of.get(int(head[2]))
        name = name or head[1].strip()
        return Stack(1, name, name, tuple(frames), None)

    for line in script.stdout:
        if found := FRAME.match(line):
            address, file = int(found[1], 16), found[2]
            if address < KERNEL:
                frames.append(
                    (file, address_in_file(file, address))
                    if file[:1] == "/"
                    else ("[anon]", address)
                )
        elif found := HEAD.match(line):
            if head and frames:
                yield finish()
            head, frames = None, []
            if "PERF_RECORD" in found[5]:
                names.take(found[5])
            else:
                head = found
    if head and frames:
        yield finish()
    script.wait()
