# SPDX-License-Identifier: Apache-2.0
"""Stacks of a pprof file: tuples of frames (function, file, line, first line), outermost first."""

import gzip


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def packed(data):
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


def message(data):
    """Field number → its values, numbers or bytes."""
    ret, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            n, at = varint(data, at)
            value, at = data[at : at + n], at + n
        ret.setdefault(key >> 3, []).append(value)
    return ret


def numbers(values):
    for value in values:
        if isinstance(value, int):
            yield value
        else:
            yield from packed(value)


def stacks(path):
    """Yields (frames, samples) for each sample of the file."""
    with gzip.open(path) as f:
        top = message(f.read())
    texts = [text.decode("utf-8", "replace") for text in top[6]]
    functions = {}
    for data in top.get(5, []):
        f = message(data)
        one = lambda n: f.get(n, [0])[0]  # noqa: E731
        functions[one(1)] = texts[one(2)], texts[one(4)], one(5)
    locations = {}
    for data in top.get(4, []):
        location = message(data)
        frames = []
        for line in map(message, location.get(4, [])):
            name, file, first = functions[line[1][0]]
            frames.append((name, file, line.get(2, [0])[0], first))
        locations[location[1][0]] = frames[::-1] or [("?", "", 0, 0)]
    for data in top.get(2, []):
        sample = message(data)
        frames = []
        for id in reversed(list(numbers(sample.get(1, [])))):
            frames += locations[id]
        yield tuple(frames), next(numbers(sample[2]))
