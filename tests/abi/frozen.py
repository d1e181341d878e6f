#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""frozen.py BASELINE NEWEST: the ABI's headers keep what those of the baseline have promised.

Every struct is in a library that is built once with each folder's headers, and gdb tells what the
compiler made of it: offset, size and type of each member, with the arguments of functions. A struct
that begins with its size may grow at its end; nothing else may change. Every macro that has a value
has the same. That a change is noticed is tried on copies.
"""

import functools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BASELINE, NEWEST = map(pathlib.Path, sys.argv[1:])
# A host in source form, which is no part of the ABI.
SOURCE = {"host-min.h", "host-min-table.h", "host-min-objects.h"}
STRUCT = re.compile(r"^struct (andiron_\w+) \{\n(\tuint32_t size;)?", re.M)
# Says which version it is.
VERSION = "ANDIRON_ABI_MINOR"


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def must(*command):
    ran = run(*command)
    if ran.returncode:
        sys.exit(f"{' '.join(map(str, command))}:\n{ran.stderr}")
    return ran.stdout


def headers(folder):
    return [h for h in sorted((folder / "andiron").glob("*.h")) if h.name not in SOURCE]


def structs(folder):
    """{name: whether it may grow}"""
    return {m[1]: bool(m[2]) for h in headers(folder) for m in STRUCT.finditer(h.read_text())}


def includes(folder):
    return "".join(f"#include <andiron/{h.name}>\n" for h in headers(folder))


def functions(folder):
    """Types of callbacks, and the functions of libandiron."""
    text = "".join(h.read_text() for h in headers(folder))
    return re.findall(r"^typedef [^;]*?\(\*(andiron_\w+)\)", text, re.M), re.findall(
        r"^ANDIRON_EXPORT [\w ]+[ *](andiron_\w+)\(", text, re.M
    )


def library(folder, scratch):
    """A library in which all of them are, as the compiler understands them."""
    source, made = scratch / "reach.c", scratch / "reach.so"
    callbacks, calls = functions(folder)
    reach = [f"struct {n} *of_{n};\n" for n in structs(folder)]
    reach += [f"{n} of_{n};\n" for n in callbacks]
    reach += [f"__typeof__({n}) *of_{n};\n" for n in calls]
    source.write_text(includes(folder) + "".join(reach))
    must("cc", "-g", "-shared", "-fPIC", "-I", folder, source, "-o", made)
    return made


@functools.cache
def layouts(folder):
    """{name: lines}: of a struct its members, each with offset, size and type, and its own size;
    of a function its type."""
    callbacks, calls = functions(folder)
    asks = [(n, f"ptype /o struct {n}") for n in structs(folder)]
    asks += [(n, f"ptype of_{n}") for n in callbacks + calls]
    words = [w for name, ask in asks for w in ("-ex", f"echo --- {name}\\n", "-ex", ask)]
    with tempfile.TemporaryDirectory() as scratch:
        made = library(folder, pathlib.Path(scratch))
        told = must("gdb", "-nx", "-batch", "-ex", "set width 0", *words, made)
    found = {}
    for part in told.split("--- ")[1:]:
        name, *lines = part.splitlines()
        found[name] = [" ".join(line.split()) for line in lines if line.strip(" }")]
        if not found[name]:
            sys.exit(f"gdb knows nothing of {name}")
    return found


def grows_from(was, now):
    """Whether all members are where they were; the last line is the size."""
    return now[: len(was) - 1] == was[:-1]


def changed_types(newest):
    """What is not as it was, a line each; empty if nothing is broken."""
    old, new = layouts(BASELINE), layouts(newest)
    may_grow = structs(BASELINE)
    broken = []
    for name, was in old.items():
        now = new.get(name, [])
        if now == was or (may_grow.get(name) and grows_from(was, now)):
            continue
        lost = [line for line in was if line not in now]
        broken.append(f"{name}: {lost or 'has more members, or others between'}")
    return "\n".join(broken)


def constants(folder):
    """{macro: value} of those that have one, as the compiler computes it."""
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "all.h"
        source.write_text(includes(folder))
        defined = must("cc", "-E", "-dM", "-I", folder, "-x", "c", source)
    found = dict(re.findall(r"^#define (ANDIRON_\w+) (.+)$", defined, re.M))
    return {name: value for name, value in found.items() if name != VERSION}


def changed_constants(newest):
    old, new = constants(BASELINE), constants(newest)
    return "".join(
        f"{name} was {value} and is {new.get(name, 'gone')}\n"
        for name, value in sorted(old.items())
        if new.get(name) != value
    )


def copy_with(scratch, header, old, new):
    """The newest headers with one change."""
    folder = pathlib.Path(scratch) / "copy"
    shutil.copytree(NEWEST, folder)
    path = folder / "andiron" / header
    text = path.read_text()
    if text.count(old) != 1:
        sys.exit(f"{header} has {old!r} {text.count(old)} times")
    path.write_text(text.replace(old, new))
    return folder


def judge(good, name, text=""):
    judge.n += 1
    judge.failed += not good
    print(f"{'ok' if good else 'not ok'} {judge.n} - {name}")
    for line in text.splitlines() if not good else []:
        print(f"# {line}")


def noticed(name, header, old, new, check=changed_types, breaks=True):
    with tempfile.TemporaryDirectory() as scratch:
        said = check(copy_with(scratch, header, old, new))
    judge(bool(said) == breaks, name, said or "nothing was noticed")


judge.n = judge.failed = 0
if not shutil.which("gdb"):
    print("1..0 # SKIP needs gdb: apt-get install gdb")
    sys.exit(0)
print("1..9")
TYPES, CONSTANTS = changed_types(NEWEST), changed_constants(NEWEST)
judge(not TYPES, f"{len(layouts(BASELINE))} types are as they were, or have grown", TYPES)
judge(not CONSTANTS, f"{len(constants(BASELINE))} values are as they were", CONSTANTS)
noticed(
    "a member in the middle is noticed",
    "component.h",
    "\tint32_t (*start)(",
    "\tint32_t (*pause)(void *self);\n\tint32_t (*start)(",
)
noticed(
    "another argument is noticed",
    "component.h",
    "(*drain)(void *self, int64_t deadline_ns)",
    "(*drain)(void *self, int32_t deadline_ns)",
)
noticed(
    "another argument of a callback is noticed",
    "status.h",
    "(*andiron_text_fn)(void *arg, const struct andiron_str *text)",
    "(*andiron_text_fn)(void *arg, struct andiron_str *text)",
)
noticed(
    "another argument of libandiron is noticed",
    "embed.h",
    "andiron_stop(struct andiron *a, int64_t deadline_ns",
    "andiron_stop(struct andiron *a, int32_t deadline_ns",
)
noticed(
    "a frozen struct that grows is noticed",
    "abi.h",
    "\tuint64_t len;\n",
    "\tuint64_t len, more;\n",
)
noticed(
    "another value is noticed",
    "component.h",
    "#define ANDIRON_EXPORT_RECEIVER 2u",
    "#define ANDIRON_EXPORT_RECEIVER 4u",
    changed_constants,
)
noticed(
    "a member at the end is allowed",
    "component.h",
    "(*resend)(void *self, const char *export_name);\n",
    "(*resend)(void *self, const char *export_name);\n\tvoid (*more)(void *self);\n",
    breaks=False,
)
sys.exit(judge.failed != 0)
