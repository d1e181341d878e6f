# SPDX-License-Identifier: Apache-2.0
"""Where threads begin: the addresses in a file at which a whole stack may end.

They come from the file's entry point and from symbol tables (the file's, its debug file's,
or those of the same program before it was stripped), never from what a profiler calls a frame.
"""

import functools
import os
import re
import struct
import subprocess

C = (
    r"_start|_start_c|__libc_start_\w+|libc_start_main_stage2|_dl_start(_user)?"
    r"|(__|__GI_)?clone3?|__clone_internal|start_thread|thread_start"
)
GO = r"_rt0_\w+|runtime\.(goexit|rt0_go|mstart0?|mcall|morestack)(\.abi0)?"
NAMES = re.compile(rf"^({C}|{GO})$")
UNSIZED = 64  # bytes of an entry stub that has no size


def symbols(path, option="--no-sort"):
    """(address, size, name) of functions."""
    listed = subprocess.run(
        ["nm", "-S", "--defined-only", option, path],
        capture_output=True,
        text=True,
        errors="replace",
    ).stdout
    for line in listed.splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tTwWiuVv":
            yield int(words[0], 16), int(words[1], 16), words[3].split("@")[0]
        elif len(words) == 3 and words[1] in "tTwW":
            yield int(words[0], 16), UNSIZED, words[2].split("@")[0]


def build_id(path):
    found = re.search(
        r"Build ID: ([0-9a-f]+)",
        subprocess.run(["readelf", "-nW", path], capture_output=True, text=True).stdout,
    )
    return found[1] if found else ""


def with_symbols(path):
    """The files whose symbols are this one's."""
    yield path
    if name := build_id(path):
        yield f"/usr/lib/debug/.build-id/{name[:2]}/{name[2:]}.debug"
    if path.endswith("-apart"):
        yield path + ".debug"
    if path.endswith("-stripped"):
        yield path.removesuffix("-stripped")


@functools.cache
def ranges(path):
    found = []
    try:
        with open(path, "rb") as f:
            head = f.read(64)
    except OSError:
        return found
    if head[:4] != b"\x7fELF":
        return found
    (entry,) = struct.unpack_from("<Q", head, 24)
    if entry:
        found.append((entry, entry + UNSIZED))
    for file in with_symbols(path):
        if os.path.exists(file):
            found += [
                (a, a + n)
                for option in ("--no-sort", "-D")
                for a, n, name in symbols(file, option)
                if NAMES.match(name)
            ]
    return found


def is_entry(frame):
    """Callers may be given by their return address: hence the end is within."""
    file, address = frame
    return any(start <= address <= end for start, end in ranges(file))


def whole(stack):
    """Ends where a thread begins, and nothing says that it does not."""
    return stack.marker is None and bool(stack.frames) and is_entry(stack.frames[-1])
