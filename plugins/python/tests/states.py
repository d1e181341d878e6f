# SPDX-License-Identifier: Apache-2.0
"""Stops at a place that it has told: `states.py NAME` prints its frames, leaf first, and waits.
What record-state takes of it then, and these lines, are a case of test-frames.c."""

import asyncio
import functools
import signal
import sys
import threading
import types


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


def tell_coros(coro):
    coros = []
    while hasattr(coro, "cr_frame") or hasattr(coro, "gi_frame"):
        coros.append(getattr(coro, "cr_frame", None) or coro.gi_frame)
        coro = coro.cr_await if hasattr(coro, "cr_await") else coro.gi_yieldfrom
    for frame in reversed(coros):
        code = frame.f_code
        print(code.co_qualname, code.co_filename, frame.f_lineno, code.co_firstlineno, sep="|")


NAMES = {}  # of tasks that were given one


def tell_awaiters(task):
    """The numbers are those of wire.h."""
    for _ in range(16):
        by = task._asyncio_awaited_by
        if not by:
            return
        if len(by) > 1:
            print("[7]")
            return
        (task,) = by
        if not isinstance(task, asyncio.Task):
            continue
        if task.get_coro().cr_running:
            return
        print(NAMES[task] + "||0|0" if task in NAMES else "[6]")
        tell_coros(task.get_coro())
    if task._asyncio_awaited_by:
        print("[8]")


def tell_tasks(frame):
    while frame:
        code = frame.f_code
        print(code.co_qualname, code.co_filename, frame.f_lineno, code.co_firstlineno, sep="|")
        if frame is asyncio.current_task().get_coro().cr_frame:
            tell_awaiters(asyncio.current_task())
        frame = frame.f_back
    print("end", flush=True)


def in_task():
    return tell_tasks(sys._getframe()), signal.pause()


async def leaf_task():
    await asyncio.sleep(0)
    in_task()


async def middle_task():
    await leaf_task()


async def group_task():
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(middle_task())
        tasks.create_task(middle_task())


def group():
    asyncio.run(group_task())


async def gather_task():
    await asyncio.gather(middle_task(), middle_task())


def gather():
    asyncio.run(gather_task())


async def named_task():
    name = "f" * 300
    task = asyncio.create_task(gather_task(), name=name)
    NAMES[task] = name
    await task


async def below_named():
    name = "n\xe4me \u0436"
    task = asyncio.create_task(named_task(), name=name)
    NAMES[task] = name
    await task


def named():
    asyncio.run(below_named())


async def wait_for(task):
    await task


async def several_task():
    task = asyncio.create_task(middle_task())
    await asyncio.gather(wait_for(task), wait_for(task))


def several():
    asyncio.run(several_task())


async def nested_task(n):
    if n == 0:
        await leaf_task()
    await asyncio.create_task(nested_task(n - 1))


def nested_tasks():
    asyncio.run(nested_task(20))


async def eager_leaf():
    in_task()


async def eager_task():
    await asyncio.create_task(eager_leaf(), eager_start=True)


async def around_eager():
    await asyncio.create_task(eager_task())


def eager():
    asyncio.run(around_eager())


@types.coroutine
def from_generator(task):
    yield from task


async def generator_task():
    await from_generator(asyncio.create_task(middle_task()))


def generator():
    asyncio.run(generator_task())


if __name__ == "__main__":
    globals()[sys.argv[1]]()
