#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_verb_push.py: `andiron push` to Pyroscope (the stand-in, or ANDIRON_PYROSCOPE) and to a real
Parca.

What is judged is what the servers have, asked by the test's own queries, and by --verify.
"""

import gzip
import pathlib
import subprocess
import sys
import tempfile
import time
import uuid

import wire
from agent import ANDIRON
from parca import Parca
from pyroscope import CPU, Pyroscope, free_ports, run

PYROSCOPE = PARCA = FOLDER = None
HEAP = dict(strings=["", "inuse_space", "bytes", "work", "/bin/work", "space"], period_type=(5, 2))


def file(data):
    path = pathlib.Path(FOLDER, uuid.uuid4().hex)
    path.write_bytes(data)
    return str(path)


def push(*arguments, to):
    return subprocess.run(
        [ANDIRON, "push", *arguments, "--to", to],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def service():
    return f"s{uuid.uuid4().hex}"


def expect(done, code, *words):
    assert done.returncode == code and all(word in done.stdout + done.stderr for word in words), (
        words,
        done,
    )


def parca_url():
    return "parca+" + PARCA.url


def to_pyroscope():
    """A file is in Pyroscope with its labels, and --verify gives the total back; gzip or not."""
    for pack in (gzip.compress, bytes):
        name = service()
        samples = [wire.sample((7,)), wire.sample((35,))]
        path = file(pack(wire.profile(samples)))
        expect(
            push(
                path,
                "--name",
                name,
                "--label",
                "zone=a",
                "--label",
                "x.y=1",
                "--verify",
                to=PYROSCOPE.url,
            ),
            0,
            "2 samples",
            "as process_cpu",
            f"{CPU}  sent 42  stored 42",
        )
        assert PYROSCOPE.total(f'{{service_name="{name}"}}') == 42
        assert {"zone": "a"} in PYROSCOPE.series(f'{{service_name="{name}"}}', "zone")


def to_parca():
    """A file is in Parca, by --parca and by the URL's scheme; a count of samples is time there."""
    name = service()
    expect(
        push(
            file(wire.profile()),
            "--parca",
            "--name",
            name,
            "--label",
            'zone=a"b\\, c',
            "--verify",
            to=PARCA.url,
        ),
        0,
        "sent 7  stored 7",
    )
    assert PARCA.total(f'{{service_name="{name}",zone="a\\"b\\\\, c"}}', CPU) == 7
    strings = ["", "samples", "count", "work", "/bin/work", "cpu", "nanoseconds"]
    timed = wire.profile(strings=strings, period_type=(5, 6)) + wire.number(10, 10**10)
    expect(
        push(file(timed), "--name", service(), "--verify", to=parca_url()),
        0,
        "sent 70000000  stored 70000000",
    )


def both_of_a_heap():
    """Several types of one file, and names by type, at both servers."""
    strings = HEAP["strings"] + ["inuse_objects", "count"]
    data = wire.profile(
        [wire.sample((3, 4096)), wire.sample((1, 10))],
        strings=strings,
        types=((6, 7), (1, 2)),
        period_type=(5, 2),
    )
    for to in (PYROSCOPE.url, parca_url()):
        expect(
            push(file(data), "--name", service(), "--verify", to=to),
            0,
            "memory:inuse_objects:count:space:bytes  sent 4  stored 4",
            "memory:inuse_space:bytes:space:bytes  sent 4106  stored 4106",
        )


def differences():
    """What the server has twice is a difference, and the exit code says so; it can be told apart
    by a label."""
    name, path = service(), file(wire.profile())
    expect(push(path, "--name", name, "--verify", to=parca_url()), 0, "stored 7")
    expect(
        push(path, "--name", name, "--verify", to=parca_url()),
        1,
        "sent 7  stored 14  DIFFERENT",
        "more than was sent",
    )
    expect(
        push(path, "--name", name, "--label", "run=2", "--verify", to=parca_url()), 0, "stored 7"
    )
    PYROSCOPE.needs_stand_in()
    expect(
        push(path, path, "--name", name, to=PYROSCOPE.url),
        1,
        "has the same time",
        ": sent, 1 samples",
    )
    assert PYROSCOPE.total(f'{{service_name="{name}"}}') == 7
    expect(push(path, path, "--now", "--name", name, "--label", "run=3", to=PYROSCOPE.url), 0)


def refused_here():
    """What a server would not keep is not sent, and what to do is said; Parca outlives it."""
    old = wire.profile(at=time.time_ns() - 7200 * 10**9)
    cases = (
        (PYROSCOPE.url, old, "--now"),
        (PYROSCOPE.url, wire.profile(pad=2100), "--force"),
        (PYROSCOPE.url, wire.profile([wire.sample()] * 16001), "--force"),
        (PYROSCOPE.url, b"text", "not a valid pprof profile"),
        (PYROSCOPE.url, b"", "empty"),
        (PYROSCOPE.url, gzip.compress(wire.profile())[:-9], "gzip"),
        (parca_url(), wire.profile([]), "no samples"),
        (parca_url(), wire.profile(period_type=None), "no period type"),
    )
    for to, data, words in cases:
        name = service()
        expect(push(file(data), "--name", name, to=to), 1, words)
    name = service()
    expect(push(file(old), "--now", "--name", name, "--verify", to=PYROSCOPE.url), 0, "stored 7")
    expect(
        push(file(old), "--force", "--name", name, to=PYROSCOPE.url),
        1,
        "the server answered 400",
        "ingestion window",
    )
    expect(push(file(old), "--name", name, "--verify", to=parca_url()), 0, "stored 7")


def messages():
    """A command line that makes no sense, a server that is away or another; --help tells all
    options."""
    path = file(wire.profile())
    for arguments, words in (
        ([], "which file?"),
        ([path], "--name shop"),
        ([path, "--name", "a", "--label", "x"], "NAME=VALUE"),
        ([path, "--name", "a", "--label", "x=1", "--label", "x=2"], "given twice"),
        ([path, "--name", "a", "--key-file", "k"], "go together"),
    ):
        expect(push(*arguments, to=PYROSCOPE.url), 2, words)
    expect(
        subprocess.run(
            [ANDIRON, "push", path, "--name", "a"], capture_output=True, text=True, check=False
        ),
        2,
        "which server?",
    )
    away = f"127.0.0.1:{free_ports(1)[0]}"
    for to in ("http://" + away, "parca+http://" + away):
        expect(push(path, "--name", "a", to=to), 1, "connection refused")
    expect(
        push(path, f"{FOLDER}/none", "--name", "a", to=PYROSCOPE.url),
        1,
        "cannot read the file",
        ": sent",
    )
    expect(push(path, "--name", "a", to=PARCA.url), 1, "404")
    expect(push(path, "--name", "a", "--parca", to=PYROSCOPE.url), 1)
    done = subprocess.run([ANDIRON, "push", "--help"], capture_output=True, text=True, check=False)
    expect(done, 0, "--verify", "--bearer-token-file", "--tenant", "--insecure", "--parca")


def tenants_and_tokens():
    """A tenant sees its own alone, and --verify asks as that tenant; a bad answer is shown."""
    name, path = service(), file(wire.profile())
    expect(
        push(path, "--name", name, "--tenant", "blue", "--verify", to=PYROSCOPE.url), 0, "stored 7"
    )
    PYROSCOPE.needs_stand_in()
    assert PYROSCOPE.total(f'{{service_name="{name}"}}') == 0
    PYROSCOPE.fault("code", 1, 503, "come back")
    expect(push(path, "--name", name, to=PYROSCOPE.url), 1, "the server answered 503")
    expect(
        push(path, "--name", name, "--bearer-token-file", f"{FOLDER}/none", to=PYROSCOPE.url),
        1,
        f"{FOLDER}/none",
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as FOLDER, Pyroscope() as PYROSCOPE, Parca() as PARCA:
        sys.exit(
            run(
                [
                    to_pyroscope,
                    to_parca,
                    both_of_a_heap,
                    differences,
                    refused_here,
                    messages,
                    tenants_and_tokens,
                ]
            )
        )
