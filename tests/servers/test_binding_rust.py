#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""host-abi/bindings/rust: the program in binding-rust does the work, and speaks TAP."""

import os
import sys

from pyroscope import Skip, get

try:
    folder = get("binding-rust")
except Skip as reason:
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)
os.environ["EXAMPLE"] = f"{folder}/example"
program = f"{folder}/binding-rust"
os.execv(program, [program])
