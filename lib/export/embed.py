#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes C of the flame graph's page: embed.py flame.html flame-page.c

The page is cut where the data belong, and its Content-Security-Policy gets the
hashes of its own script and style, so that nothing else in it can ever run.
"""

import base64
import hashlib
import re
import sys


def source_hash(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def c_string(name, text):
    lines = [f"const char {name}[] ="]
    for line in text.splitlines(keepends=True):
        escaped = (
            line.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?").replace("\n", "\\n")
        )
        lines.append('\t"' + escaped + '"')
    return "\n".join(lines) + ";\n"


def main():
    page = open(sys.argv[1], encoding="utf-8").read()
    script = re.search(r"<script>(.*?)</script>", page, re.S).group(1)
    style = re.search(r"<style>(.*?)</style>", page, re.S).group(1)
    policy = (
        f"default-src 'none'; script-src {source_hash(script)}; style-src-elem "
        f"{source_hash(style)}; "
        "style-src-attr 'none'; base-uri 'none'; form-action 'none'"
    )
    head, tail = page.replace("{{CSP}}", policy).split("{{DATA}}")
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(
            '/* SPDX-License-Identifier: Apache-2.0 */\n/* Made from flame.html by embed.py. */\n'
        )
        out.write('#include "export/flame.h"\n\n')
        out.write(c_string("flame_page_head", head) + "\n" + c_string("flame_page_tail", tail))


main()
