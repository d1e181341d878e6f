#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_debuginfo.py: debug information on its way to a real Parca, by the command and by the agent.

What is judged is what Parca makes of it: a profile that has addresses alone, pushed under the
build id of a file, comes back with the names of the file's functions.
"""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import uuid

import wire
from agent import ANDIRON, Agent
from bucket import Bucket
from parca import Parca, series
from pyroscope import free_ports, run, until
from protobuf import fields
from sources import kept

SERVER = None
PROGRAM = """
static volatile int on = 1;
__attribute__((noinline)) int %(inner)s(int n) { while (on) n++; return n; }
int main(void) { return %(inner)s(0); }
"""
NAME = """
  rule {
    target_label = "service_name"
    replacement  = "%s"
  }
"""
AGENT = """
pyroscope.ebpf "one" {
  forward_to       = [parca.write.server.receiver]
  targets          = discovery.relabel.kept.output
  collect_interval = "1s"
}
parca.write "server" {
  endpoint {
    url                = "%(url)s"
    min_backoff_period = "100ms"
  }
  debuginfo { %(debuginfo)s }
}
"""


def build(folder, *flags):
    """A program of a name and a build id that no other has: its path, its build id, its inner
    function."""
    inner = f"inner_{uuid.uuid4().hex[:12]}"
    path = f"{folder}/{inner}-program"
    pathlib.Path(f"{path}.c").write_text(PROGRAM % {"inner": inner}, encoding="utf-8")
    subprocess.run(
        ["cc", "-O1", "-g", "-Wl,--build-id=sha1", *flags, "-o", path, f"{path}.c"], check=True
    )
    notes = subprocess.run(
        ["readelf", "-n", path], check=True, capture_output=True, text=True
    ).stdout
    return path, re.search(r"Build ID: ([0-9a-f]+)", notes).group(1), inner


def address_of(path, symbol):
    table = subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout
    return int(re.search(rf"([0-9a-f]+) [tT] {symbol}$", table, re.M).group(1), 16)


def upload(*arguments, to=None):
    return subprocess.run(
        [ANDIRON, "debuginfo", "upload", *arguments, "--to", to or SERVER.url],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def names_of(build_id, address):
    """What Parca calls an address of that build id: all strings of a profile that has it alone."""
    service = f"d{uuid.uuid4().hex}"
    assert SERVER.write(
        series(
            [("__name__", "process_cpu"), ("service_name", service)], wire.bare(address, build_id)
        )
    ) == (0, "")
    return [
        name for names in SERVER.frames(f'{{service_name="{service}"}}').values() for name in names
    ]


def stored(build_id):
    return pathlib.Path(SERVER.folder, "data", "debuginfo", build_id, "debuginfo")


def call(method, *parts):
    """A call of DebuginfoService: status, message and answer."""
    return SERVER.call(f"/parca.debuginfo.v1alpha1.DebuginfoService/{method}", *parts)


def asked(build_id, hash_="h", force=0, kind=0):
    """Whether the server wants a file, and its words."""
    status, text, answer = call(
        "ShouldInitiateUpload",
        wire.piece(1, build_id)
        + wire.piece(2, hash_)
        + wire.number(3, force)
        + wire.number(4, kind),
    )
    found = dict(fields(answer))
    return (status, text) if status else (bool(found.get(1)), found.get(2, b"").decode())


def answers():
    """What the server says at each step: what the uploads' table of answers was made from."""
    build_id = uuid.uuid4().hex
    ids = wire.piece(1, build_id)
    for given, expected in (
        (("zz!!",), (True, "First time we see this Build ID")),
        (("",), (3, "unexpectedly short input")),
    ):
        found = asked(*given)
        assert found[0] == expected[0] and expected[1] in found[1], found
    for more, words in (
        (b"", "hash must be set"),
        (wire.piece(3, "h"), "size must be set"),
        (wire.number(2, 2 << 30) + wire.piece(3, "h"), "exceeds maximum allowed size"),
    ):
        status, text, _ = call("InitiateUpload", ids + more)
        assert status == 3 and words in text, (status, text)
    first = ids + wire.number(2, 204) + wire.piece(3, "h")
    status, _, answer = call("InitiateUpload", first)
    instructions = dict(fields(dict(fields(answer))[1]))
    assert status == 0 and instructions[3] == 1, instructions
    upload_id = instructions[2].decode()
    found = asked(build_id)
    assert found[0] is False and "still in-progress" in found[1], found
    assert call("InitiateUpload", first)[0] == 9
    for given, expected in (
        ("wrong", 3),
        (upload_id, 0),
        (upload_id, 0),
    ):  # again, before it is finished
        info = wire.piece(1, ids + wire.piece(2, given))
        status, text, _ = call("Upload", info, wire.piece(2, b"\x7fELF" + b"x" * 200))
        assert status == expected, (given, status, text)
    for given, expected in (("wrong", 3), (upload_id, 0), (upload_id, 0)):
        assert call("MarkUploadFinished", ids + wire.piece(2, given))[0] == expected, given
    for more, expected in (
        ({}, (False, "already exists")),
        ({"hash_": "other"}, (False, "already exists")),
        ({"force": 1}, (True, "requested to be forced")),
        ({"kind": 1}, (True, "First time")),
    ):
        found = asked(build_id, **more)
        assert found[0] is expected[0] and expected[1] in found[1], (more, found)
    assert call("InitiateUpload", first)[0] in (6, 9)


def by_command():
    """What was uploaded names the addresses of its build id; a second upload is not needed."""
    with tempfile.TemporaryDirectory() as folder:
        path, build_id, inner = build(folder)
        address = address_of(path, inner)
        assert inner not in names_of(build_id, address)
        done = upload(path)
        assert done.returncode == 0 and "uploaded" in done.stdout and build_id in done.stdout, done
        assert inner in names_of(build_id, address)
        again = upload(path)
        assert (
            again.returncode == 0
            and "not needed" in again.stdout
            and "already exists" in again.stdout
        ), again
        assert stored(build_id).stat().st_size < os.path.getsize(path)
        assert not (
            complaints := subprocess.run(
                ["readelf", "-hlSsnW", stored(build_id)], capture_output=True, text=True, check=True
            ).stderr
        ), complaints
        forced = upload(path, "--force", "--no-strip")
        assert forced.returncode == 0 and "uploaded" in forced.stdout, forced
        assert stored(build_id).read_bytes() == pathlib.Path(path).read_bytes()


def every_kind():
    """Stripped of its lines, of its symbols, with tables compressed, of position-dependent code:
    all are named."""
    with tempfile.TemporaryDirectory() as folder:
        for flags, strip in (
            ([], ["-g"]),
            (["-gz"], None),
            (["-no-pie"], None),
            (["-rdynamic"], ["-s"]),
            (["-static"], None),
        ):
            path, build_id, inner = build(folder, *flags)
            address = address_of(path, inner)
            if strip:
                subprocess.run(["strip", *strip, path], check=True)
            done = upload(path)
            assert done.returncode == 0, (flags, done)
            assert inner in names_of(build_id, address), (flags, strip, done.stdout)


def messages():
    """What cannot be uploaded is said, with a reason and an exit code; --help tells all options."""
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder, "text")
        text.write_text("no ELF file", encoding="utf-8")
        bare = pathlib.Path(folder, "bare.c")
        bare.write_text("int main(void) { return 0; }", encoding="utf-8")
        subprocess.run(["cc", "-Wl,--build-id=none", "-o", f"{folder}/bare", bare], check=True)
        for arguments, code, words in (
            ([f"{folder}/none"], 1, "cannot be opened"),
            ([str(text)], 1, "shorter than an ELF header"),
            ([f"{folder}/bare"], 1, "--build-id"),
            ([], 2, "which file?"),
            ([str(text), "--bearer-token", "a", "--bearer-token-file", "b"], 2, "only one of"),
            ([str(text), "--cert-file", "a"], 2, "go together"),
        ):
            done = upload(*arguments)
            assert done.returncode == code and words in done.stderr, (arguments, done)
        away = upload(
            sys.executable,
            "--retries",
            "0",
            "--build-id",
            "abcd",
            to=f"http://127.0.0.1:{free_ports(1)[0]}",
        )
        assert away.returncode == 1 and "connection refused" in away.stderr, away
        done = subprocess.run(
            [ANDIRON, "debuginfo", "upload", "--help"], capture_output=True, text=True, check=False
        )
        assert (
            done.returncode == 0
            and "--bearer-token-file" in done.stdout
            and "--insecure" in done.stdout
        ), done
        done = subprocess.run([ANDIRON, "debuginfo"], capture_output=True, text=True, check=False)
        assert done.returncode == 2, done


def large(folder):
    """A program whose debug information takes some seconds at two MiB a second."""
    path, build_id, inner = build(folder)
    pathlib.Path(f"{path}.padding").write_bytes(os.urandom(8 << 20))
    subprocess.run(["objcopy", f"--add-section=.debug_padding={path}.padding", path], check=True)
    return path, build_id, inner


def killed_server():
    """A server that is killed in the middle of an upload has the file in the end, by the same
    command."""
    with tempfile.TemporaryDirectory() as folder:
        path, build_id, inner = large(folder)
        command = subprocess.Popen(
            [
                ANDIRON,
                "debuginfo",
                "upload",
                path,
                "--to",
                SERVER.url,
                "--rate",
                str(2 << 20),
                "--retries",
                "30",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until(
            lambda: stored(build_id).exists() and stored(build_id).stat().st_size > 1 << 20,
            "half of an upload",
            200,
        )
        SERVER.restart(9)
        out, err = command.communicate(timeout=400)
        assert command.returncode == 0 and "uploaded" in out and "trying again" in err, (out, err)
        assert inner in names_of(build_id, address_of(path, inner))


def agent(program, debuginfo, done, meanwhile=None):
    """Runs the agent over a program until `done` of its metrics is true; these. `meanwhile` is
    called with it and its file as soon as the program was sampled."""
    name = f"a{uuid.uuid4().hex}"
    with tempfile.TemporaryDirectory() as folder:
        config, seen = f"{folder}/config.alloy", {}
        pathlib.Path(config).write_text(
            kept("__meta_process_exe", program, NAME % name)
            + AGENT % {"url": SERVER.url, "debuginfo": debuginfo},
            encoding="utf-8",
        )

        def look():
            seen.clear()
            seen.update(one.metrics())
            return done(seen)

        with Agent(folder, config, busy=[program]) as one:
            one.until(
                lambda: SERVER.total(f'{{service_name="{name}"}}') > 0, "samples at the server"
            )
            if meanwhile:
                meanwhile(one, pathlib.Path(config))
            one.until(look, "such figures")
            one.stop()
    return seen


def figure(figures, name):
    return sum(
        value for key, value in figures.items() if key.startswith(f"parca_write_debuginfo_{name}")
    )


def by_agent():
    """The agent offers what it has seen, once, and sends what the server asks for."""
    with tempfile.TemporaryDirectory() as folder:
        path, build_id, inner = build(folder)
        assert not stored(build_id).exists()
        seen = agent(
            path,
            'files = "all"',
            lambda f: figure(f, "uploaded_total") >= 1 and not figure(f, "waiting"),
        )
        assert stored(build_id).exists() and inner in names_of(
            build_id, address_of(path, inner)
        ), seen
        again = agent(
            path,
            'files = "all"',
            lambda f: figure(f, "unwanted_total") >= 1 and not figure(f, "waiting"),
        )
        assert figure(again, "uploaded_total") == 0, again


def reloaded():
    """An upload under way goes on over a reload, and arrives in one go."""

    def halfway(one, config):
        one.until(
            lambda: stored(build_id).exists() and stored(build_id).stat().st_size > 1 << 20,
            "half of an upload",
        )
        config.write_text(
            config.read_text(encoding="utf-8").replace("100ms", "200ms"), encoding="utf-8"
        )
        one.agent.send_signal(signal.SIGHUP)
        one.until(lambda: "reloaded" in one.text(), "the reload")
        # A writer that is just being updated is not in the figures.
        one.until(lambda: figure(one.metrics(), "waiting"), "an upload that goes on")
        assert f"{build_id} uploaded" not in one.text(), one.text()

    with tempfile.TemporaryDirectory() as folder:
        path, build_id, inner = large(folder)
        seen = agent(
            path,
            f'files = "all"\n bytes_per_second = {1 << 20}\n max_parallel = 1',
            lambda f: figure(f, "uploaded_total") and not figure(f, "waiting"),
            halfway,
        )
        assert not figure(seen, "retries_total") and inner in names_of(
            build_id, address_of(path, inner)
        ), seen


def gone():
    """A program that has exited, and whose file is deleted, is sent from the descriptor that was
    kept."""

    def end(one, _):
        one.busy.kill()
        one.busy.wait()
        os.unlink(path)

    with tempfile.TemporaryDirectory() as folder:
        path, build_id, inner = large(folder)
        address = address_of(path, inner)
        seen = agent(
            path,
            f'files = "all"\n bytes_per_second = {4 << 20}\n max_parallel = 1',
            lambda f: figure(f, "uploaded_total")
            and not figure(f, "waiting")
            and inner in names_of(build_id, address),
            end,
        )
        assert not os.path.exists(path) and figure(seen, "bytes_total") > 8 << 20, seen


def over_budget():
    """A file over the budget is refused, with a counter; so is all where uploading is off."""
    with tempfile.TemporaryDirectory() as folder:
        path, build_id, _ = build(folder)
        seen = agent(
            path, 'files = "all"\n max_file_bytes = 1000', lambda f: figure(f, "refused_total")
        )
        assert any("too_large" in key for key in seen if "refused" in key), seen
        seen = agent(
            path, 'files = "all"\n max_total_bytes = 1000', lambda f: figure(f, "refused_total")
        )
        assert any("budget" in key for key in seen if "refused" in key), seen
        assert not stored(build_id).exists()


@contextlib.contextmanager
def signing():
    """A Parca that has files put into a bucket, in place of the one that takes them itself."""
    global SERVER
    before = SERVER
    with Bucket() as bucket, Parca(
        "--debuginfo-uploads-signed-url", storage=bucket.config()
    ) as SERVER:
        try:
            yield bucket
        finally:
            SERVER = before


def by_signed_url():
    """Where the server signs, the file is put into its storage, without our token, and names
    addresses; so by the agent."""
    with tempfile.TemporaryDirectory() as folder, signing() as bucket:
        path, build_id, inner = build(folder)
        bucket.faults.append(500)
        done = upload(path, "--bearer-token", "secret", "--retries", "3")
        assert (
            done.returncode == 0 and "uploaded" in done.stdout and "trying again" in done.stderr
        ), done
        assert bucket.signed == [f"/files/debuginfo/{build_id}/debuginfo"] * 2, bucket.signed
        assert inner in names_of(build_id, address_of(path, inner))
        again = upload(path)
        assert (
            again.returncode == 0 and "not needed" in again.stdout and len(bucket.signed) == 2
        ), again
        path, build_id, inner = build(folder)
        seen = agent(
            path,
            'files = "all"',
            lambda f: figure(f, "uploaded_total") >= 1 and not figure(f, "waiting"),
        )
        assert f"/files/debuginfo/{build_id}/debuginfo" in bucket.signed and inner in names_of(
            build_id, address_of(path, inner)
        ), seen


if __name__ == "__main__":
    with Parca(
        "--http-read-timeout=5m"
    ) as SERVER:  # by default it breaks off what takes five seconds
        sys.exit(
            run(
                [
                    answers,
                    by_command,
                    every_kind,
                    messages,
                    killed_server,
                    by_agent,
                    reloaded,
                    gone,
                    over_budget,
                    by_signed_url,
                ]
            )
        )
