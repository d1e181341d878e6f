# SPDX-License-Identifier: Apache-2.0
"""Stacks of a pprof file, with files and lines."""

import gzip


def fields(data):
    """(number, value) of a protobuf message; a value is an int or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            n = varint()
            yield key >> 3, data[at : at + n]
            at += n


def numbers(values):
    """A repeated number, packed or not."""
    for value in values:
        if isinstance(value, int):
            yield value
        else:
            yield from (v for _, v in fields(b"".join(b"\x08" + v for v in split(value))))


def split(packed):
    """The varints of a packed field, as bytes."""
    one = b""
    for byte in packed:
        one += bytes([byte])
        if byte < 128:
            yield one
            one = b""


def message(data):
    ret = {}
    for number, value in fields(data):
        ret.setdefault(number, []).append(value)
    return ret


class Frame:
    """Function, file, line that is executed, first line."""

    def __init__(self, function, file, line, first):
        self.function, self.file, self.line, self.first = function, file, line, first

    def __repr__(self):
        return f"{self.function}:{self.line}"


def stacks(path):
    """[(frames, root first; samples; {label: text})]"""
    with gzip.open(path) as f:
        profile = message(f.read())
    strings = [s.decode(errors="replace") for s in profile.get(6, [])]
    functions = {f[1][0]: f for f in map(message, profile.get(5, []))}
    locations = {}
    for location in map(message, profile.get(4, [])):
        frames = []
        for line in map(message, location.get(4, [])):
            f = functions[line[1][0]]
            text = [strings[f.get(n, [0])[0]] for n in (2, 4)]
            frames.append(Frame(*text, line.get(2, [0])[0], f.get(5, [0])[0]))
        locations[location[1][0]] = frames or [Frame("?", "", 0, 0)]
    ret = []
    for sample in map(message, profile.get(2, [])):
        frames = [f for i in numbers(sample.get(1, [])) for f in locations[i]]
        labels = {}
        for label in map(message, sample.get(3, [])):
            labels[strings[label[1][0]]] = strings[label.get(2, [0])[0]]
        ret.append((frames[::-1], next(numbers(sample[2])), labels))
    return ret
