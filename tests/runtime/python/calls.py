# SPDX-License-Identifier: Apache-2.0
"""A program whose call tree is known: each line that calls says whom, and stacks.py holds every
sample against that. It burns CPU until it is killed. Understood by every version from 3.6 on."""

import asyncio
import functools
import sys
import threading

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
THREADS = int(sys.argv[2]) if len(sys.argv) > 2 else 0


def spin(n):
    s = 0
    for i in range(n):
        s += i * i  # one
    for i in range(3 * n):
        s += i * i  # three
    return s


class Thing:
    def __init__(self, n):
        self.s = spin(n)  # calls: spin

    def method(self, n):
        return spin(n)  # calls: spin

    def __lt__(self, other):
        return spin(ROUNDS) < 0  # calls: spin

    @property
    def value(self):
        return spin(ROUNDS)  # calls: spin


def build():
    return Thing(ROUNDS)  # calls: Thing.__init__


def by_map(thing):
    return list(map(thing.method, [ROUNDS] * 3))  # calls: Thing.method by native


def by_sort(things):
    return sorted(things)  # calls: Thing.__lt__ by native


def by_property(thing):
    return thing.value  # calls: Thing.value


def key(n):
    return spin(n)  # calls: spin


def by_key():
    return sorted([ROUNDS, ROUNDS], key=key)  # calls: key by native


def generate(n):
    for _ in range(n):
        yield spin(ROUNDS)  # calls: spin


def delegate(n):
    yield from generate(n)  # calls: generate


def by_generator():
    s = 0
    for v in delegate(3):  # calls: delegate
        s += v
    return sum(generate(2))  # calls: generate


def recurse(depth):
    if depth == 0:
        return spin(ROUNDS)  # calls: spin
    return recurse(depth - 1)  # calls: recurse


def add(a, b):
    return a + spin(b)  # calls: spin


def by_reduce():
    return functools.reduce(add, [ROUNDS] * 3)  # calls: add by native


def fails(n):
    spin(n)  # calls: spin
    raise ValueError(n)


def by_exception():
    try:
        fails(ROUNDS)  # calls: fails
    except ValueError:
        return spin(ROUNDS)  # calls: spin
    finally:
        spin(ROUNDS)  # calls: spin


def decorate(function):
    def inner(*args):
        return function(*args)  # calls: decorated

    return inner


@decorate
def decorated(n):
    return spin(n)  # calls: spin


def by_closure():
    return decorated(ROUNDS)  # calls: decorate.<locals>.inner


def by_lambda():
    f = lambda n: spin(n)  # calls: spin
    return f(ROUNDS)  # calls: by_lambda.<locals>.<lambda>


def by_exec():
    code = "def made(n):\n    return spin(n)\n\n\n"
    space = {"spin": spin}
    exec(compile(code, "<made>", "exec"), space)
    return space["made"](ROUNDS)  # calls: made


async def leaf_task(n):
    return spin(n)  # calls: spin


async def middle_task(n):
    return await leaf_task(n)  # calls: leaf_task


async def top_task():
    await middle_task(ROUNDS)  # calls: middle_task
    await asyncio.sleep(0)
    await middle_task(ROUNDS)  # calls: middle_task


def turn(thing, things):
    build()  # calls: build
    by_map(thing)  # calls: by_map
    by_sort(things)  # calls: by_sort
    by_property(thing)  # calls: by_property
    by_key()  # calls: by_key
    by_generator()  # calls: by_generator
    recurse(20)  # calls: recurse
    by_reduce()  # calls: by_reduce
    by_exception()  # calls: by_exception
    by_closure()  # calls: by_closure
    by_lambda()  # calls: by_lambda
    by_exec()  # calls: by_exec


def work():
    thing = Thing(1)  # calls: Thing.__init__
    things = [Thing(1), Thing(1)]  # calls: Thing.__init__
    while True:
        turn(thing, things)  # calls: turn


def main():
    for _ in range(THREADS):
        threading.Thread(target=work, daemon=True).start()
    work()  # calls: work


if __name__ == "__main__":
    if ROUNDS > 0:
        main()  # calls: main
    loop = asyncio.new_event_loop()
    ROUNDS = -ROUNDS
    while True:
        loop.run_until_complete(top_task())  # calls: top_task
