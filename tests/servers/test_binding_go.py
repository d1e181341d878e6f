#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""host-abi/bindings/go: the program in binding-go does the work, and speaks TAP."""

import os
import sys

from pyroscope import Skip, get

try:
    program, os.environ["EXAMPLE"] = get("binding-go"), get("example-go")
except Skip as reason:
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)
os.execv(program, [program])
