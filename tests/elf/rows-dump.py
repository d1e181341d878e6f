#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rows-dump.py ELF-ROWS-DUMP: the rows of this machine's C library, and what they cost."""

import json
import os
import platform
import re
import subprocess
import sys

from tap import SANITIZED, case, main, run

DUMP = os.path.abspath(sys.argv[1])


@case
def rules_of_unwinding_are_shown():
    """The rows of a file are printed in order, and as JSON what they cost: some two bytes a row."""
    libc = (
        subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=True)
        .stdout.split("=> ")[1]
        .split()[0]
    )
    plain = (
        "rsp+8  fp kept  ra CFA-8" if platform.machine() == "x86_64" else "sp+0  fp kept  ra x30"
    )
    text = (
        run(DUMP, libc)
        .expect(0, "rows ", "from .eh_frame", plain, "outermost frame", "signal frame")
        .out
    )
    figures = json.loads(run(DUMP, "--json", libc).expect(0).out)
    rows = [line for line in text.splitlines() if re.match("[0-9a-f]{16}  ", line)]
    assert len(rows) == figures["rows"] == sum(figures["source"].values()) > 1000, figures
    assert rows == sorted(rows) and figures["broken"] == 0, figures
    assert (
        figures["bytes"] == round(figures["bytes_per_row"] * figures["rows"])
        and 2 < figures["bytes_per_row"] < 2.4
    ), figures
    # A sanitizer has a heap of its own, which nobody can ask for its size.
    assert figures["seconds"] > 0 and (SANITIZED or 0 < figures["peak_heap"] < 2 << 20), figures
    run(DUMP, __file__).expect(1, "not an ELF file")
    run(DUMP, libc, "/nowhere").expect(1, "cannot be opened")
    assert run("sh", "-c", f"'{DUMP}' {libc} >/dev/full").code == 1


main()
