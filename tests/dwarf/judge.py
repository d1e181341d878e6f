#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge.py FRAMES GO_FRAMES SOURCE_DIR ADDRESSES [quick]: frames by lib/dwarf against llvm-symbolizer's, over programs built here.

Every form of debug information that compilers and packers make; ADDRESSES random ones over the text of each. What
dwz and llvm-dwp have packed is judged by the program as it was before: its code is the same.
Names, files, lines and columns of all frames must be equal. Where a function's code bears several symbols (folded
functions, kinds of a constructor), any of them is right for the function itself. TAP comes out.
"""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

def run(*command, **keywords):
    return subprocess.run(command, capture_output=True, text=True, check=True, errors="replace", **keywords).stdout


def cxx(compiler, *options):
    """Two units of C++."""
    def build(source, folder):
        parts = []
        for part in ("0", "1"):
            parts.append(os.path.join(folder, f"part{part}.o"))
            run(compiler, "-std=c++17", "-O2", "-DPART=" + part, *options, "-c", os.path.join(source, "program.cc"),
                "-o", parts[-1], cwd=folder)
        program = os.path.join(folder, "program")
        link = [o for o in options if o.startswith(("-gz", "-g", "-fl", "-O"))]
        run(compiler, "-o", program, *link, *parts, cwd=folder)
        return [program], program
    return build


def dwz(source, folder):
    """Two programs whose common entries are in a third file."""
    before = cxx("g++", "-g", "-gdwarf-5")(source, folder)[1]
    paths = [os.path.join(folder, n) for n in ("one", "two")]
    for path in paths:
        shutil.copy(before, path)
    run("dwz", "-m", os.path.join(folder, "common"), *paths)
    return [paths[0], os.path.join(folder, "common")], before


def dwz_single(source, folder):
    before = cxx("g++", "-g", "-gdwarf-4", "-gstrict-dwarf")(source, folder)[1]
    path = os.path.join(folder, "single")
    shutil.copy(before, path)
    run("dwz", path)
    return [path], before


def split(version, compiler):
    def build(source, folder):
        _, program = cxx(compiler, "-g", "-gdwarf-" + version, "-gsplit-dwarf")(source, folder)
        tool = next(t for t in ("llvm-dwp", "llvm-dwp-14", "/usr/lib/llvm-14/bin/llvm-dwp") if shutil.which(t))
        run(tool, "-e", program, "-o", program + ".dwp", cwd=folder)
        return [program, "-", program + ".dwp"], program
    return build


def rust(*options):
    def build(source, folder):
        program = os.path.join(folder, "program")
        run("rustc", "-g", *options, os.path.join(source, "program.rs"), "-o", program)
        return [program], program
    return build


def go(source, folder):
    program = os.path.join(folder, "program")
    subprocess.run(["go", "build", "-o", program, "."], cwd=os.path.join(source, "../elf/go-program"), check=True,
                   capture_output=True, env={**os.environ, "GOFLAGS": "-mod=mod", "GOWORK": "off"})
    return [program], program


def stripped_go(source, folder):
    """Its table alone, judged by the debug information of the same program; there are no columns in it."""
    program = go(source, folder)[1]
    run("strip", "-o", os.path.join(folder, "stripped"), program)
    return [os.path.join(folder, "stripped")], program


CASES = [
    ("g++, DWARF 5", "g++", cxx("g++", "-g", "-gdwarf-5")),
    ("g++, DWARF 4", "g++", cxx("g++", "-g", "-gdwarf-4", "-gstrict-dwarf")),
    ("g++, DWARF 3, by function", "g++", cxx("g++", "-g", "-gdwarf-3", "-gstrict-dwarf", "-ffunction-sections")),
    ("g++, compressed", "g++", cxx("g++", "-g", "-gz=zlib")),
    ("g++, LTO", "g++", cxx("g++", "-g", "-flto")),
    ("clang++, DWARF 5", "clang++", cxx("clang++", "-g", "-gdwarf-5")),
    ("clang++, DWARF 4", "clang++", cxx("clang++", "-g", "-gdwarf-4")),
    ("clang++, lines only", "clang++", cxx("clang++", "-gmlt")),
    ("dwz, DWARF 5, common file", "dwz", dwz),
    ("dwz, DWARF 4", "dwz", dwz_single),
    ("clang++, split, DWARF 5", "clang++", split("5", "clang++")),
    ("clang++, split, DWARF 4", "clang++", split("4", "clang++")),
    ("g++, split, DWARF 5", "g++", split("5", "g++")),
    ("rustc", "rustc", rust("-O")),
    ("go", "go", go),
    ("go, stripped", "go", stripped_go),
]
QUICK = ("g++, DWARF 5", "clang++, DWARF 4", "dwz, DWARF 5, common file", "clang++, split, DWARF 5", "rustc", "go", "go, stripped")


def text_of(path):
    for line in run("readelf", "-SW", path).split("\n"):
        m = re.match(r"\s*\[\s*\d+\] \.text\s+PROGBITS\s+([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", line)
        if m:
            return int(m[1], 16), int(m[2], 16)
    raise SystemExit(f"{path} has no text")


def place(text):
    file, line, column = text.rsplit(":", 2)
    return os.path.normpath(file) if file.strip("?") else "", int(line), int(column)


def ours(tool, files, asked):
    for block in run(tool, *files, input=asked).strip("\n").split("\n\n"):
        # A function's name may hold spaces, as Go's do; a path here does not.
        yield [(n if n != "?" else "", place(p)) for n, p in (line.rsplit(" ", 1) for line in block.split("\n"))]


def theirs(path, asked, folder):
    env = {**os.environ, "DEBUGINFOD_URLS": ""}
    answer = run("llvm-symbolizer", "--inlines", "--no-demangle", "--obj=" + path, input=asked, env=env, cwd=folder)
    for block in answer.strip("\n").split("\n\n"):
        lines = block.split("\n")
        yield [(lines[i] if lines[i] != "??" else "", place(lines[i + 1])) for i in range(0, len(lines) - 1, 2)]


class Symbols:
    """Which symbols are of one function."""

    def __init__(self, path):
        self.at = {}
        for line in run("readelf", "-sW", path).split("\n"):
            m = re.match(r"\s*\d+: ([0-9a-f]{16})\s+\S+ FUNC\s+\w+\s+\w+\s+\w+ (.*)", line)
            if m:
                self.at.setdefault(m[2].split("@")[0], set()).add(m[1])

    def same(self, a, b):
        return a == b or bool(self.at.get(a, set()) & self.at.get(b, set()))


def same(a, b, symbols):
    # Symbols of type FILE give llvm-symbolizer a file without a line; that says nothing of the address.
    if len(a) == len(b) == 1 and not a[0][1][1] and not b[0][1][1]:
        return symbols.same(a[0][0], b[0][0])
    return (len(a) == len(b) and [x[1] for x in a] == [x[1] for x in b] and [x[0] for x in a[:-1]] == [x[0] for x in b[:-1]]
            and symbols.same(a[-1][0], b[-1][0]))


def in_table(frames):
    """Names and lines as Go's table has them: no columns, no ABI, type arguments as [...]; what the compiler made
    itself has no file in debug information."""
    frames = [(n, ("", 0, 0) if p[0] == "<autogenerated>" else p) for n, p in frames]
    return [(re.sub(r"\[.*\]", "[...]", re.sub(r"\.abi(0|internal)$", "", n)).replace("\u00b7", "."), (p[0], p[1], 0)) for n, p in frames]


def main():
    tool, go_tool, source, count = sys.argv[1], sys.argv[2], os.path.abspath(sys.argv[3]), int(sys.argv[4])
    if not shutil.which("llvm-symbolizer"):
        print("1..0 # SKIP no llvm-symbolizer: install llvm")
        return
    cases = [c for c in CASES if "quick" not in sys.argv or c[0] in QUICK]
    print(f"1..{len(cases)}")
    failed = total = differ = 0
    for number, (name, needs, build) in enumerate(cases, 1):
        if not shutil.which(needs):
            print(f"ok {number} - {name} # SKIP no {needs}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            files, judge = build(source, folder)
            start, size = text_of(judge)
            rng = random.Random(number)
            asked = "".join(f"0x{start + rng.randrange(size):x}\n" for _ in range(count))
            stripped = build is stripped_go
            a, b = list(ours(go_tool if stripped else tool, files, asked)), list(theirs(judge, asked, folder))
            if stripped:
                # Padding is its function's in Go's table, and nobody's in debug information.
                a, b = [in_table(x) for x in a], [in_table(x) for x in b]
                a = [q if not q[-1][0] else p for p, q in zip(a, b)]
            symbols = Symbols(judge)
        wrong = [(x, p, q) for x, p, q in zip(asked.split(), a, b) if not same(p, q, symbols)]
        inlined = sum(len(q) > 1 for q in b)
        ok = len(a) == len(b) == count and len(wrong) <= count // 1000
        failed += not ok
        total += count
        differ += len(wrong)
        print(f"{'ok' if ok else 'not ok'} {number} - {name}: {count} addresses, {inlined} inlined, {len(wrong)} differ")
        for x, p, q in wrong[:3]:
            print(f"# {x}: {p}")
            print(f"# judge: {q}")
    print(f"# {total - differ} of {total} equal")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
