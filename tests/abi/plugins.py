#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""plugins.py FILE.so…: what our own plugins keep to besides the ABI.

No thread-local variable, and no global one that can be written to.
"""

import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def faults(path):
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
