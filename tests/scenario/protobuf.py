# SPDX-License-Identifier: Apache-2.0
"""Messages of Protocol Buffers, read without their schema."""


def varint(data, at):
    """The number that begins there, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of each field: an integer, or the bytes of what has a length or a fixed
    size."""
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = data[at : at + size], at + size
        yield tag >> 3, value


def packed(value):
    """The integers of a repeated field's value, which holds one or, packed, many."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        one, at = varint(value, at)
        found.append(one)
    return found


def numbers(message, number):
    """All integers of a repeated field."""
    return [n for field, value in fields(message) if field == number for n in packed(value)]


def signed(value):
    return value - (1 << 64) if value >> 63 else value
