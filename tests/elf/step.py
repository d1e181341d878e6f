#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""step.py STEP SOURCE GO_SOURCE: static programs, run one instruction at a time, unwound at each
(step.c).

C with the system's C library, and with musl, which is mostly built without call-frame information;
both also stripped. And a program of Go. Every stack must reach the outermost frame; one in 2,000
may not. TAP comes out.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile

STEPS = 40000
# Between loading another stack pointer and the jump, longjmp has neither stack.
SHARE = 0.9995


def build(folder, source, go_source):
    """(name, path or None, why there is none)"""
    for compiler in "gcc", "musl-gcc":
        path = os.path.join(folder, compiler)
        if not shutil.which(compiler):
            yield compiler, None, f"there is no {compiler}"
            continue
        made = subprocess.run(
            [compiler, "-static", "-O2", "-o", path, source], capture_output=True, text=True
        )
        if made.returncode:
            yield compiler, None, f"{compiler} cannot link statically"
            continue
        subprocess.run(["strip", "-o", path + "-stripped", path], check=True)
        yield f"{compiler} -static", path, ""
        yield f"{compiler} -static, stripped", path + "-stripped", ""
    path = os.path.join(folder, "go")
    if not shutil.which("go"):
        yield "go", None, "there is no go"
        return
    env = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=mod",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    subprocess.run(
        ["go", "build", "-o", path, "."], cwd=go_source, env=env, check=True, capture_output=True
    )
    yield "go", path, ""


def main():
    step, source, go_source = sys.argv[1:]
    if platform.machine() != "x86_64":
        print("1..0 # SKIP only x86-64 programs are stepped through")
        return
    failed = number = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, path, why) in enumerate(build(folder, source, go_source), 1):
            if not path:
                print(f"ok {number} - {name} # SKIP {why}")
                continue
            run = subprocess.run(
                [step, str(STEPS), path], capture_output=True, text=True, timeout=280
            )
            *printed, last = run.stdout.split("\n")[:-1] or ["0 0"]
            stacks, whole, *_ = map(int, last.split())
            ok = stacks > 5000 and whole >= stacks * SHARE
            failed += not ok
            print(
                f"{'ok' if ok else 'not ok'} {number} - {name}: stacks, whole ones, frames, "
                f"instructions elsewhere: {last}"
            )
            print("".join(line + "\n" for line in printed), end="")
    print(f"1..{number}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
