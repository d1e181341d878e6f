#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""profile-itself.py PROGRAM ANDIRON: the example's profile has the example's work in it."""

import json
import os
import subprocess
import sys
import tempfile

PROGRAM, ANDIRON = sys.argv[1:]

print("1..1")
if os.geteuid() != 0:
    print("ok 1 # SKIP needs root: run it by `sudo ./check`")
    sys.exit(0)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "itself.pb.gz")
    ran = subprocess.run([PROGRAM, "2", path], capture_output=True, text=True, check=False)
    print(f"# exit status {ran.returncode} {ran.stderr}")
    report = subprocess.run(
        [ANDIRON, "report", "--json", path], capture_output=True, text=True, check=True
    )
hottest = json.loads(report.stdout)["by_self"][0]
print(f"# {hottest}")
ok = ran.returncode == 0 and hottest["function"] == "work"
print(f"{'ok' if ok else 'not ok'} 1 - the hottest function is its work")
sys.exit(not ok)
