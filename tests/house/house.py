#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""house.py SOURCE_ROOT: the laws of the house that a machine can check.

Each law is a function that yields its violations; TAP comes out. The include
law is the table of ARCHITECTURE.md: who may include what. Headers of ours are included by their
folder.
"""

import fnmatch
import os
import re
import subprocess
import sys

ROOT = sys.argv[1]

# Libraries by the header, or the folder of headers, that stands for them.
LIBRARIES = {
    "curl": "curl",
    "jansson.h": "jansson",
    "libelf.h": "libelf",
    "gelf.h": "libelf",
    "lzma.h": "lzma",
    "zlib.h": "zlib",
    "zstd.h": "zstd",
    "zstd_errors.h": "zstd",
    "protobuf-c": "protobuf-c",
    "bpf": "libbpf",
    "libiberty": "libiberty",
    "demangle.h": "libiberty",
    "yaml.h": "yaml",
    "gnutls": "gnutls",
    "microhttpd.h": "microhttpd",
    "nghttp2/nghttp2.h": "nghttp2",
    "collectd": "collectd",
    "andiron": "host-abi/include",
}
# Where headers are looked for: source_include of meson.build, and bpf/ for the kernel programs.
ROOTS = ["bpf/include", "lib", "host-abi", "plugins", "", "bpf", "tests/golden"]
GENERATED = ("-page.h", ".pb-c.h")

# A room is a folder of C files; what one reads at a glance.
ROOM_FILES = 27

# Callbacks whose shape a library decides.
FOREIGN = {
    ("lib/http-server/http1.c", "answer"),
    ("lib/grpc-server/call.c", "read_answer"),
    ("lib/grpc-server/call.c", "on_header"),
    ("lib/grpc-server/tests/test-grpc-pair.c", "read_data"),
    ("lib/grpc-server/tests/test-grpc-pair.c", "on_header"),
}

FILE_LINES, FUNCTION_LINES, COMPLEXITY = 600, 80, 15
COLUMNS, GLOSSARY_LINES = 100, 40

# Words that no file is named by, since the field has another one; names that need a second word.
GIVEN_UP = set(
    """advance again alone apart behind books change early ends given held later left life limbo
    look meanwhile mirror news nobody onward place rulebook said seat seen stale stranger tell told
    unwanted verdict whoever""".split()
)
TOO_BARE = {
    "caller",
    "compiled",
    "copies",
    "heap",
    "image",
    "machine",
    "spaces",
    "times",
    "views",
    "walks",
}
BANNED = re.compile(
    r"(?<![\w>.])(sprintf|vsprintf|strcpy|strcat|strtok|atoi|atol|gets|alloca"
    r"|system|popen|sleep|usleep|nanosleep)\s*\("
)
MARKS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|not implemented|placeholder", re.I)
SOURCE = re.compile(r"\.(c|h|py|go|rs|sh|build)$|^(check|quickstart)$")


def tracked():
    names = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
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
PAGES = [f for f in TEXT if f.endswith(".md")]


def law():
    """The table of ARCHITECTURE.md: component → whose headers it may include besides its own."""
    section = TEXT["ARCHITECTURE.md"].split("## Components")[1].split("### Rooms")[0]
    rows = re.findall(r"^\| `([\w/-]+)` \| [^|]+ \| ([^|]+) \|$", section, re.M)
    table = {}
    for name, allowed in rows:
        allowed = re.sub(
            r"(\w+)/\{([^}]*)\}",
            lambda m: ", ".join(f"{m[1]}/{n}" for n in m[2].split(",")),
            allowed,
        )
        table[name] = {"host-abi/include" if n == "ABI" else n for n in allowed.split(", ")} - {"–"}
    return table


LAW = law()


def component(file):
    """The component of the law that a file belongs to."""
    best = [f for f in LAW if file.startswith(f + "/")]
    return max(best, key=len) if best else None


def is_test(file):
    """Unit tests stand in a folder of their own beside what they test."""
    return "/tests/" in file or file.startswith("tests/")


def included(file, path):
    """The file of ours that an include means, or None."""
    for root in ROOTS + ([os.path.dirname(file)] if is_test(file) else []):
        found = os.path.normpath(os.path.join(root, path))
        if found in TEXT:
            return found
    return None


def law_of_includes():
    """Arrows of the include graph go only where the law allows."""
    for file in C_FILES:
        home = component(file)
        if home is None or is_test(file):
            continue
        for kind, path in re.findall(r'^#include ([<"])([^">]+)[">]', TEXT[file], re.M):
            if kind == "<":
                needs = LIBRARIES.get(path, LIBRARIES.get(path.split("/")[0]))
            elif path.endswith(".skel.h"):
                needs = "skeleton"
            else:
                found = included(file, path)
                if found is None and not path.endswith(GENERATED):
                    yield f'{file} includes "{path}", which is nowhere'
                needs = component(found) if found else None
                if found and is_test(found):
                    yield f'{file} includes "{path}", which is a test\'s'
                if found and "/" not in path and not path.endswith(".bpf.c"):
                    yield f'{file} includes "{path}" without its folder'
            if needs is not None and needs not in LAW[home] | {home}:
                yield f"{file} may not include {path}"


def rooms():
    """Folders stay small, and ARCHITECTURE.md names each of them."""
    page = TEXT["ARCHITECTURE.md"]
    files = {}
    for file in C_FILES:
        if component(file):
            files.setdefault(os.path.dirname(file), []).append(file)
    for room, inside in sorted(files.items()):
        if len(inside) > ROOM_FILES:
            yield f"{room} holds {len(inside)} files, {ROOM_FILES} are allowed"
        home, short = component(inside[0]), os.path.basename(room)
        if (
            not room.endswith("/tests")
            and f"`{room}/`" not in page
            and f"`{room}`" not in page
            and f"`{short}/`" not in page
        ):
            yield f"{room} is not named by ARCHITECTURE.md"
    for file in C_FILES:
        if component(file) and os.path.basename(file).startswith("test-") and "/tests/" not in file:
            yield f"{file} is a test and stands beside what it tests, not in tests/"


def only_plugin_speaks():
    """Only plugin.c and options.c of a plugin's folder include the ABI's verbs."""
    for file in C_FILES:
        if os.path.join(os.path.dirname(file), "plugin.c") not in TEXT:
            continue
        base = os.path.basename(file)
        if base in ("plugin.c", "options.c", "options.h"):
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
    """No function over its budget of lines or complexity (modified McCabe: a switch is one
    decision)."""
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
        for name, params in re.findall(
            r"^[a-z][\w \*]*?\b(\w+)\(([^(){};]*)\)\n\{", TEXT[file], re.M
        ):
            if params.count(",") > 5 and (file, name) not in FOREIGN:
                yield f"{file}: {name} takes {params.count(',') + 1}"


KERNEL_LICENCE = "GPL-2.0-only OR BSD-2-Clause"
DEBIAN_LICENCES = "packaging/debian/copyright"


def licences():
    """Every source opens with its licence, and Debian's list has each that is another than most."""
    listed = re.findall(r"^Files: ((?:.*\n)(?: .*\n)*)", TEXT[DEBIAN_LICENCES], re.M)[1].split()
    for file in TEXT:
        if not SOURCE.search(os.path.basename(file)):
            continue
        head = "\n".join(TEXT[file].split("\n")[:4])
        if "SPDX-License-Identifier:" not in head:
            yield f"{file} has no SPDX line"
        elif file.endswith(".bpf.c") and KERNEL_LICENCE not in head:
            yield f"{file}: kernel programs are {KERNEL_LICENCE}"
        elif file.endswith((".c", ".h")):
            other = any(fnmatch.fnmatch(file, pattern) for pattern in listed)
            if (KERNEL_LICENCE in head) != other:
                yield f"{file}: {DEBIAN_LICENCES} has another licence for it"


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
    """No test sleeps where it could wait for a condition: tests/scenario/waiting.py does, and
    benchmarks, whose load has a rate."""
    for file in TEXT:
        if file.startswith(("tests/house/", "tests/scenario/waiting.py")):
            continue
        if file.startswith("tests/") and file.endswith((".py", ".sh", ".go")):
            for number, line in enumerate(TEXT[file].split("\n"), 1):
                if re.search(r"\b(time\.sleep|^\s*sleep)\b", line) and not (
                    "poll" in line and file.startswith("tests/bench/")
                ):
                    yield (
                        f"{file}:{number}: {line.strip()[:80]} (wait with until of "
                        f"tests/scenario/waiting.py)"
                    )


def links():
    """Relative links of every page lead to a file, and to a heading where they name one."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", TEXT[page]):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            found = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(os.path.join(ROOT, found)):
                yield f"{page} links to {target}, which is nowhere"
            elif anchor and anchor not in headings(found):
                yield f"{page} links to {target}, which has no such heading"


def headings(page):
    """The anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", TEXT.get(page, ""), re.M)
    return {re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in titles}


def prose():
    """Pages are no wider than the law says, but for tables, links and what is shown as it
    stands."""
    for page in PAGES:
        shown = False
        for number, line in enumerate(TEXT[page].split("\n"), 1):
            shown ^= line.lstrip().startswith("```")
            text = re.sub(r"\]\([^)]*\)", "]", line)
            if len(text) > COLUMNS and not shown and not line.startswith(("|", "    ")):
                yield f"{page}:{number}: {len(text)} columns, {COLUMNS} are allowed"


def code_width():
    """Sources are no wider than the law says; a tab ends at the next multiple of eight."""
    for file in TEXT:
        if file.endswith((".c", ".h", ".py")):
            for number, line in enumerate(TEXT[file].split("\n"), 1):
                if len(line.expandtabs(8)) > COLUMNS:
                    yield (
                        f"{file}:{number}: {len(line.expandtabs(8))} columns, {COLUMNS} are "
                        f"allowed"
                    )


def decisions():
    """Every decision says its status at once, and stands in the index."""
    index = TEXT["docs/decisions/README.md"]
    for page in PAGES:
        name = os.path.basename(page)
        if not page.startswith("docs/decisions/") or name == "README.md":
            continue
        head = TEXT[page].split("\n")[:5]
        if not any(line.startswith("- Status: ") for line in head):
            yield f"{page} has no status in its first five lines"
        if f"]({name})" not in index:
            yield f"docs/decisions/README.md does not name {name}"


def where():
    """docs/where.md tells the truth: each file defines the function beside it."""
    rows = re.findall(r"^\| [^|]+ \| `([^`]+)` \| `(\w+)` \|$", TEXT["docs/where.md"], re.M)
    if len(rows) < 10:
        yield "docs/where.md has no rows that can be read"
    for file, function in rows:
        if file not in TEXT:
            yield f"docs/where.md names {file}, which is nowhere"
        elif not re.search(rf"^(?![ \t#*/])[^\n;]*\b{function}\(", TEXT[file], re.M):
            yield f"docs/where.md: {file} does not define {function}"


def words():
    """Files are named in the field's words, or in ours of docs/glossary.md: none by a word that
    was given up."""
    if TEXT["docs/glossary.md"].count("\n") > GLOSSARY_LINES:
        yield f"docs/glossary.md is longer than {GLOSSARY_LINES} lines"
    for file in C_FILES:
        stem = os.path.basename(file).rsplit(".", 1)[0].removeprefix("test-").split(".")[0]
        for word in GIVEN_UP.intersection(stem.split("-")):
            yield f"{file}: \"{word}\" says nothing to a stranger (docs/glossary.md)"
        if stem in TOO_BARE:
            yield f"{file}: say what kind of {stem}"


LAWS = [
    law_of_includes,
    rooms,
    only_plugin_speaks,
    file_sizes,
    functions,
    parameters,
    licences,
    essays,
    banned,
    marks,
    sleeps,
    links,
    prose,
    code_width,
    decisions,
    where,
    words,
]

print(f"1..{len(LAWS)}")
failed = False
for number, law in enumerate(LAWS, 1):
    violations = list(law())
    failed |= bool(violations)
    print(f"{'not ok' if violations else 'ok'} {number} - {law.__doc__.strip()}")
    for violation in violations[:40]:
        print(f"# {violation}")
sys.exit(failed)
