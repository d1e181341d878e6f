#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sample.py SAMPLE PLUGIN: the example samples a process that computes."""

import os
import subprocess
import sys

SAMPLE, PLUGIN = sys.argv[1:]

print("1..1")
if os.geteuid() != 0:
    print("ok 1 # SKIP needs root: run it by `sudo ./check`")
    sys.exit(0)
busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
try:
    ran = subprocess.run(
        [SAMPLE, PLUGIN, str(busy.pid), "2"], capture_output=True, text=True, check=False
    )
finally:
    busy.kill()
    busy.wait()
for line in (ran.stdout + ran.stderr).splitlines()[:20]:
    print(f"# {line[:200]}")
stacks = [line.split() for line in ran.stdout.splitlines()]
whole = [s for s in stacks if int(s[0]) > 0 and any("python" in f and "+0x" in f for f in s[1:])]
ok = ran.returncode == 0 and len(whole) > 0
print(f"{'ok' if ok else 'not ok'} 1 - stacks lead into the program")
sys.exit(not ok)
