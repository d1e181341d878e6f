# SPDX-License-Identifier: Apache-2.0
"""pprof profiles and PushRequests as bytes, valid or wrong on purpose.

Written by hand, so that a test can break what no encoder would.
"""
import gzip
import time


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def piece(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


STRINGS = ["", "cpu", "nanoseconds", "work", "/bin/work", "key"]


def sample(values=(7,), location=1, labels=()):
    """Labels are (key string index, value string index)."""
    return (piece(1, varint(location)) + piece(2, b"".join(map(varint, values)))
            + b"".join(piece(3, number(1, k) + number(2, v)) for k, v in labels))


def profile(samples=None, strings=STRINGS, types=((1, 2),), period_type=(1, 2), function=(1, 3), at=None, pad=0):
    """One mapping, one function, one location; `pad` strings of 1 KiB on top."""
    samples = [sample()] if samples is None else samples
    out = b"".join(piece(1, number(1, t) + number(2, u)) for t, u in types)
    out += b"".join(piece(2, one) for one in samples)
    out += piece(3, number(1, 1) + number(5, 4) + number(7, 1))
    out += piece(4, number(1, 1) + number(2, 1) + number(3, 4096) + piece(4, number(1, function[0])))
    out += piece(5, number(1, function[0]) + number(2, function[1]))
    out += b"".join(piece(6, text) for text in strings)
    out += b"".join(piece(6, f"{i:08}" + "x" * 1016) for i in range(pad))
    out += number(9, time.time_ns() if at is None else at)
    if period_type:
        out += piece(11, number(1, period_type[0]) + number(2, period_type[1]))
    return out + number(12, 10_000_000)


def series(labels, *profiles, packed=True):
    """A RawProfileSeries; profiles are bytes, gzip'd unless not `packed`."""
    out = b"".join(piece(1, piece(1, n) + piece(2, v)) for n, v in labels)
    for one in profiles:
        out += piece(2, piece(1, gzip.compress(one, 1, mtime=0) if packed else one))
    return out


def request(*all_series):
    return b"".join(piece(1, one) for one in all_series)
