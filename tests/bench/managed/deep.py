# SPDX-License-Identifier: Apache-2.0
"""deep.py SECONDS [WORKERS]: twenty frames of Python over the interpreter's own, and rests of that
many seconds; in so many processes that are forked from one."""

import os
import sys
import time


def work():
    n = 0
    for i in range(3000):
        n += i * i % 7
    return n


def level(n):
    return work() if n == 0 else level(n - 1) + 1


def main(pause):
    while True:
        level(16)
        if pause:
            time.sleep(pause)  # poll: its rest is the load


for _ in range(1, int(sys.argv[2]) if len(sys.argv) > 2 else 1):
    if os.fork() == 0:
        break
main(float(sys.argv[1]))
