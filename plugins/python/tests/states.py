# SPDX-License-Identifier: Apache-2.0
"""Stops at a place that it has told: `states.py NAME` prints its frames, leaf first, and waits.
What record-state takes of it then, and these lines, are a case of test-frames.c."""

import functools
import signal
import sys
import threading


def tell(frame):
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        print(name, code.co_filename, frame.f_lineno, code.co_firstlineno, sep="|")
        frame = frame.f_back
    print("end", flush=True)


def here(*_):
    return tell(sys._getframe()), signal.pause()


def plain():
    here()


def recurse(n=150):
    return recurse(n - 1) if n else here()


def by_map():
    return list(map(here, [1]))


def nested(n=6):
    return sorted([n], key=lambda i: nested(i - 1) if i else here())


def generate():
    yield from iter([1])
    yield (yield here())


def by_generator():
    for _ in generate():
        pass


def by_closure():
    def inner(function):
        return function()

    return inner(lambda: inner(here))


class Thing:
    def __init__(self):
        here()

    @classmethod
    def make(cls):
        return cls()

    def __lt__(self, other):
        here()


class Child(Thing):
    def __init__(self):
        super().__init__()


def by_init():
    return Child.make()


def by_compare():
    return sorted([object.__new__(Thing), object.__new__(Thing)])


def by_exception():
    try:
        raise ValueError
    except ValueError:
        try:
            [1][2]
        except IndexError as e:
            here(e, len(e.args))


def by_exec():
    exec(compile("\n" * 9000 + "here()\n", "<string>", "exec"), globals())


def by_unicode():
    space = dict(globals())
    text = "def \xe9t\xe9(f):\n  f()\ndef \u0436\u0434(f):\n  \xe9t\xe9(f)\n"
    text += "def \U00020000x(f):\n  \u0436\u0434(f)\n"
    exec(compile(text, "/tmp/\u4e2d/\U0001f40d.py", "exec"), space)
    space["\U00020000x"](here)


def by_long_names():
    space = {"here": here}
    name = "n" * 900
    exec(compile(f"def {name}():\n  here()\n", "/f" * 200, "exec"), space)
    space[name]()


def by_length():
    space = {"here": here}
    text = "def long(x):\n" + "".join(f"  x = x + {i} if x else x\n" for i in range(900))
    exec(compile(text + "  here()\n", "<long>", "exec"), space)
    space["long"](0)


def by_coroutine():
    async def leaf():
        here()

    async def top():
        await leaf()

    top().send(None)


def by_threads():
    stop = threading.Event()
    for _ in range(20):
        threading.Thread(target=stop.wait, daemon=True).start()
    here()


def by_partial():
    functools.reduce(lambda a, b: functools.partial(here, a, b)(), [1, 2])


if __name__ == "__main__":
    globals()[sys.argv[1]]()
