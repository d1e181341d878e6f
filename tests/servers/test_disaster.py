#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_disaster.py HARNESS: what was taken is what is read back, through everything that can go
wrong.

On a clock a hundred times as fast: a batch every 150 ms stands for one every 15 s, an outage of 6 s
for one of ten minutes. A writer for Pyroscope and one for Parca go through it at once: an outage,
kill -9 of the writer within it, a disk that is full for a while, and a restart of the server. The
writer does what it is told, a step at a time, so that every equation is one of equals.

Disks are real ones: a tmpfs that is filled up, an ext4 that becomes read-only under the writer's
feet.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import uuid

from parca import Parca
from pyroscope import Pyroscope, Skip, free_ports, run, until

HARNESS = sys.argv[1]
PERIOD = 10_000_000
SERIES, ROWS = 6, 40
BATCH = SERIES * ROWS * 3  # samples
FAST = {
    "pause_ms": 150,
    "series": SERIES,
    "rows": ROWS,
    "samples": 3,
    "backoff_ms": 50,
    "retries": 3,
    "timeout_ms": 10000,
}
PATIENCE = 180  # seconds that anything may take, on a machine that is busy with other things


class Writer:
    """The harness as a process that takes steps; `taken` follows what it says."""

    running = []

    def __init__(self, url, **what):
        environment = {
            **os.environ,
            "PUSH_URL": url,
            "PUSH_STEPS": "1",
            **{f"PUSH_{k.upper()}": str(v) for k, v in {**FAST, **what}.items()},
        }
        self.process = subprocess.Popen(
            [HARNESS, "push"],
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.taken, self.done, self.asked, self.ledger, self.said = 0, 0, 0, None, []
        self.ended = False
        self.news = threading.Condition()
        Writer.running.append(self)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.news:
                self.said.append(line)
                if line.startswith("taken "):
                    self.taken = int(line.split()[1])
                elif line.startswith("done"):
                    self.done += 1
                elif line.startswith("{"):
                    self.ledger = json.loads(line)
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def until(self, condition):
        with self.news:
            assert (
                self.news.wait_for(lambda: self.ended or condition(), PATIENCE) and condition()
            ), "".join(self.said)

    def begin(self, step):
        """Tells it a step; `until_done` waits for all that it was told."""
        self.asked += 1
        self.process.stdin.write(step + "\n")
        self.process.stdin.flush()

    def until_done(self):
        self.until(lambda: self.done == self.asked)

    def until_taken(self, batches):
        self.until(lambda: self.taken >= batches * BATCH)

    def step(self, step):
        self.begin(step)
        self.until_done()

    def end(self):
        """No more steps: it ends in order, and its ledger is there."""
        self.process.stdin.close()
        code = self.process.wait(2 * PATIENCE)
        self.reader.join()
        assert code == 0, "".join(self.said)
        return self.ledger

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdin.close()


class Receiver:
    """The stand-in for Pyroscope, with a journal, so that it can be restarted."""

    def __init__(self, folder, window):
        self.port = free_ports(1)[0]
        self.flags = [
            "--listen",
            f"127.0.0.1:{self.port}",
            "--journal",
            f"{folder}/journal",
            "--reject-older-than",
            window,
        ]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        self.server = Pyroscope(*self.flags)

    def stop(self, how=signal.SIGTERM):
        self.server.process.send_signal(how)
        self.server.close()

    def total(self, selector):
        return self.server.total(selector)

    def settle(self):
        """Compacts, once nothing comes any more: of clients that were killed a busy server still
        has requests to do."""
        self.stop()
        self.start()
        self.server.compact()


class Full:
    """A disk that can be filled up."""

    def __init__(self, at):
        self.at = at
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "andiron-full", at], check=True)

    def fill(self):
        with open(f"{self.at}/filler", "wb", buffering=0) as filler:
            with contextlib.suppress(OSError):
                while filler.write(b"x" * 4096):
                    pass

    def free(self):
        os.unlink(f"{self.at}/filler")


class Fragile:
    """An ext4 in a file, which can become read-only under those that write to it, and well again
    without them."""

    def __init__(self, at, image):
        self.at, self.image = at, image
        with open(image, "wb") as file:
            file.truncate(48 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        self.mount()

    def mount(self):
        if subprocess.run(["mount", "-o", "loop", self.image, self.at], check=False).returncode:
            raise Skip("no file can be mounted here; needs loop devices")

    def give_up(self):
        """As after an error of the disk: from now on every write is EROFS."""
        subprocess.run(["mount", "-o", "remount,abort", self.at], check=True)

    def heal(self):
        subprocess.run(["umount", self.at], check=True)
        subprocess.run(
            ["e2fsck", "-fy", self.image],
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.mount()


class Store(Parca):
    """Parca, which keeps what it was sent as often as it was sent."""

    def settle(self):
        pass


def identity(protocol, spool):
    """Names of this run's series, and the harness's arguments."""
    name = f"d{uuid.uuid4().hex[:8]}x"
    return name, {"prefix": name, "spool": spool, "protocol": protocol, "drain_ms": 60000}


def stored(server, name):
    return sum(server.total(f'{{service_name="{name}{i}"}}') for i in range(SERIES)) // PERIOD


def through(server, folder, protocol):
    """The whole way; what the server has is what was taken, to the sample."""
    os.makedirs(f"{folder}/{protocol}")
    disk = Full(f"{folder}/{protocol}")
    name, common = identity(protocol, f"{disk.at}/spool")
    common["spool_bytes"] = (
        512 << 10
    )  # ten batches fill a segment; the room for one is taken when it is begun
    first = Writer(server.url, **common)
    first.step("feed 10")
    first.step("settle")
    server.stop()
    first.step("feed 15")
    first.kill()
    second = Writer(server.url, **common)
    second.step("feed 5")
    disk.fill()
    second.step("feed 10")
    assert any("No space left" in line for line in second.said), "".join(second.said)
    disk.free()
    second.step("feed 10")
    server.start()
    second.step("settle")
    before = stored(server, name)
    server.stop(signal.SIGKILL if protocol != "parca" else signal.SIGTERM)
    second.begin("feed 10")
    second.until_taken(30)
    server.start()
    second.until_done()
    ledger = second.end()
    server.settle()
    after = stored(server, name)
    text = f"{protocol}: {first.taken}, then {ledger}, stored {before}, {after}"
    assert first.taken == 25 * BATCH and ledger["taken"] == 35 * BATCH, text
    assert ledger["carried"] == 15 * BATCH and ledger["delivered"] == 50 * BATCH, text
    assert not ledger["dropped"] and not ledger["uncertain"] and not ledger["spooled"], text
    assert (
        before >= 50 * BATCH and after == 60 * BATCH
    ), text  # before compaction Pyroscope may have some twice
    assert protocol != "parca" or before == 50 * BATCH, text
    print(f"# {text}", flush=True)


def killed_while_sending(server, folder, protocol):
    """The server goes while it is written to, and then the writer: only what is named as uncertain
    may be missing."""
    name, common = identity(protocol, f"{folder}/{protocol}-killed")
    first = Writer(server.url, **{**common, "pause_ms": 3})
    first.begin("feed 1000000")
    first.until_taken(30)
    stopping = threading.Thread(target=server.stop, args=(signal.SIGTERM,))
    stopping.start()
    first.until_taken(60)
    first.kill()
    stopping.join()
    server.start()
    second = Writer(server.url, **common)
    ledger = second.end()
    server.settle()
    there = stored(server, name)
    missing = first.taken - sum(ledger["dropped"].values()) - there
    text = f"{protocol}: {first.taken}, then {ledger}, stored {there}"
    assert set(ledger["dropped"]) <= {"lost_at_kill"} and not ledger["spooled"], text
    # The batch that was said to be taken last may not have been, at the kill.
    assert ledger["dropped"].get("lost_at_kill", 0) <= BATCH, text
    unsaid = 0 if "lost_at_kill" in ledger["dropped"] else BATCH
    assert 0 <= missing <= ledger["uncertain"] + unsaid, text
    assert protocol == "parca" or (not ledger["uncertain"] and missing in (0, unsaid)), text
    print(f"# {text}, missing {missing}", flush=True)


def read_only(server, folder, protocol):
    """The disk becomes read-only while the spool holds an outage: each sample arrives, and once."""
    os.makedirs(f"{folder}/{protocol}-fragile")
    disk = Fragile(f"{folder}/{protocol}-fragile", f"{folder}/{protocol}.ext4")
    name, common = identity(protocol, f"{disk.at}/spool")
    server.stop()
    first = Writer(server.url, **{**common, "drain_ms": 300})
    first.step("feed 5")
    disk.give_up()
    first.step("feed 5")
    assert any("Read-only file system" in line for line in first.said), "".join(first.said)
    server.start()
    first.step("settle memory")
    one = first.end()
    disk.heal()
    two = Writer(server.url, **common).end()
    server.settle()
    there = stored(server, name)
    text = f"{protocol}: {one}, then {two}, stored {there}"
    # What the first request to Parca holds is noted as sent, and then that nobody took it: it may
    # be between the two.
    assert (
        0 <= 10 * BATCH - there <= two["uncertain"] <= (BATCH if protocol == "parca" else 0)
    ), text
    assert (
        not one["uncertain"] and not one["dropped"] and not two["dropped"] and not two["spooled"]
    ), text
    assert one["delivered"] >= 5 * BATCH and two["carried"] == 5 * BATCH, text
    subprocess.run(["umount", disk.at], check=True)
    print(f"# {text}", flush=True)


def at_once(way):
    """A test that sends both on their way."""

    def test():
        failed = []

        def guarded(*args):
            try:
                way(*args)
            except BaseException as why:  # told in the test's own thread
                failed.append(why)

        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            receiver, parca = Receiver(folder, "1h"), stack.enter_context(Store())
            ways = [
                threading.Thread(target=guarded, args=args)
                for args in ((receiver, folder, "pyroscope"), (parca, folder, "parca"))
            ]
            for one in ways:
                one.start()
            for one in ways:
                one.join()
            for writer in Writer.running:  # of a way that failed
                writer.process.kill()
            receiver.stop()
        if failed:
            raise failed[0]

    test.__doc__ = way.__doc__
    return test


def books_agree_after_many_kills():
    """Killed ten times at any moment, the writer loses ten batches at most, and each run names
    what the last one lost."""
    name, taken, named = f"d{uuid.uuid4().hex[:8]}x", 0, 0
    with tempfile.TemporaryDirectory() as folder:
        server = Receiver(folder, "1h")
        for round_ in range(11):
            one = Writer(server.url, prefix=name, spool=f"{folder}/spool", pause_ms=3)
            if round_ < 10:
                one.begin("feed 1000")
                one.until_taken(5 + round_)
                one.kill()
            else:
                one.step("feed 1")
                one.step("settle")
                one.end()
            taken += one.taken
            named += sum(
                int(found) for found in re.findall(r"was killed: (\d+) samples", "".join(one.said))
            )
        server.settle()
        there = stored(server, name)
        server.stop()
        # A batch that was said to be taken last may not have been, at the kill: whole ones, one a
        # kill.
        unsaid = taken - named - there
        assert named <= 10 * BATCH and 0 <= unsaid <= 10 * BATCH and unsaid % BATCH == 0, (
            taken,
            named,
            there,
        )
        print(f"# taken {taken}, stored {there}, named as lost {named}", flush=True)


# Mounts are this process's own, and go with it.
if os.geteuid() == 0 and "ANDIRON_OWN_MOUNTS" not in os.environ:
    os.environ["ANDIRON_OWN_MOUNTS"] = "1"
    os.execvp(
        "unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv]
    )
if os.geteuid() != 0:
    print("1..0 # SKIP filling up a disk needs root; run this suite as root")
    sys.exit(0)
sys.exit(
    run(
        [
            at_once(through),
            at_once(killed_while_sending),
            at_once(read_only),
            books_agree_after_many_kills,
        ]
    )
)
