#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the receiver answers, row by row, is what a real Pyroscope v2.2.1 was seen to answer.

The same rows run against a real server when ANDIRON_PYROSCOPE names one.
"""

import base64
import gzip
import json
import sys
import time
import uuid

import wire
from pyroscope import Pyroscope, run, until

HOUR = 3600 * 10**9
MIB = 1 << 20
SERVER = None
OK = (200, "")


def labels(*more, name="process_cpu", service=None):
    service = service or f"r{uuid.uuid4().hex[:12]}"
    return [*([("__name__", name)] if name else []), ("service_name", service), *more]


def names(n):
    """n label names in all, the two of labels() among them."""
    return labels(*((f"l{i:02}", "x") for i in range(n - 2)))


def push(body):
    status, answer = SERVER.push(body)
    return status, json.loads(answer)["message"] if status != 200 else ""


def one(*args, **kwargs):
    """The answer to one series with one profile of these properties."""
    series_labels = kwargs.pop("labels", None) or labels()
    return push(wire.request(wire.series(series_labels, wire.profile(*args, **kwargs))))


def raw(data):
    return push(wire.request(wire.series(labels(), data, packed=False)))


def at(offset_ns):
    return one(at=time.time_ns() + offset_ns)


def samples(n, **kwargs):
    return [wire.sample(**kwargs)] * n


def sample_labels(n):
    strings = [*wire.STRINGS, *(f"k{i}" for i in range(n))]
    first = len(wire.STRINGS)
    return one([wire.sample(labels=[(first + i, 3) for i in range(n)])], strings=strings)


# What is sent, and the status and the words of the answer.
ROWS = [
    ("30 label names", lambda: one(labels=names(30)), OK),
    ("31 label names", lambda: one(labels=names(31)), (400, "has 31 label names; limit 30")),
    ("a value of 2048", lambda: one(labels=labels(("x", "v" * 2048))), OK),
    (
        "a value of 2049",
        lambda: one(labels=labels(("x", "v" * 2049))),
        (400, "has label value too long: '"),
    ),
    (
        "a name of 1025",
        lambda: one(labels=labels(("n" * 1025, "x"))),
        (400, "has label name too long: '"),
    ),
    ("a dot, a dash and UTF-8 in names", lambda: one(labels=labels(("a.b-ü", "x"))), OK),
    ("an empty label name", lambda: one(labels=labels(("", "x"))), (400, "invalid label name ''")),
    (
        "a label twice",
        lambda: one(labels=labels(("x", "1"), ("x", "2"))),
        (400, "has duplicate label name: 'x'"),
    ),
    (
        "no __name__",
        lambda: one(labels=labels(name=None)),
        (400, "with error: invalid metric name"),
    ),
    ("no service_name", lambda: one(labels=[("__name__", "process_cpu")]), OK),
    ("59 minutes old", lambda: at(-HOUR * 59 // 60), OK),
    (
        "65 minutes old",
        lambda: at(-HOUR * 65 // 60),
        (400, "is outside of ingestion window (profile timestamp: "),
    ),
    ("9 minutes ahead", lambda: at(HOUR * 9 // 60), OK),
    ("11 minutes ahead", lambda: at(HOUR * 11 // 60), (400, "is outside of ingestion window")),
    ("time 0", lambda: one(at=0), OK),
    ("no samples", lambda: one([]), OK),
    (
        "a zero and a negative sample",
        lambda: one([wire.sample([0]), wire.sample([-1]), wire.sample([7])]),
        OK,
    ),
    ("no sample types", lambda: one([wire.sample([])], types=()), (400, "empty profile")),
    ("0 bytes", lambda: raw(b""), (500, "gzip reset: EOF")),
    ("9 bytes", lambda: raw(b"\x1f\x8b\x08\0\0\0\0\0\0"), (500, "gzip reset: unexpected EOF")),
    (
        "gzip cut off",
        lambda: raw(gzip.compress(wire.profile())[:40]),
        (500, "copy to buffer: unexpected EOF"),
    ),
    ("text", lambda: raw(b"this is no profile at all"), (500, "proto: ")),
    ("garbage", lambda: raw(b"\xff" * 40), (500, "proto: ")),
    (
        "no period type, no mapping, addresses alone",
        lambda: push(wire.request(wire.series(labels(), wire.bare(period_type=None)))),
        OK,
    ),
    ("no period type", lambda: one(period_type=None), OK),
    (
        "no period type and a zero sample",
        lambda: one([wire.sample([0]), wire.sample([7])], period_type=None),
        (500, "nil pointer dereference"),
    ),
    ("all values zero", lambda: one([wire.sample([0])]), OK),
    ("a stack of 1,100", lambda: one([wire.piece(1, b"\x01" * 1100) + wire.piece(2, b"\x07")]), OK),
    (
        "two values, one type",
        lambda: one([wire.sample([1, 2])]),
        (400, "sample value length mismatch"),
    ),
    (
        "a dash in the type",
        lambda: one(strings=["", "c-pu", *wire.STRINGS[2:]]),
        (400, "sample type contains -"),
    ),
    ("function id 0", lambda: one(function=(0, 3)), (400, "function id is 0")),
    (
        "bad UTF-8",
        lambda: one(strings=[*wire.STRINGS, b"\xff\xfe"]),
        (400, "invalid utf8 string hex: fffe"),
    ),
    (
        "string 0 not empty",
        lambda: one(strings=["x", *wire.STRINGS[1:]]),
        (400, "string 0 should be empty string"),
    ),
    (
        "a string index too large",
        lambda: one(function=(1, 99)),
        (400, "function name string index out of range"),
    ),
    ("16,000 samples", lambda: one(samples(16000)), OK),
    ("16,001 samples", lambda: one(samples(16001)), (400, "actual: 16001, limit: 16000)")),
    ("101 labels on a sample", lambda: sample_labels(101), (400, "actual: 101, limit: 100)")),
    ("29 text labels on a sample", lambda: sample_labels(29), (400, "has 31 label names")),
    ("1.9 MiB", lambda: one(pad=1900), OK),
    (
        "2.1 MiB",
        lambda: one(pad=2150),
        (429, "push rate limit (4.0 MiB) exceeded while adding 2.1 MiB"),
    ),
    (
        "4.2 MiB",
        lambda: one(pad=4300),
        (400, "uncompressed profile payload size exceeds limit of 4.2 MB"),
    ),
    ("no series", lambda: push(b""), (400, "no profiles received")),
    (
        "a series without samples",
        lambda: push(wire.request(wire.series(labels()))),
        (400, "no profiles received"),
    ),
]


def row(title, send, expected):
    def test():
        def answer():
            found = send()
            # Earlier rows may have used up the server's rate.
            return found if found[0] != 429 or expected[0] == 429 else None

        status, text = until(answer, f"an answer other than 429 to {title}")
        assert status == expected[0] and expected[1] in text, f"{status} {text[:300]}"

    test.__doc__ = title
    return test


def partial():
    """Of three series with one bad one the good two are stored."""
    service = uuid.uuid4().hex
    good = [wire.series(labels(("n", str(i)), service=service), wire.profile()) for i in range(2)]
    bad = wire.series(labels(("n", "v" * 3000), service=service), wire.profile())
    assert push(wire.request(good[0], bad, good[1]))[0] == 400
    assert SERVER.total(f'{{service_name="{service}"}}') == 14


def exact():
    """A series of two profiles in one request reads back as their sum."""
    service = uuid.uuid4().hex
    now = time.time_ns()
    two = [wire.profile([wire.sample([n])], at=now + n) for n in (7, 100)]
    assert push(wire.request(wire.series(labels(service=service), *two))) == OK
    assert SERVER.total(f'{{service_name="{service}"}}') == 107


def dropped_quietly():
    """Negative samples are gone, the others are counted."""
    service = uuid.uuid4().hex
    body = wire.profile([wire.sample([0]), wire.sample([-1]), wire.sample([7])])
    assert push(wire.request(wire.series(labels(service=service), body))) == OK
    assert SERVER.total(f'{{service_name="{service}"}}') == 7


def sample_label_splits():
    """A text label of samples becomes a label of the series."""
    service = uuid.uuid4().hex
    body = wire.profile([wire.sample([1], labels=[(5, 3)]), wire.sample([2], labels=[(5, 4)])])
    assert push(wire.request(wire.series(labels(service=service), body))) == OK
    assert SERVER.total(f'{{service_name="{service}", key="work"}}') == 1
    assert SERVER.total(f'{{service_name="{service}", key="/bin/work"}}') == 2


def many_in_one():
    """100 series in one request are all stored; not gzip'd they are taken as well."""
    service = uuid.uuid4().hex
    assert (
        push(
            wire.request(
                *(
                    wire.series(
                        labels(("n", str(i)), service=service), wire.profile(), packed=i % 2 == 0
                    )
                    for i in range(100)
                )
            )
        )
        == OK
    )
    assert SERVER.total(f'{{service_name="{service}"}}') == 700


def too_fast():
    """Of twelve series of 0.9 MiB in one request, more than is taken in two seconds, a part is
    stored."""
    service = uuid.uuid4().hex
    body = wire.request(
        *(
            wire.series(labels(("n", str(i)), service=service), wire.profile(pad=900))
            for i in range(12)
        )
    )
    status, text = push(body)
    assert (
        status == 429 and "push rate limit (4.0 MiB) exceeded while adding 0.9 MiB" in text
    ), f"{status} {text}"
    assert SERVER.total(f'{{service_name="{service}"}}') < 84


def same_time():
    """The same profile twice, or another of its time: both are there at first, one after
    compaction."""
    service, at = uuid.uuid4().hex, time.time_ns()
    again, other = wire.profile(at=at), wire.profile([wire.sample([100])], at=at)
    for _ in range(2):
        assert push(wire.request(wire.series(labels(service=service), again))) == OK
    assert SERVER.total(f'{{service_name="{service}"}}') == 14
    SERVER.compact()
    assert SERVER.total(f'{{service_name="{service}"}}') == 7
    assert push(wire.request(wire.series(labels(service=service), other))) == OK
    SERVER.compact()
    assert SERVER.total(f'{{service_name="{service}"}}') in (7, 100)


def tenant():
    """What another tenant sent is not to be seen."""
    service = uuid.uuid4().hex
    SERVER.headers = {"X-Scope-OrgID": "other"}
    assert push(wire.request(wire.series(labels(service=service), wire.profile()))) == OK
    SERVER.headers = {}
    assert SERVER.total(f'{{service_name="{service}"}}') == 0


def framing():
    """A content type or a timeout that is none is refused, by its own status."""
    body = wire.request(wire.series(labels(), wire.profile()))
    path = "/push.v1.PusherService/Push"
    assert SERVER._open("POST", path, body, {"Content-Type": "application/x-protobuf"})[0] == 415
    packed = {"Content-Type": "application/proto", "Content-Encoding": "gzip"}
    assert SERVER._open("POST", path, gzip.compress(body), packed)[0] == 200
    series = {
        "labels": [{"name": n, "value": v} for n, v in labels()],
        "samples": [{"rawProfile": base64.b64encode(wire.profile()).decode()}],
    }
    assert (
        SERVER._open(
            "POST",
            path,
            json.dumps({"series": [series]}).encode(),
            {"Content-Type": "application/json"},
        )[0]
        == 200
    )
    status, answer = SERVER._open(
        "POST", path, body, {"Content-Type": "application/proto", "Connect-Timeout-Ms": "abc"}
    )
    assert status == 400 and b"parse timeout" in answer, answer


def by_otlp():
    """OTLP over HTTP: a charset behind the type is refused, a request of nothing is taken."""
    path = "/v1development/profiles"
    assert (
        SERVER._open("POST", path, b"", {"Content-Type": "application/x-protobuf; charset=utf-8"})[
            0
        ]
        == 415
    )
    assert SERVER._open("POST", path, b"", {"Content-Type": "application/x-protobuf"})[0] == 200
    for left_out, status in (
        (None, 200),
        ("dictionary", 500),
        ("scope", 200),
        ("resource", 200),
        ("period_type", 400),
    ):
        message = wire.otlp("s", left_out={left_out})
        assert (
            SERVER._open("POST", path, message, {"Content-Type": "application/x-protobuf"})[0]
            == status
        ), left_out


def no_range():
    """A query without a range of time is refused."""
    status, answer = SERVER._open(
        "POST", "/querier.v1.QuerierService/LabelNames", b"{}", {"Content-Type": "application/json"}
    )
    assert status == 400 and b"missing time range in the query" in answer, answer


with Pyroscope() as SERVER:
    sys.exit(
        run(
            [
                *(row(*r) for r in ROWS),
                partial,
                exact,
                dropped_quietly,
                sample_label_splits,
                many_in_one,
                too_fast,
                same_time,
                tenant,
                framing,
                by_otlp,
                no_range,
            ]
        )
    )
