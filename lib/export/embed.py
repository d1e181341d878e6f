#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes C of a page: embed.py PAGE.html PAGE.c HEADER NAME [connect-src]

The header declares the constants. The page is NAME; if it has data, it is cut
where they belong, into NAME_head and NAME_tail. Its Content-Security-Policy gets
the hashes of its own script and style, so that nothing else in it can ever run,
and what it may connect to: nothing, unless that is given.
"""

import base64
import hashlib
import os
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
    source, target, header, name = sys.argv[1:5]
    page = open(source, encoding="utf-8").read()
    script = re.search(r"<script>(.*?)</script>", page, re.S).group(1)
    style = re.search(r"<style>(.*?)</style>", page, re.S).group(1)
    policy = (
        f"default-src 'none'; script-src {source_hash(script)}; style-src-elem "
        f"{source_hash(style)}; "
        "style-src-attr 'none'; base-uri 'none'; form-action 'none'"
    )
    policy += "".join(f"; connect-src {place}" for place in sys.argv[5:])
    parts = page.replace("{{CSP}}", policy).split("{{DATA}}")
    names = [name] if len(parts) == 1 else [name + "_head", name + "_tail"]
    with open(target, "w", encoding="utf-8") as out:
        out.write(
            "/* SPDX-License-Identifier: Apache-2.0 */\n"
            f"/* Made from {os.path.basename(sys.argv[1])} by embed.py. */\n"
        )
        out.write(f'#include "{header}"\n\n')
        out.write("\n".join(c_string(*part) for part in zip(names, parts)))


main()
