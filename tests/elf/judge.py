#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge.py LOOKUP FILE…: names by lib/elf against those that readelf's listing gives.

Addresses: the first, last and one past the last byte of every function, and random ones over the
text. The rule of lib/elf/symbols.h is written here a second time, over readelf's text. TAP comes
out.
"""

import bisect
import os
import random
import re
import subprocess
import sys

SYMBOL = re.compile(
    r"^\s*\d+: ([0-9a-f]{16})\s+(0x[0-9a-f]+|\d+) (\w+)\s+(\w+)\s+\w+\s+(?:\[.*?\]\s+)?(\w+) ?(.*)"
)
SECTION = re.compile(
    r"^\s*\[\s*\d+\] \S*\s+(\w+)\s+([0-9a-f]{16}) [0-9a-f]+ ([0-9a-f]+) "
    r"\S+\s+(\w*)\s+\d+\s+\d+\s+\d+$"
)

ALIASES = 64  # MAX_ALIAS of lib/elf/symbols.c


def readelf(option, path):
    return subprocess.run(
        ["readelf", option, "-W", path],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=True,
        env={**os.environ, "LC_ALL": "C"},
    ).stdout.split("\n")


def sections(path):
    """Loaded address ranges, sorted."""
    for line in readelf("-S", path):
        m = SECTION.match(line)
        if m and "A" in m[4] and "T" not in m[4]:
            yield int(m[2], 16), int(m[2], 16) + int(m[3], 16)


def functions(path):
    """(address, size, local, name) of .symtab, or of .dynsym where that has none."""
    tables, table = {}, None
    for line in readelf("-s", path):
        if line.startswith("Symbol table '"):
            table = tables.setdefault(line.split("'")[1], [])
        m = SYMBOL.match(line)
        if m and m[3] in ("FUNC", "IFUNC") and m[5] != "UND" and m[6]:
            table.append((int(m[1], 16), int(m[2], 0), m[4] == "LOCAL", m[6].split("@")[0]))
    return tables.get(".symtab") or tables.get(".dynsym") or []


class Judge:
    def __init__(self, path):
        self.sections = sorted(sections(path))
        listed = sorted(functions(path))
        starts = sorted({f[0] for f in listed})
        self.groups = {}
        for address, size, local, name in listed:
            if size == 0:
                at = bisect.bisect_right(starts, address)
                end = min([starts[at]] if at < len(starts) else [1 << 64], default=0)
                size = max(0, min(end, self.section_end(address)) - address)
            self.groups.setdefault(address, []).append((size, local, name))
        self.starts = starts
        self.longest = max((s for g in self.groups.values() for s, _, _ in g), default=0)

    def section_end(self, address):
        at = bisect.bisect_right(self.sections, (address, 1 << 65))
        return self.sections[at - 1][1] if at and address < self.sections[at - 1][1] else 0

    def names(self, address):
        """Those that are right: one, or any of a folded function's where there are more than are
        compared."""
        at = bisect.bisect_right(self.starts, address)
        while at and address - self.starts[at - 1] < self.longest:
            at -= 1
            start = self.starts[at]
            fits = [
                (local, name) for size, local, name in self.groups[start] if address - start < size
            ]
            if len(self.groups[start]) > ALIASES and fits:
                return {name for _, name in fits}
            if fits:
                return {
                    min(
                        fits,
                        key=lambda f: (f[0], len(f[1]) - len(f[1].lstrip("_")), len(f[1]), f[1]),
                    )[1]
                }
        return {"-"}

    def addresses(self, rng):
        for start in rng.sample(self.starts, min(len(self.starts), 20000)):
            yield start
            for size, _, _ in self.groups[start]:
                yield from (start + size - 1, start + size, start + size // 2)
        low, high = self.starts[0], self.starts[-1] + 65536
        for _ in range(20000):
            yield rng.randrange(low, high)


def main():
    lookup, files = sys.argv[1], [f for f in sys.argv[2:] if os.path.exists(f)]
    failed = 0
    print(f"1..{len(files)}")
    for number, path in enumerate(files, 1):
        judge = Judge(path)
        asked = (
            [a for a in judge.addresses(random.Random(number)) if 0 <= a < 1 << 64]
            if judge.starts
            else []
        )
        text = "".join(f"{a:x}\n" for a in asked)
        answers = subprocess.run(
            [lookup, path],
            input=text,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=True,
        ).stdout.split("\n")[:-1]
        wrong = [(a, got) for a, got in zip(asked, answers) if got not in judge.names(a)]
        ok = not wrong and len(answers) == len(asked) and len(asked) > 0
        failed += not ok
        print(
            f"{'ok' if ok else 'not ok'} {number} - {path}: {len(asked)} addresses, "
            f"{len(judge.starts)} functions"
        )
        for a, got in wrong[:5]:
            print(f"# {a:#x}: {got}, expected {' or '.join(sorted(judge.names(a))[:5])}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
