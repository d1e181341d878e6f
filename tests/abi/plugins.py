#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""plugins.py FILE.so…: what every plugin file must be.

One exported symbol, andiron_plugin_v1; no undefined symbol besides libc's and
those of its declared libraries; none of what makes loading run code or take
static thread-local storage; all relocations resolved at load.
"""

import re
import subprocess
import sys

ALLOWED = re.compile(
    r"^(libc|libm|libresolv|libelf|liblzma|libz|libzstd|libbpf|libcurl|libjansson|libmicrohttpd"
    r"|libprotobuf-c|libyaml-0|ld-linux-[\w-]+)\.so"
)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def faults(path):
    dynamic = run("readelf", "-dW", path)
    exported = [line.split()[-1] for line in run("nm", "-D", "--defined-only", path).splitlines()]
    if exported != ["andiron_plugin_v1"]:
        yield f"exports {exported}"
    for library in re.findall(r"NEEDED.*\[(.*)\]", dynamic):
        if not ALLOWED.match(library):
            yield f"needs {library}"
    for flag in ("STATIC_TLS", "TEXTREL"):
        if flag in dynamic:
            yield f"has {flag}"
    if "NOW" not in dynamic:
        yield "is not bound at load"
    if " TLS " in run("readelf", "-lW", path):
        yield "has a thread-local segment"
    for name in run("nm", path).splitlines():
        if re.search(r" [dDbB] ", name) and not re.search(
            r"completed\.0|__dso_handle|_DYNAMIC|_GLOBAL_OFFSET_TABLE_|__TMC_END__|__bss_start"
            r"|_edata|_end|data_start|__frame_dummy|frame_dummy|__do_global_dtors|\.rel\.ro",
            name,
        ):
            yield from writable(path, name)


def writable(path, line):
    """Global data that is not constant after relocation."""
    symbol = line.split()[-1]
    address = int(line.split()[0], 16)
    for section in run("readelf", "-SW", path).splitlines():
        match = re.match(
            r"\s*\[ *\d+\] (\.data|\.bss)\s+\w+\s+([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", section
        )
        if match and int(match[2], 16) <= address < int(match[2], 16) + int(match[3], 16):
            yield f"has the writable global {symbol}"


failed = False
print(f"1..{len(sys.argv) - 1}")
for number, file in enumerate(sys.argv[1:], 1):
    found = list(faults(file))
    failed |= bool(found)
    print(f"{'not ok' if found else 'ok'} {number} - {file.split('/')[-1]}")
    for fault in found:
        print(f"# {fault}")
sys.exit(failed)
