# SPDX-License-Identifier: Apache-2.0
"""Small pprof profiles, written field by field: what two files are to differ in, a test says."""

import gzip


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def block(field, payload):
    return varint(field << 3 | 2) + varint(len(payload)) + payload


def profile(stacks, period=10_000_000, duration=10, program="/opt/shop", counted=True):
    """CPU time of {("main", …, "leaf"): samples}, the outermost function first."""
    strings = [""]

    def text(s):
        if s not in strings:
            strings.append(s)
        return strings.index(s)

    def kind(field, name, unit):
        return block(field, number(1, text(name)) + number(2, text(unit)))

    names = sorted({name for stack in stacks for name in stack})
    out = kind(1, "samples", "count") if counted else b""
    out += kind(1, "cpu", "nanoseconds")
    for stack, n in stacks.items():
        places = b"".join(number(1, names.index(name) + 1) for name in reversed(stack))
        values = (number(2, n) if counted else b"") + number(2, n * (period or 1))
        out += block(2, places + values)
    out += block(3, number(1, 1) + number(5, text(program)))
    for i, name in enumerate(names, 1):
        out += block(4, number(1, i) + number(2, 1) + number(3, i) + block(4, number(1, i)))
        out += block(5, number(1, i) + number(2, text(name)))
    out += kind(11, "cpu", "nanoseconds")
    out += b"".join(block(6, s.encode()) for s in strings)
    out += number(9, 1_700_000_000_000_000_000) + number(10, duration * 10**9) + number(12, period)
    return gzip.compress(out)


# One program, built and recorded twice: the second at another rate, for longer and elsewhere, with
# the names that another compiler gives. `parse` grew from 10 to 20 %, `rare` by chance.
BEFORE = profile(
    {
        ("main", "parse.isra.0"): 50,
        ("main", "serve", "parse.isra.0"): 50,
        ("main", "serve", "sum"): 880,
        ("main", "rare"): 19,
        ("main", "gone"): 1,
    }
)
AFTER = profile(
    {
        ("main", "parse"): 200,
        ("main", "serve", "parse.part.0.cold"): 200,
        ("main", "serve", "sum.constprop.1"): 1566,
        ("main", "rare"): 34,
    },
    period=40_000_000,
    duration=100,
    program="/opt/2/shop-new",
)
