#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""house.py SOURCE_ROOT: the laws of the house that a machine can check.

Each law is a function that yields its violations; TAP comes out. The include
law is the table of ARCHITECTURE.md: who may include what.
"""
import os
import re
import subprocess
import sys

ROOT = sys.argv[1]

# Folder → the include roots that it may use besides its own. Libraries are
# named by their first path element ("base/str.h" → base); "andiron" is the
# ABI; what is neither ours nor listed here must be libc's or the kernel's.
LAW = {
    "host-abi/include": set(),
    "lib/base": set(),
    "lib/abi": {"andiron", "base"},
    "lib/proc": {"base"},
    "lib/elf": {"base", "libelf", "gelf", "lzma", "zlib", "bpf"},
    "lib/unwind": {"base", "elf", "bpf"},
    "lib/dwarf": {"base", "elf"},
    "lib/pprof": {"base", "zlib", "protobuf-c"},
    "lib/http": {"base", "curl"},
    "lib/debuginfod": {"base", "http"},
    "lib/client": {"andiron", "abi", "base", "http"},
    "lib/debuginfo": {"base", "elf", "http", "pprof"},
    "lib/export": {"andiron", "abi", "base", "pprof"},
    "bpf": {"andiron", "bpf", "base"},
    "host-abi/host": {"andiron", "base", "abi", "jansson"},
    "host-abi/cli": {"andiron", "base", "abi", "host", "pprof", "elf", "unwind", "proc", "http", "debuginfo", "jansson", "bpf"},
    "plugins/process": {"andiron", "abi", "base", "proc", "bpf", "skel", "process"},
    "plugins/ebpf": {"andiron", "abi", "base", "elf", "unwind", "proc", "bpf", "skel", "sampler"},
    "plugins/relabel": {"andiron", "abi", "base"},
    "plugins/symbolize/fetcher": {"base", "debuginfod"},
    "plugins/symbolize": {"andiron", "abi", "base", "dwarf", "elf", "libiberty"},
    "plugins/file": {"andiron", "abi", "base", "pprof", "export"},
    "plugins/http": {"andiron", "abi", "base", "microhttpd"},
    "k8s-discovery": {"andiron", "abi", "base", "http", "client", "jansson", "yaml"},
    "pyroscope-push": {"andiron", "abi", "base", "elf", "http", "client", "debuginfo", "pprof", "export", "zlib"},
}
# Libraries by the header that stands for them.
LIBRARIES = {"curl": "curl", "jansson.h": "jansson", "libelf.h": "libelf", "gelf.h": "gelf", "elf.h": None, "lzma.h": "lzma",
             "zlib.h": "zlib", "protobuf-c": "protobuf-c", "bpf": "bpf", "libiberty": "libiberty",
             "demangle.h": "libiberty", "yaml.h": "yaml", "microhttpd.h": "microhttpd"}
OURS = {"base", "abi", "debuginfo", "debuginfod", "dwarf", "elf", "pprof", "http", "client", "export", "proc", "unwind", "host", "andiron"}

# Callbacks whose shape a library decides.
FOREIGN = {("plugins/http/server.c", "answer")}

FILE_LINES, FUNCTION_LINES, COMPLEXITY = 600, 80, 15
BANNED = re.compile(r"(?<![\w>.])(sprintf|vsprintf|strcpy|strcat|strtok|atoi|atol|gets|alloca|system|popen|sleep|usleep|nanosleep)\s*\(")
MARKS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|not implemented|placeholder", re.I)
SOURCE = re.compile(r"\.(c|h|py|go|sh|build)$|^(check|quickstart)$")


def tracked():
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    return [n for n in names if n and os.path.isfile(os.path.join(ROOT, n))]


FILES = tracked()
TEXT = {}
for file in FILES:
    try:
        with open(os.path.join(ROOT, file), encoding="utf-8") as handle:
            TEXT[file] = handle.read()
    except UnicodeDecodeError:
        continue
C_FILES = [f for f in TEXT if f.endswith((".c", ".h"))]


def folder(file):
    """The folder of the law that a file belongs to."""
    best = [f for f in LAW if file.startswith(f + "/")]
    return max(best, key=len) if best else None


def include_root(file, kind, path):
    """What an include stands for in the law; None: libc, kernel or the file's own folder."""
    head = path.split("/")[0]
    if kind == "<":
        return LIBRARIES.get(path, LIBRARIES.get(head, "andiron" if head == "andiron" else None))
    if head in OURS and "/" in path:
        return head
    if path.endswith(".skel.h"):
        return "skel"
    return "beside:" + path


def law_of_includes():
    """Arrows of the include graph go only where the law allows."""
    for file in C_FILES:
        home = folder(file)
        if home is None:
            continue
        own = home.split("/")[-1] if home.startswith("lib/") else {"host-abi/host": "host", "host-abi/include": "andiron"}.get(home)
        for kind, path in re.findall(r'^#include ([<"])([^">]+)[">]', TEXT[file], re.M):
            root = include_root(file, kind, path)
            if root is None or root == own:
                continue
            if root.startswith("beside:"):
                beside = [os.path.join(os.path.dirname(file), path), os.path.join(home, path)]
                if any(b in TEXT for b in map(os.path.normpath, beside)):
                    continue
                if {"bpf", "skel"} & LAW[home] and os.path.join("bpf", path) in TEXT:
                    continue
                if path.endswith(("-page.h", ".pb-c.h", "config.h")):
                    continue
                yield f"{file} includes \"{path}\", which is neither beside it nor a library's"
            elif root not in LAW[home] and not (root == "zlib" and "zlib" in LAW[home]):
                if os.path.basename(file).startswith("test-"):
                    continue
                yield f"{file} may not include {path}"


def only_plugin_speaks():
    """Only plugin.c and options.c of a plugin's folder include the ABI's verbs."""
    for file in C_FILES:
        if os.path.join(os.path.dirname(file), "plugin.c") not in TEXT:
            continue
        base = os.path.basename(file)
        if base in ("plugin.c", "options.c", "options.h") or base.startswith("test-"):
            continue
        if re.search(r"#include <andiron/(plugin|component)\.h>", TEXT[file]):
            yield f"{file} speaks the ABI's verbs; that is plugin.c's"
    for file in C_FILES:
        if file.endswith("/plugin.c") and TEXT[file].count("\n") > 200:
            yield f"{file} has {TEXT[file].count(chr(10))} lines, 200 are allowed"


def file_sizes():
    """No source file over its budget."""
    for file in C_FILES:
        lines = TEXT[file].count("\n")
        if lines > FILE_LINES:
            yield f"{file}: {lines} lines"


def functions():
    """No function over its budget of lines or complexity (modified McCabe: a switch is one decision)."""
    sources = [f for f in C_FILES if f.endswith(".c") and not f.endswith(".bpf.c")]
    out = subprocess.run(["pmccabe"] + sources, cwd=ROOT, capture_output=True, text=True).stdout
    for line in out.splitlines():
        parts = line.split("\t")
        if len(parts) < 6:
            continue
        complexity, lines, where = int(parts[0]), int(parts[4]), parts[5]
        if complexity > COMPLEXITY:
            yield f"{where}: complexity {complexity}"
        if lines > FUNCTION_LINES:
            yield f"{where}: {lines} lines"


def parameters():
    """No function takes more than six parameters."""
    for file in C_FILES:
        for name, params in re.findall(r"^[a-z][\w \*]*?\b(\w+)\(([^(){};]*)\)\n\{", TEXT[file], re.M):
            if params.count(",") > 5 and (file, name) not in FOREIGN:
                yield f"{file}: {name} takes {params.count(',') + 1}"


def licences():
    """Every source opens with its licence."""
    for file in TEXT:
        if not SOURCE.search(os.path.basename(file)):
            continue
        head = "\n".join(TEXT[file].split("\n")[:4])
        if "SPDX-License-Identifier:" not in head:
            yield f"{file} has no SPDX line"
        elif file.endswith(".bpf.c") and "GPL-2.0-only OR BSD-2-Clause" not in head:
            yield f"{file}: kernel programs are GPL-2.0-only OR BSD-2-Clause"


def essays():
    """Every C file says at its top what it is."""
    for file in C_FILES:
        if not re.match(r"/\* SPDX[^\n]*\n/\*", TEXT[file]):
            yield f"{file} does not open with what it is"


def banned():
    """Functions that the style forbids."""
    for file in C_FILES:
        text = re.sub(r"/\*.*?\*/|\"(\\.|[^\"\\])*\"|//[^\n]*", "", TEXT[file], flags=re.S)
        for match in BANNED.finditer(text):
            yield f"{file} calls {match.group(1)}"


def marks():
    """Words that mark something unfinished."""
    for file in TEXT:
        if file.startswith("tests/house/") or not SOURCE.search(os.path.basename(file)):
            continue
        for number, line in enumerate(TEXT[file].split("\n"), 1):
            if MARKS.search(line):
                yield f"{file}:{number}: {line.strip()[:80]}"


def sleeps():
    """No test sleeps where it could wait for a condition: tests/scenario/waiting.py does, and benchmarks, whose load has a rate."""
    for file in TEXT:
        if file.startswith(("tests/house/", "tests/scenario/waiting.py")):
            continue
        if file.startswith("tests/") and file.endswith((".py", ".sh", ".go")):
            for number, line in enumerate(TEXT[file].split("\n"), 1):
                if re.search(r"\b(time\.sleep|^\s*sleep)\b", line) and not ("poll" in line and file.startswith("tests/bench/")):
                    yield f"{file}:{number}: {line.strip()[:80]} (wait with until of tests/scenario/waiting.py)"


LAWS = [law_of_includes, only_plugin_speaks, file_sizes, functions, parameters, licences, essays, banned, marks, sleeps]

print(f"1..{len(LAWS)}")
failed = False
for number, law in enumerate(LAWS, 1):
    violations = list(law())
    failed |= bool(violations)
    print(f"{'not ok' if violations else 'ok'} {number} - {law.__doc__.strip()}")
    for violation in violations[:40]:
        print(f"# {violation}")
sys.exit(failed)
