# SPDX-License-Identifier: Apache-2.0
"""Functions that call each other, for the seconds of CPU time that are asked for."""
import sys
import time


def inner():
    n = 0
    for i in range(20000):
        n += i * i % 7
    return n


def middle():
    return inner() + 1


def outer():
    return middle() + 1


def main(seconds):
    began = time.process_time()
    while time.process_time() - began < seconds:
        outer()


main(float(sys.argv[1]))
