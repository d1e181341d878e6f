#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rows.py ROWS [--go SOURCE] FILE…: are rows right, file by file? And those of a Go program, built
for both machines? rows.py ROWS --system: the same for every ELF file under the system's bin and lib
folders.

Full rows, expressions and undefined registers against readelf's listings; and the words of the rows
that lib/elf gives out against full rows, by carrying both out (rows.h beside this file); and rows
that are found one by one. TAP comes out.
"""

import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

FOLDERS = [
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/local/bin",
    "/usr/local/lib",
    "/usr/libexec",
    "/usr/aarch64-linux-gnu/lib",
]
EXEC, DYN = b"\2\0", b"\3\0"
HOW = {"--readelf": "full rows equal readelf's", "--words": "words mean the same as full rows"}
# Only of the files that are named.
FOUND = {"--found": "rows that are found one by one are those that are read"}
# Of code that is described, made without looking at the description; only of some of those.
BY_CODE = {
    "--lengths": "instructions are as long as objdump's",
    "--guesses": "rows made of code alone",
    "--strict-guesses": "rows made of code alone that is amid other code",
}
C_PROGRAMS = (
    "bash",
    "git",
)  # whose functions call each other directly, as those of static programs do
# libcrypto has tables of numbers among its code. Rows that a rule cannot say: longjmp and
# setcontext, between taking registers from memory and the jump.
INEXPRESSIBLE_SHARE = 1e-5
# Of Go's on x86-64 all can be said.
EXPRESSIBLE = ("go-amd64",)


def elf_files():
    for folder in FOLDERS:
        for where, _, names in os.walk(folder):
            for path in (os.path.join(where, name) for name in names):
                if os.path.islink(path) or not os.path.isfile(path):
                    continue
                with open(path, "rb") as handle:
                    head = handle.read(18)
                # Those of 64 bits that a loader loads; what is to be linked first has no addresses
                # yet.
                if head[:5] == b"\x7fELF\2" and head[16:] in (EXEC, DYN):
                    yield path


def go_programs(source, folder):
    """Judged by the call frames that Go's linker makes of the table that rows come from."""
    if not shutil.which("go"):
        return
    for machine in "amd64", "arm64":
        path = os.path.join(folder, f"go-{machine}")
        env = {
            **os.environ,
            "GOARCH": machine,
            "CGO_ENABLED": "0",
            "GOFLAGS": "-mod=mod",
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
        }
        subprocess.run(
            ["go", "build", "-o", path, "."], cwd=source, env=env, check=True, capture_output=True
        )
        yield path


def judge(rows, how, path):
    """Differences, rows, functions, expressions, inexpressible; and what was printed."""
    run = subprocess.run([rows, how, path], capture_output=True, text=True, errors="replace")
    *printed, last = run.stdout.split("\n")[:-1] or [f"# no answer: {run.stderr}"]
    figures = last.split()
    ended_well = len(figures) == 6 and figures[5] == "ok"
    return [int(f) for f in figures[:5]] if ended_well else [1, 0, 0, 0, 0], [path, *printed] + (
        [] if ended_well else [last]
    )


def main():
    with tempfile.TemporaryDirectory() as folder:
        rows, files = sys.argv[1], sys.argv[2:]
        system = files == ["--system"]
        if files[0] == "--go":
            files[:2] = go_programs(files[1], folder)
        judge_all(
            rows,
            sorted(set(elf_files())) if system else [f for f in files if os.path.exists(f)],
            system,
        )


def is_x86(path):
    with open(path, "rb") as handle:
        return handle.read(20)[18:] == b"\x3e\0"


def judge_all(rows, files, system):
    hows = HOW if system else {**HOW, **FOUND, **BY_CODE}
    failed = 0
    print(f"1..{len(hows)}")
    for number, how in enumerate(hows, 1):
        if how in BY_CODE:
            files = [
                f
                for f in files
                if is_x86(f)
                and (
                    os.path.basename(f) in C_PROGRAMS or how == "--lengths" and "libcrypto" not in f
                )
            ]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            verdicts = list(pool.map(lambda path: judge(rows, how, path), files))
        differences, n_rows, functions, expressions, inexpressible = (
            sum(v[0][i] for v in verdicts) for i in range(5)
        )
        unsaid = [
            f for f, v in zip(files, verdicts) if os.path.basename(f) in EXPRESSIBLE and v[0][4]
        ]
        ok = (
            differences == 0
            and n_rows > 0
            and not unsaid
            and (not system or inexpressible <= n_rows * INEXPRESSIBLE_SHARE)
        )
        failed += not ok
        print(
            f"{'ok' if ok else 'not ok'} {number} - {hows[how]}: {differences} differences in "
            f"{n_rows} rows of {functions} functions, "
            f"{len(files)} files; {expressions} {'differ' if how in BY_CODE else 'expressions'}, "
            f"{inexpressible} {'without rule' if how in BY_CODE else 'rows inexpressible'}"
        )
        print("".join(f"# {f} has rows that are inexpressible\n" for f in unsaid), end="")
        for figures, printed in verdicts:
            if figures[0]:
                print("\n".join("# " + line.removeprefix("# ") for line in printed))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
