#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""grow.py STAMP DEPFILE FROM TO: the ABI's headers as a later version may have them.

Copies them from folder to folder; every struct that may grow, which is one that begins with
`uint32_t size`, has a tail. What is compiled against the copies must go on with those who were
compiled against the headers of today.
"""

import pathlib
import re
import sys

GROWING = re.compile(r"(struct andiron_\w+ \{\n\tuint32_t size;\n.*?\n)(\};)", re.S)
TAIL = "\tuint64_t tail_of_a_later_version[4];\n"
NEEDED = {"andiron_batch", "andiron_targets", "andiron_host", "andiron_spawn", "andiron_plugin"}

stamp, depfile, source, to = map(pathlib.Path, sys.argv[1:])
to.mkdir(parents=True, exist_ok=True)
headers = sorted(source.glob("*.h"))
grown = set()
for header in headers:
    text = header.read_text()
    grown |= {m[1].split()[1] for m in GROWING.finditer(text)}
    (to / header.name).write_text(GROWING.sub(rf"\1{TAIL}\2", text))
if not NEEDED <= grown:
    sys.exit(f"{sorted(NEEDED - grown)} did not grow: do their structs look otherwise now?")
depfile.write_text(f"{stamp}: {' '.join(map(str, headers))}\n")
stamp.write_text("/* made by grow.py */\n")
