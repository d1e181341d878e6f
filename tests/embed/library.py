#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""library.py LIBANDIRON.so embed.h: what the library's file must be.

It exports the functions of its header and nothing else, at most 15; needs the C library and zlib;
has no thread-local storage; is bound at load, and never unloaded. Its size is printed, without
symbols.
"""

import os
import re
import subprocess
import sys
import tempfile

MOST_FUNCTIONS = 15
MOST_BYTES = 400 * 1024
LIBRARY, HEADER = sys.argv[1:]
failed = False


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def judge(ok, what):
    global failed
    failed |= not ok
    judge.n += 1
    print(f"{'ok' if ok else 'not ok'} {judge.n} - {what}")


judge.n = 0
with open(HEADER, encoding="utf-8") as header:
    declared = set(re.findall(r"^ANDIRON_EXPORT [^(;]*?(\w+)\(", header.read(), re.M))
symbols = [line.split() for line in run("nm", "-D", "--defined-only", LIBRARY).splitlines()]
exported = {s[2].split("@")[0] for s in symbols if s[1] != "A"}
judge(exported == declared, f"exports what its header has: {sorted(exported ^ declared) or 'all'}")
judge(len(exported) <= MOST_FUNCTIONS, f"{len(exported)} functions")
dynamic = run("readelf", "-dW", LIBRARY)
needed = re.findall(r"NEEDED.*\[(\w+)", dynamic)
judge(set(needed) <= {"libc", "libm", "libz", "ld"}, f"needs {needed}")
judge("NODELETE" in dynamic and "NOW" in dynamic, "is bound at load, and stays")
judge(" TLS " not in run("readelf", "-lW", LIBRARY), "has no thread-local storage")
with tempfile.TemporaryDirectory() as folder:
    stripped = os.path.join(folder, "stripped.so")
    run("strip", "-o", stripped, LIBRARY)
    size = os.path.getsize(stripped)
judge(size <= MOST_BYTES, f"{size} bytes without symbols")
print(f"1..{judge.n}")
sys.exit(failed)
