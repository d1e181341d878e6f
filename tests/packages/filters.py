#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The filters of system calls of a process, as the kernel has them, for another process.

    filters.py take PID FILE           writes those of an agent into a file, but for the last,
                                       which it has made itself
    filters.py wear FILE COMMAND…      runs a command behind them

So what systemd made of a unit is tried where the unit itself cannot run.
"""

import ctypes
import os
import struct
import sys

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_GET_FILTER = 17, 0x4206, 0x4207, 0x420C
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38
WAIT_ALL = 0x40000000
INSTRUCTION = 8  # bytes

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


class Program(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def well(result, what):
    if result < 0:
        sys.exit(f"filters: {what}: {os.strerror(ctypes.get_errno())}")
    return result


def take(pid, path):
    well(libc.ptrace(PTRACE_SEIZE, pid, None, None), "seize")
    well(libc.ptrace(PTRACE_INTERRUPT, pid, None, None), "interrupt")
    os.waitpid(pid, WAIT_ALL)
    taken = []
    while (n := libc.ptrace(PTRACE_GET_FILTER, pid, len(taken), None)) >= 0:
        code = ctypes.create_string_buffer(n * INSTRUCTION)
        well(
            libc.ptrace(PTRACE_GET_FILTER, pid, len(taken), ctypes.addressof(code)), "read a filter"
        )
        taken.append(struct.pack("I", n) + code.raw)
    libc.ptrace(PTRACE_DETACH, pid, None, None)
    taken = taken[:-1]  # the kernel counts from the oldest
    with open(path, "wb") as f:
        f.write(b"".join(taken))
    print(len(taken))


def wear(path, command):
    with open(path, "rb") as f:
        left = f.read()
    well(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    while left:
        end = 4 + struct.unpack("I", left[:4])[0] * INSTRUCTION
        code = ctypes.create_string_buffer(left[4:end])
        one = Program((end - 4) // INSTRUCTION, ctypes.addressof(code))
        well(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(one)), "wear a filter")
        left = left[end:]
    os.execv(command[0], command)


if __name__ == "__main__":
    if sys.argv[1] == "take":
        take(int(sys.argv[2]), sys.argv[3])
    else:
        wear(sys.argv[2], sys.argv[3:])
