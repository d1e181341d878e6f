#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py OUTPUT TEMPLATE…: the templates of new projects as C, a row for each file."""

import os
import sys


def c_string(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
    return "\n".join(f'\t\t"{line}\\n"' for line in escaped.splitlines())


with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write("/* SPDX-License-Identifier: Apache-2.0 */\n")
    out.write("/* Made from templates/ by embed.py. */\n")
    out.write('#include "cli/kit/template.h"\n\nconst struct kit_template kit_templates[] = {\n')
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as template:
            name = os.path.basename(path).removesuffix(".in")
            out.write(f'\t{{\n\t\t"{name}",\n{c_string(template.read())},\n\t}},\n')
    out.write("\t{0},\n};\n")
