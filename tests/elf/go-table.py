#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""go-table.py GO_TABLE SOURCE_DIR [TOOLCHAIN…]: Go's table as lib/elf reads it, against what else
Go's linker wrote.

Programs are built in each form a table can lie in, stripped of symbols, debug information and
section headers, and judged by their unstripped twins: entries and names by readelf's symbols, stack
depths by readelf's call frames, lines by llvm-symbolizer. TAP comes out.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

FORMS = [
    ("static", []),
    ("pie", ["-buildmode=pie"]),
    ("linked by ld", ["-buildmode=pie", "-ldflags=-linkmode=external"]),
]
SAMPLE = 3000


def run(*command, **keywords):
    return subprocess.run(
        command, capture_output=True, text=True, check=True, errors="replace", **keywords
    ).stdout


def without_headers(path):
    """Zeroes e_shoff, e_shnum and e_shstrndx: what a packer leaves."""
    with open(path, "r+b") as f:
        f.seek(0x28)
        f.write(bytes(8))
        f.seek(0x3C)
        f.write(bytes(4))


class Table:
    def __init__(self, text):
        self.functions, self.stack, self.lines = {}, {}, []
        for line in text.split("\n"):
            kind, _, rest = line.partition(" ")
            parts = rest.split(" ", 3)
            if kind == "fn":
                entry = int(parts[0], 16)
                self.functions[entry] = parts[3]
                self.stack[entry] = []
            elif kind == "sp":
                self.stack[entry].append((int(parts[0], 16), int(parts[1], 16), int(parts[2])))
            elif kind == "ln":
                self.lines.append((int(parts[0], 16), int(parts[2]), parts[3]))


def plain(name):
    """A linker's symbol less what Go's table does not tell: the ABI, type arguments and array
    lengths."""
    return re.sub(r"\[.*\]", "[...]", re.sub(r"\.abi(0|internal)$", "", name)).replace(
        "\u00b7", "."
    )


def symbols(path):
    """Address → names of the functions of .symtab."""
    names = {}
    for line in run("readelf", "-sW", path).split("\n"):
        m = re.match(r"\s*\d+: ([0-9a-f]{16})\s+\S+ FUNC\s+\w+\s+\w+\s+\w+ (.*)", line)
        if m:
            names.setdefault(int(m[1], 16), set()).add(plain(m[2]))
    return names


def depths(path):
    """(address, depth) where Go's own call frames change: the CFA less the return address."""
    found, entry = {}, None
    for line in run("readelf", "--debug-dump=frames-interp", "-W", path).split("\n"):
        m = re.search(r"FDE .* pc=([0-9a-f]+)\.\.", line)
        if m:
            entry = int(m[1], 16)
        m = re.match(r"([0-9a-f]{16}) rsp\+(\d+)", line)
        if m and entry is not None:
            found[int(m[1], 16)] = int(m[2]) - 8
    return found


def lines_of(path, addresses):
    text = "".join(f"0x{a:x}\n" for a in addresses)
    answer = run("llvm-symbolizer", "--obj=" + path, "--inlines", "--functions=none", input=text)
    for block in answer.strip("\n").split("\n\n"):
        m = re.match(r"(.*):(\d+):\d+$", block.split("\n")[0])
        yield (m[1], int(m[2])) if m else ("", 0)


def judge(got, twin):
    """What is wrong, as sentences."""
    named, frames = symbols(twin), depths(twin)
    ours = [e for e in got.functions if e in named]
    if len(ours) < 1000 or len(ours) < 0.98 * len(got.functions):
        yield f"{len(ours)} of {len(got.functions)} entries are symbols"
    for e in ours:
        if plain(got.functions[e]) not in named[e]:
            yield f"{e:#x} is {got.functions[e]}, expected {named[e]}"
    n = 0
    for e, rows in got.stack.items():
        for start, _, value in rows:
            if start in frames and got.functions[e] not in ("runtime.goexit",):
                n += 1
                if frames[start] != value:
                    yield (
                        f"depth at {start:#x} in {got.functions[e]} is {value}, expected "
                        f"{frames[start]}"
                    )
    if n < 1000:
        yield f"only {n} depths could be compared"
    sample = random.Random(7).sample(got.lines, SAMPLE)
    wrong = 0
    for (address, line, file), (judged_file, judged_line) in zip(
        sample, lines_of(twin, [s[0] for s in sample])
    ):
        if judged_line and (line, os.path.basename(file)) != (
            judged_line,
            os.path.basename(judged_file),
        ):
            wrong += 1
            if wrong <= SAMPLE // 1000:
                print(
                    f"# {address:#x}: {file}:{line}, llvm-symbolizer: {judged_file}:{judged_line}"
                )
    if wrong > SAMPLE // 1000:
        yield f"{wrong} of {SAMPLE} lines differ"


def build(source, folder, toolchain, options):
    twin = os.path.join(folder, "twin")
    env = {**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": toolchain, "GOWORK": "off"}
    subprocess.run(
        ["go", "build", "-o", twin, *options, "."],
        cwd=source,
        env=env,
        check=True,
        capture_output=True,
    )
    run("strip", "-o", os.path.join(folder, "stripped"), twin)
    shutil.copy(os.path.join(folder, "stripped"), os.path.join(folder, "headless"))
    without_headers(os.path.join(folder, "headless"))
    return twin


def main():
    tool, source, toolchains = sys.argv[1], sys.argv[2], sys.argv[3:] or ["local"]
    cases = [
        (t, *f, kind)
        for t in toolchains
        for f in FORMS
        for kind in ("twin", "stripped", "headless")
    ]
    if not shutil.which("go") or not shutil.which("llvm-symbolizer"):
        print("1..0 # SKIP no Go toolchain, or no llvm-symbolizer: install golang and llvm")
        return
    print(f"1..{len(cases)}")
    failed = number = 0
    for toolchain in toolchains:
        for form, options in FORMS:
            with tempfile.TemporaryDirectory() as folder:
                twin = build(source, folder, toolchain, options)
                for kind in ("twin", "stripped", "headless"):
                    number += 1
                    got = Table(run(tool, os.path.join(folder, kind)))
                    wrong = list(judge(got, twin))
                    failed += bool(wrong)
                    print(
                        f"{'not ok' if wrong else 'ok'} {number} - {toolchain}, {form}, {kind}: "
                        f"{len(got.functions)} functions, {len(got.lines)} rows of lines"
                    )
                    for sentence in wrong[:5]:
                        print("# " + sentence)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
