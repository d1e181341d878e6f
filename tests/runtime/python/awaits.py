# SPDX-License-Identifier: Apache-2.0
"""Tasks that await each other in known ways: each line that calls or awaits says whom, with the
mark between tasks, and stacks.py holds every sample against that. For 3.14, which keeps that."""

import asyncio
import types


def spin():
    s = 0
    for i in range(2000):
        s += i * i
    return s


async def work():
    await asyncio.sleep(0)
    spin()  # calls: spin


async def by_group():
    async with asyncio.TaskGroup() as group:  # calls: [awaited by a task] work
        group.create_task(work())
        group.create_task(work())


async def gathered():
    await work()  # calls: work


async def by_gather():
    await asyncio.gather(gathered(), gathered())  # calls: [awaited by h\xe4ndler] gathered


async def by_name():
    task = asyncio.create_task(by_gather(), name="h\xe4ndler")
    await task  # calls: [awaited by a task] by_gather


async def by_wait():
    await asyncio.wait([asyncio.create_task(gathered())])  # calls: [awaited by a task] gathered


@types.coroutine
def awaiting(task):
    yield from task  # calls: [awaited by a task] work


async def by_generator():
    await awaiting(asyncio.create_task(work()))  # calls: awaiting


async def nest(n):
    if n > 0:
        await asyncio.create_task(nest(n - 1))  # calls: [awaited by a task] nest
    spin()  # calls: spin


async def by_nest():
    await nest(5)  # calls: nest


async def wait_for(task):
    await task


async def shared():
    await asyncio.sleep(0)
    spin()  # calls: spin


async def by_several():
    task = asyncio.create_task(shared())
    await asyncio.gather(wait_for(task), wait_for(task))


async def eager():
    spin()  # calls: spin


async def by_eager():
    await asyncio.create_task(eager(), eager_start=True)  # calls: eager


async def top():
    while True:
        await by_group()  # calls: by_group
        await by_name()  # calls: by_name
        await by_wait()  # calls: by_wait
        await by_generator()  # calls: by_generator
        await by_nest()  # calls: by_nest
        await nest(20)  # calls: nest
        await by_several()
        await by_eager()  # calls: by_eager


# calls behind the chain's end: [awaited by several tasks] shared, [awaited by more tasks] nest
asyncio.run(top())  # calls: top
