#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge.py FRAMES GO_FRAMES SOURCE_DIR ADDRESSES [quick | others]: frames by lib/dwarf against
other readers', over programs built here.

Every form of debug information that compilers and packers make, or the quick ones, or the others;
ADDRESSES random ones over the text of each. With SCENARIO_DEPTH=full, as ./check --full has it,
these are 2,000 of each quick form and at most 1,000 of each other one; with `all` 6,000 and
ADDRESSES. Judges:

  llvm-symbolizer        names, files, lines and columns of all frames. It reads no file that dwz
                         has shared, and Debian's reads
                         no split units of DWARF 4 in a package: these are judged by the program as
                         it was before; its code is the same
  eu-addr2line           the same, of the files that dwz has made (a thousand addresses: it takes 10
                         ms each; of a quick form only where SCENARIO_DEPTH is set);
                         where it differs and gdb does not, gdb is believed, for at most one address
                         in twenty (here: 8 of DWARF 5, 29 of DWARF 4)
  gdb                    names of all frames, of the files that dwz has made (of lines it knows
                         those that begin a statement only)
  go tool addr2line      Go's functions and the place of the program

Where a function's code bears several symbols (folded functions, kinds of a constructor), any of
them is right for the function itself. TAP comes out.
"""

import concurrent.futures
import glob
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading

DEPTH = os.environ.get("SCENARIO_DEPTH", "fast")


def run(*command, **keywords):
    return subprocess.run(
        command, capture_output=True, text=True, check=True, errors="replace", **keywords
    ).stdout


class Once:
    """Programs that several forms begin with, each compiled once: that takes most of the time. They
    stay until the end, since what has units of its own names them by the folder."""

    def __init__(self):
        self.place, self.lock, self.made = None, threading.Lock(), {}

    def folder(self, key, compile_in):
        """Where the key's program is. Who comes while it is compiled waits."""
        with self.lock:
            lock, done = self.made.setdefault(key, (threading.Lock(), []))
        with lock:
            if not done:
                folder = tempfile.mkdtemp(dir=self.place)
                compile_in(folder)
                done.append(folder)
        return done[0]


ONCE = Once()


def cxx(compiler, *options):
    """Two units of C++."""

    def compile_in(source, folder):
        parts = []
        for part in ("0", "1"):
            parts.append(os.path.join(folder, f"part{part}.o"))
            run(
                compiler,
                "-std=c++17",
                "-O2",
                "-DPART=" + part,
                *options,
                "-c",
                os.path.join(source, "program.cc"),
                "-o",
                parts[-1],
                cwd=folder,
            )
        program = os.path.join(folder, "program")
        link = [o for o in options if o.startswith(("-gz", "-g", "-fl", "-O"))]
        run(compiler, "-o", program, *link, *parts, cwd=folder)

    def build(source, folder):
        made = ONCE.folder((compiler, options), lambda where: compile_in(source, where))
        program = shutil.copy(os.path.join(made, "program"), folder)
        return [program], program

    return build


def c(compiler, *options):
    """C, as a library: what is missing there need not be found."""

    def build(source, folder):
        files = [
            f
            for f in sorted(glob.glob(os.path.join(source, "../../lib/dwarf/*.c")))
            if "/test-" not in f
        ]
        program = os.path.join(folder, "program.so")
        run(
            compiler,
            "-std=gnu17",
            "-O2",
            "-shared",
            "-fPIC",
            "-D_GNU_SOURCE",
            "-I" + os.path.join(source, "../../lib"),
            *options,
            "-o",
            program,
            *files,
        )
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


def packed(kind):
    """Debug sections compressed afterwards; judged by the program as it was before."""

    def build(source, folder):
        before = cxx("g++", "-g", "-gdwarf-5")(source, folder)[1]
        path = os.path.join(folder, "packed")
        run("objcopy", "--compress-debug-sections=" + kind, before, path)
        assert (".zdebug_info" if kind == "zlib-gnu" else "ZSTD") in run(
            "readelf", "-tW", path
        ), kind
        return [path], before

    return build


def split(version, compiler):
    def build(source, folder):
        _, program = cxx(compiler, "-g", "-gdwarf-" + version, "-gsplit-dwarf")(source, folder)
        tool = next(
            t
            for t in ("llvm-dwp", "llvm-dwp-14", "/usr/lib/llvm-14/bin/llvm-dwp")
            if shutil.which(t)
        )
        run(tool, "-e", program, "-o", program + ".dwp", cwd=folder)
        return [program, "-", program + ".dwp"], program

    return build


def loose(version, compiler):
    """Split units as they lie about, with no package."""
    return cxx(compiler, "-g", "-gdwarf-" + version, "-gsplit-dwarf")


def rust(*options):
    def build(source, folder):
        program = os.path.join(folder, "program")
        run("rustc", "-g", *options, os.path.join(source, "program.rs"), "-o", program)
        return [program], program

    return build


def go(source, folder):
    program = os.path.join(folder, "program")
    subprocess.run(
        ["go", "build", "-o", program, "."],
        cwd=os.path.join(source, "../elf/go-program"),
        check=True,
        capture_output=True,
        env={**os.environ, "GOFLAGS": "-mod=mod", "GOWORK": "off"},
    )
    return [program], program


def stripped_go(source, folder):
    """Its table alone, judged by the debug information of the same program; there are no columns
    in it."""
    program = go(source, folder)[1]
    run("strip", "-o", os.path.join(folder, "stripped"), program)
    return [os.path.join(folder, "stripped")], program


CASES = [
    ("g++, DWARF 5", "g++", cxx("g++", "-g", "-gdwarf-5")),
    ("g++, DWARF 4", "g++", cxx("g++", "-g", "-gdwarf-4", "-gstrict-dwarf")),
    (
        "g++, DWARF 3, by function",
        "g++",
        cxx("g++", "-g", "-gdwarf-3", "-gstrict-dwarf", "-ffunction-sections"),
    ),
    ("g++, compressed", "g++", cxx("g++", "-g", "-gz=zlib")),
    ("g++, objcopy's zstd", "objcopy", packed("zstd")),
    ("g++, objcopy's zlib-gnu", "objcopy", packed("zlib-gnu")),
    ("g++, LTO", "g++", cxx("g++", "-g", "-flto")),
    ("gcc, C, DWARF 5", "gcc", c("gcc", "-g", "-gdwarf-5")),
    ("clang, C, DWARF 4", "clang", c("clang", "-g", "-gdwarf-4")),
    ("clang++, DWARF 5", "clang++", cxx("clang++", "-g", "-gdwarf-5")),
    ("clang++, DWARF 4", "clang++", cxx("clang++", "-g", "-gdwarf-4")),
    ("clang++, lines only", "clang++", cxx("clang++", "-gmlt")),
    ("dwz, DWARF 5, common file", "dwz", dwz),
    ("dwz, DWARF 4", "dwz", dwz_single),
    ("clang++, split, DWARF 5", "clang++", split("5", "clang++")),
    ("clang++, split, DWARF 4", "clang++", split("4", "clang++")),
    ("g++, split, DWARF 5", "g++", split("5", "g++")),
    ("clang++, .dwo, DWARF 5", "clang++", loose("5", "clang++")),
    ("g++, .dwo, DWARF 5", "g++", loose("5", "g++")),
    ("g++, .dwo, DWARF 4", "g++", loose("4", "g++")),
    ("rustc, DWARF 4", "rustc", rust("-O", "-Cdwarf-version=4")),
    ("rustc, DWARF 5", "rustc", rust("-O", "-Cdwarf-version=5")),
    ("go", "go", go),
    ("go, stripped", "go", stripped_go),
]
QUICK = (
    "g++, DWARF 5",
    "g++, objcopy's zstd",
    "g++, objcopy's zlib-gnu",
    "gcc, C, DWARF 5",
    "clang++, DWARF 4",
    "dwz, DWARF 5, common file",
    "clang++, split, DWARF 5",
    "clang++, .dwo, DWARF 5",
    "rustc, DWARF 4",
    "go",
    "go, stripped",
)


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
        yield [
            (n if n != "?" else "", place(p))
            for n, p in (line.rsplit(" ", 1) for line in block.split("\n"))
        ]


def theirs(path, asked, folder):
    env = {**os.environ, "DEBUGINFOD_URLS": ""}
    answer = run(
        "llvm-symbolizer",
        "--inlines",
        "--no-demangle",
        "--obj=" + path,
        input=asked,
        env=env,
        cwd=folder,
    )
    for block in answer.strip("\n").split("\n\n"):
        lines = block.split("\n")
        yield [
            (lines[i] if lines[i] != "??" else "", place(lines[i + 1]))
            for i in range(0, len(lines) - 1, 2)
        ]


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
    # Symbols of type FILE give llvm-symbolizer a file without a line; that says nothing of the
    # address.
    if len(a) == len(b) == 1 and not a[0][1][1] and not b[0][1][1]:
        return symbols.same(a[0][0], b[0][0])
    return (
        len(a) == len(b)
        and [x[1] for x in a] == [x[1] for x in b]
        and [x[0] for x in a[:-1]] == [x[0] for x in b[:-1]]
        and symbols.same(a[-1][0], b[-1][0])
    )


def in_table(frames):
    """Names and lines as Go's table has them: no columns, no ABI, type arguments as [...]; what the
    compiler made itself has no file in debug information."""
    frames = [(n, ("", 0, 0) if p[0] == "<autogenerated>" else p) for n, p in frames]
    return [
        (
            re.sub(r"\[.*\]", "[...]", re.sub(r"\.abi(0|internal)$", "", n)).replace("\u00b7", "."),
            (p[0], p[1], 0),
        )
        for n, p in frames
    ]


def by_elfutils(path, asked, folder):
    answer = run(
        "eu-addr2line",
        "-a",
        "-f",
        "-i",
        "-e",
        path,
        input=asked,
        env={**os.environ, "DEBUGINFOD_URLS": ""},
        cwd=folder,
    )
    for block in re.split(r"^0x[0-9a-f]{16}\n", answer, flags=re.M)[1:]:
        lines = block.strip("\n").split("\n")
        names = [n.split(" inlined at ")[0] for n in lines[0::2]]
        places = [p if p.count(":") > 1 else p + ":0" for p in lines[1::2]]
        yield [(n if n != "??" else "", place(p)) for n, p in zip(names, places)]


GDB = """
import gdb
for line in open("asked"):
    block, names = gdb.block_for_pc(int(line, 16)), []
    while block and not block.is_static and not block.is_global:
        if block.function:
            names.append(block.function.linkage_name)
        block = block.superblock
    print("\\t".join(["frames"] + names))
"""


def by_gdb(path, asked, folder):
    for name, text in (("asked", asked), ("ask.py", GDB)):
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)
    answer = run(
        "gdb",
        "-nx",
        "-q",
        "-batch",
        "-ex",
        "set debuginfod enabled off",
        "-ex",
        "set auto-load off",
        "-x",
        "ask.py",
        path,
        cwd=folder,
    )
    for line in answer.splitlines():
        if line.startswith("frames"):
            yield line.split("\t")[1:]


def same_debug(a, b, symbols):
    """A symbol alone, without a line, is no answer of debug information. In a lambda's body, which
    is written within another function, eu-addr2line finds no inlined calls: the place is the
    innermost one's, the name the lambda's."""
    lambdas = len(b) == 1 and "NKUl" in b[0][0] and b[0] == (a[-1][0], a[0][1])
    return a == b or lambdas or (len(a) == len(b) == 1 and not a[0][0] and not b[0][1][1])


def same_names(a, b, symbols):
    """What has no linked name gdb calls by its scope and parameters. Its blocks go on beyond an
    out-of-line function (a lambda's) to where that one is written: such a function has a symbol,
    and the stack ends with it."""
    names = [n for n, _ in a if n]
    equal = all(p == q or re.search(r"(^|::)" + re.escape(p) + r"\(", q) for p, q in zip(names, b))
    return equal and (
        len(names) == len(b) or (names and len(names) < len(b) and names[-1] in symbols.at)
    )


def by_go(path, asked, folder):
    lines = run("go", "tool", "addr2line", path, input=asked).splitlines()
    return list(zip(lines[0::2], lines[1::2]))


def same_place(a, b, symbols):
    """The function at the root, and the place of the program; padding is a function's in Go's
    table."""
    if not a[-1][0]:
        return True
    file, _, line = b[1].rpartition(":")
    got = in_table(a)
    name = re.sub(r"\[.*\]", "[...]", re.sub(r"\.abi(0|internal)$", "", b[0])).replace(
        "\u00b7", "."
    )
    return (
        got[-1][0] == name
        and (got[0][1][1] == int(line or 0) or not got[0][1][1])
        and (not got[0][1][0] or got[0][1][0] == os.path.normpath(file))
    )


def further_judges(build, files, judge, brief):
    """(name, its answers, how to compare, which file, how many addresses) besides
    llvm-symbolizer."""
    if build in (dwz, dwz_single):
        yield "gdb", by_gdb, same_names, files[0], 10**6
        if not brief:
            yield "eu-addr2line", by_elfutils, same_debug, files[0], 1000
    if build in (go, stripped_go):
        yield "go tool addr2line", by_go, same_place, judge, 10**6


def compare(asked, a, b, equal, symbols):
    """What differs: (address, ours, theirs); everything where they have not answered all."""
    if len(a) < len(b) or not b:
        return [(x, None, None) for x in asked]
    return [(x, p, q) for x, p, q in zip(asked, a, b) if not equal(p, q, symbols)]


def judged(number, build, folder, count, brief):
    """Yields (judge, addresses, inlined, what differs) for a form of debug information."""
    tool, go_tool, source = sys.argv[1], sys.argv[2], os.path.abspath(sys.argv[3])
    files, judge = build(source, folder)
    start, size = text_of(judge)
    rng = random.Random(number)
    asked = [f"0x{start + rng.randrange(size):x}" for _ in range(count)]
    stripped = build is stripped_go
    symbols = Symbols(judge)
    frames = list(ours(go_tool if stripped else tool, files, "\n".join(asked) + "\n"))
    a, b = frames, list(theirs(judge, "\n".join(asked) + "\n", folder))
    if stripped:
        # Padding is its function's in Go's table, and nobody's in debug information.
        a, b = [in_table(x) for x in a], [in_table(x) for x in b]
        a = [q if not q[-1][0] else p for p, q in zip(a, b)]
    if build in (dwz, dwz_single):
        # These two name the function itself as debug information does, not as the linker.
        frames = list(ours(tool, ["--debug-names", *files], "\n".join(asked) + "\n"))
    yield "llvm-symbolizer", count, sum(len(q) > 1 for q in b), (
        compare(asked, a, b, same, symbols) if len(b) == count else [(x, None, None) for x in asked]
    )
    doubted = set(asked)
    for name, answers, equal, path, most in further_judges(build, files, judge, brief):
        some = asked[:most]
        b = list(answers(path, "\n".join(some) + "\n", folder))
        wrong = (
            compare(some, frames, b, equal, symbols)
            if len(b) == len(some)
            else [(x, None, None) for x in some]
        )
        if name == "gdb":
            doubted = {w[0] for w in wrong}
        if name == "eu-addr2line" and len(wrong) <= len(some) // 20:
            # It takes another of two calls that share an address, and gives a frame more where a
            # cold part's entry has no name.
            print(
                f"# eu-addr2line alone, against the three others: "
                f"{len(wrong) - len([w for w in wrong if w[0] in doubted])}"
            )
            wrong = [w for w in wrong if w[0] in doubted]
        yield name, len(some), 0, wrong


def main():
    count, which = int(sys.argv[4]), sys.argv[5:]
    if which == ["quick"]:
        count = {"full": 2000, "all": 6000}.get(DEPTH, count)
    elif DEPTH == "full":
        count = min(count, 1000)
    if not shutil.which("llvm-symbolizer"):
        print("1..0 # SKIP no llvm-symbolizer: install llvm")
        return
    quick = [c for c in CASES if c[0] in QUICK]
    others = [c for c in CASES if c[0] not in QUICK]
    cases = {"quick": quick, "others": others}[which[0]] if which else CASES
    brief = which == ["quick"] and DEPTH == "fast"
    print(f"1..{len(cases)}")
    failed = total = differ = 0

    def case(number, about):
        _, needs, build = about
        if not shutil.which(needs):
            return None
        with tempfile.TemporaryDirectory() as folder:
            return list(judged(number, build, folder, count, brief))

    # Compilers take most of the time, each one processor.
    pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
    numbers = range(1, len(cases) + 1)
    for number, (name, needs, _), found in zip(numbers, cases, pool.map(case, numbers, cases)):
        if found is None:
            print(f"ok {number} - {name} # SKIP no {needs}")
            continue
        bad = [f for f in found if len(f[3]) > f[1] // 1000]
        failed += bool(bad)
        total += sum(f[1] for f in found)
        differ += sum(len(f[3]) for f in found)
        said = "; ".join(
            f"{n} addresses by {judge}, {len(wrong)} differ" for judge, n, _, wrong in found
        )
        print(
            f"{'not ok' if bad else 'ok'} {number} - {name}: {said}; {found[0][2]} inlined",
            flush=True,
        )
        for judge, _, _, wrong in found:
            for difference in wrong[:3]:
                print(f"# {judge}: {difference}")
    print(f"# {total - differ} of {total} equal")
    sys.exit(failed > 0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as ONCE.place:
        main()
