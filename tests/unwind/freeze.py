# SPDX-License-Identifier: Apache-2.0
"""Runs within gdb, attached to a process: freezes it at points of its own choosing, and tells its
stack there.

At each point the thread is named "frozen-N", the instruction that it stands at becomes a jump to
itself, and the thread spins there for a while with all registers as they were: every sample that
anybody takes under that name shows one state, of which gdb knows the stack. Then the instruction
comes back.

With FREEZE_COPY=BYTES nothing is frozen: each point is told with registers, mappings and so many
bytes of the stack (recording.py).

Tells frozen.py over its standard output: "run" and "spin TID" ask for being interrupted in a while,
"point {…}" tells of one, "end N TRIES {…}" of the end, with how often a moment was none to freeze
at, and why.
"""

import collections
import contextlib
import json
import os
import random
import struct
import sys

import gdb

CALL_KERNEL, JUMP_TO_SELF = b"\x0f\x05\xcc", b"\xeb\xfe"  # syscall; int3, and jmp
PRCTL, SET_NAME = 157, 15
FRAMES_MAX = 2000
BELOW = 320  # bytes below the stack pointer where a name may be put: under the red zone
POINTS = int(os.environ["FREEZE_POINTS"])
COPY = int(os.environ.get("FREEZE_COPY", "0"))
RED_ZONE = 128
TRIES = 100 * POINTS  # a program may be in the kernel nearly always when it is stopped
UNFIT = collections.Counter()
REGISTERS = (
    "rip",
    "rsp",
    "rbp",
    "rax",
    "rbx",
    "rcx",
    "rdx",
    "rsi",
    "rdi",
    "r8",
    "r9",
    "r10",
    "r11",
    "r12",
    "r13",
    "r14",
    "r15",
)
random.seed(POINTS)


def say(*words):
    print(*words, file=sys.__stdout__, flush=True)


def go_on(*request):
    """Continues until frozen.py interrupts."""
    say(*request)
    gdb.execute("continue", to_string=True)


def register(name):
    return int(gdb.parse_and_eval("$" + name).cast(gdb.lookup_type("unsigned long")))


def in_user_code():
    """Not in a system call: one would be restarted by another instruction."""
    return int(gdb.parse_and_eval("$orig_rax").cast(gdb.lookup_type("long"))) < 0


def mappings(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as listed:
        for line in listed:
            words = line.split(None, 5)
            start, end = (int(w, 16) for w in words[0].split("-"))
            if "x" in words[1]:
                yield start, end, int(words[2], 16), words[5].strip() if len(words) > 5 else ""


def place(found, address):
    for start, end, offset, path in found:
        if start <= address < end:
            return (
                [path, address - start + offset] if path[:1] == "/" else [path or "[anon]", address]
            )
    return ["", address]


def physical():
    """gdb's frames that are on the stack, leaf first. A Go routine's first frame is its last word:
    behind it lie words of whatever used that stack before, which gdb takes for callers."""
    frame = gdb.newest_frame()
    for _ in range(FRAMES_MAX):
        if frame is None:
            break
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            yield frame
        if (frame.name() or "").removesuffix(".abi0") == "runtime.goexit":
            break
        frame = frame.older()


def chain(found):
    """gdb's stack, leaf first: [file, offset in it, whether the address is a return address]."""
    frames, returned = [], False
    for frame in physical():
        frames.append(place(found, frame.pc()) + [returned])
        returned = frame.type() != gdb.SIGTRAMP_FRAME
    return frames


def frame_pointers(inferior, found):
    """The stack by frame pointers alone, for code that keeps them."""
    frames, at = [place(found, register("pc")) + [False]], register("rbp")
    while at and at % 8 == 0 and len(frames) < FRAMES_MAX:
        try:
            above, back = struct.unpack("<QQ", bytes(inferior.read_memory(at, 16)))
        except gdb.MemoryError:  # no room below the stack pointer
            break
        if not any(start <= back < end for start, end, _, _ in found):
            break
        frames.append(place(found, back) + [True])
        if above <= at:
            break
        at = above
    return frames


def name_thread(inferior, pc, name):
    """Lets the thread itself call prctl(PR_SET_NAME), at the instruction where it stands."""
    saved = {r: register(r) for r in ("rax", "rcx", "rdi", "rsi", "r11", "rsp")}
    text = saved["rsp"] - BELOW
    code, under = bytes(inferior.read_memory(pc, len(CALL_KERNEL))), bytes(
        inferior.read_memory(text, 16)
    )
    try:
        inferior.write_memory(text, name.encode().ljust(16, b"\0"))
        inferior.write_memory(pc, CALL_KERNEL)
        for r, value in (("rax", PRCTL), ("rdi", SET_NAME), ("rsi", text)):
            gdb.execute(f"set ${r} = {value}")
        gdb.execute("continue", to_string=True)
        if register("rax") != 0 or register("pc") != pc + len(CALL_KERNEL):
            raise gdb.error("prctl failed")
    finally:
        inferior.write_memory(pc, code)
        inferior.write_memory(text, under)
        for r in ("rax", "rcx", "rdi", "rsi", "r11"):
            gdb.execute(f"set ${r} = {saved[r]}")
        gdb.execute(f"set $pc = {pc}")


@contextlib.contextmanager
def alone():
    """Only the current thread runs, and nothing but SIGSTOP reaches it."""
    gdb.execute("set scheduler-locking on")
    gdb.execute("handle all nostop noprint nopass", to_string=True)
    gdb.execute("handle SIGSTOP stop print nopass", to_string=True)
    try:
        yield
    finally:
        gdb.execute("handle all nostop noprint pass", to_string=True)
        gdb.execute("handle SIGSTOP stop print nopass", to_string=True)
        gdb.execute("set scheduler-locking off")


def freeze(number, inferior, thread):
    pc, found = register("pc"), list(mappings(inferior.pid))
    if not any(start <= pc < end - len(CALL_KERNEL) for start, end, _, _ in found):
        UNFIT["not in code"] += 1
        return False
    point = {"name": f"frozen-{number}", "gdb": chain(found), "fp": frame_pointers(inferior, found)}
    code = bytes(inferior.read_memory(pc, 2))
    with alone():
        name_thread(inferior, pc, point["name"])
        inferior.write_memory(pc, JUMP_TO_SELF)
        try:
            go_on("spin", thread.ptid[1])
        finally:
            inferior.write_memory(pc, code)
        stayed = register("pc") == pc
        name_thread(inferior, pc, "free")
    if stayed:
        say("point", json.dumps(point))
    UNFIT["left"] += not stayed
    return stayed


def stack_copy(inferior, sp):
    """(address, bytes) from the red zone on, as far as there is memory."""
    start, copied = sp - RED_ZONE, b""
    while len(copied) < COPY:
        step = min(COPY - len(copied), 4096 - (start + len(copied)) % 4096)
        try:
            copied += bytes(inferior.read_memory(start + len(copied), step))
        except gdb.MemoryError:
            break
    return start, copied.hex()


def tell(number, inferior):
    """The state as it is, and gdb's stack as addresses."""
    found, pcs = list(mappings(inferior.pid)), [frame.pc() for frame in physical()]
    say(
        "point",
        json.dumps(
            {
                "name": f"point-{number}",
                "registers": {r: register(r) for r in REGISTERS},
                "maps": found,
                "pcs": pcs,
                "gdb": chain(found),
                "stack": stack_copy(inferior, register("rsp")),
            }
        ),
    )
    return True


def freeze_any(number, inferior):
    """One thread that can be frozen where it is; whether there was one."""
    threads = list(inferior.threads())
    random.shuffle(threads)
    for thread in threads:
        thread.switch()
        try:
            if not in_user_code():
                UNFIT["in the kernel"] += 1
            elif tell(number, inferior) if COPY else freeze(number, inferior, thread):
                return True
        except gdb.MemoryError as error:  # no room below the stack pointer
            UNFIT[str(error)[:200]] += 1
            continue
        except gdb.error as error:
            say("error", str(error).replace("\n", " "))
            return False
    return False


def main():
    for setting in (
        "pagination off",
        "confirm off",
        "backtrace past-main on",
        "backtrace past-entry on",
        "backtrace limit unlimited",
        "print thread-events off",
        "language c",
    ):
        gdb.execute("set " + setting)
    gdb.execute("handle all nostop noprint pass", to_string=True)
    gdb.execute("handle SIGSTOP stop print nopass", to_string=True)
    inferior, done, tries = gdb.selected_inferior(), 0, 0
    while done < POINTS and tries < TRIES:
        tries += 1
        go_on("run")
        if not inferior.pid:
            UNFIT["ended"] += 1
            break
        done += freeze_any(done, inferior)
    say("end", done, tries, json.dumps(dict(UNFIT.most_common(5))))


try:
    main()
except gdb.error as error:
    say("error", str(error).replace("\n", " "))
gdb.execute("kill", to_string=True)
