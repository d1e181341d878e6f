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
    return (
        piece(1, varint(location))
        + piece(2, b"".join(map(varint, values)))
        + b"".join(piece(3, number(1, k) + number(2, v)) for k, v in labels)
    )


def profile(
    samples=None,
    strings=STRINGS,
    types=((1, 2),),
    period_type=(1, 2),
    function=(1, 3),
    at=None,
    pad=0,
):
    """One mapping, one function, one location; `pad` strings of 1 KiB on top."""
    samples = [sample()] if samples is None else samples
    out = b"".join(piece(1, number(1, t) + number(2, u)) for t, u in types)
    out += b"".join(piece(2, one) for one in samples)
    out += piece(3, number(1, 1) + number(5, 4) + number(7, 1))
    out += piece(
        4, number(1, 1) + number(2, 1) + number(3, 4096) + piece(4, number(1, function[0]))
    )
    out += piece(5, number(1, function[0]) + number(2, function[1]))
    out += b"".join(piece(6, text) for text in strings)
    out += b"".join(piece(6, f"{i:08}" + "x" * 1016) for i in range(pad))
    out += number(9, time.time_ns() if at is None else at)
    if period_type:
        out += piece(11, number(1, period_type[0]) + number(2, period_type[1]))
    return out + number(12, 10_000_000)


def bare(address=0x401000, build_id="", period_type=(1, 2)):
    """One sample of an address that nobody has named, in no mapping; with a build id in a mapping
    of that."""
    strings = ["", "cpu", "nanoseconds", "/bin/gone", build_id]
    out = piece(1, number(1, 1) + number(2, 2)) + piece(2, sample())
    if build_id:
        out += piece(3, number(1, 1) + number(5, 3) + number(6, 4))
    out += piece(4, number(1, 1) + (number(2, 1) if build_id else b"") + number(3, address))
    out += (
        b"".join(piece(6, text) for text in strings)
        + number(9, time.time_ns())
        + number(10, 10**10)
    )
    if period_type:
        out += piece(11, number(1, period_type[0]) + number(2, period_type[1]))
    return out + number(12, 1)


def fixed(field, value):
    return varint(field << 3 | 1) + value.to_bytes(8, "little")


def otlp(service, values=(7,), times=(), left_out=()):
    """An ExportProfilesServiceRequest of one sample, less the parts that are left out:
    "dictionary", "resource", "scope", "period_type"."""
    now = time.time_ns()
    texts = ["", "samples", "count", "cpu", "nanoseconds", "work", "/bin/work"]
    tables = {
        1: [b"", number(4, 6)],
        2: [b"", number(1, 1) + number(2, 64) + piece(3, number(1, 1))],
        3: [b"", number(1, 5)],
        4: [b""],
        5: texts,
        6: [b""],
        7: [b"", piece(1, varint(1))],
    }
    dictionary = b"".join(
        piece(table, entry) for table, entries in tables.items() for entry in entries
    )
    one = number(1, 1) + piece(4, b"".join(map(varint, values)))
    if times:
        one += piece(5, b"".join((now + t).to_bytes(8, "little") for t in times))
    body = piece(1, number(1, 1) + number(2, 2)) + piece(2, one) + fixed(3, now) + number(4, 10**10)
    if "period_type" not in left_out:
        body += piece(5, number(1, 3) + number(2, 4))
    body += number(6, 10_000_000)
    scope = piece(2, body) if "scope" in left_out else piece(1, piece(1, "rows")) + piece(2, body)
    resource = piece(1, piece(1, piece(1, "service.name") + piece(2, piece(1, service))))
    whole = piece(1, (b"" if "resource" in left_out else resource) + piece(2, scope))
    return whole + (b"" if "dictionary" in left_out else piece(2, dictionary))


def series(labels, *profiles, packed=True):
    """A RawProfileSeries; profiles are bytes, gzip'd unless not `packed`."""
    out = b"".join(piece(1, piece(1, n) + piece(2, v)) for n, v in labels)
    for one in profiles:
        out += piece(2, piece(1, gzip.compress(one, 1, mtime=0) if packed else one))
    return out


def request(*all_series):
    return b"".join(piece(1, one) for one in all_series)
