# SPDX-License-Identifier: Apache-2.0
"""perf beside what is tested: another walker over the same programs."""

import contextlib
import os
import shutil
import signal
import subprocess

from tap import DEADLINE, until

HERE = shutil.which("perf") is not None


# perf gives up, or waits for ever, where threads come and go while it opens their events: then it
# is started again.
TRIES = 8


class Perf:
    """One perf that records NAME.data, told by a pair of FIFOs when to begin."""

    def __init__(self, name, rate, how):
        self.log = f"{name}.log"
        for end in "ctl", "ack":
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{name}.{end}")
            os.mkfifo(f"{name}.{end}")
        self.control = os.open(f"{name}.ctl", os.O_RDWR)
        self.answer = os.open(f"{name}.ack", os.O_RDWR | os.O_NONBLOCK)
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [
                    "perf",
                    "record",
                    "-e",
                    "cpu-clock",
                    "-F",
                    str(rate),
                    "-D",
                    "-1",
                    "-m",
                    "8M",
                    "-o",
                    f"{name}.data",
                    "--control",
                    f"fifo:{name}.ctl,{name}.ack",
                    *how,
                ],
                stdout=log,
                stderr=log,
            )

    def acknowledged(self):
        with contextlib.suppress(BlockingIOError):
            return b"ack" in os.read(self.answer, 64)

    def begin(self):
        """None, or why it does not."""
        os.write(self.control, b"enable\n")
        try:
            until(
                self.acknowledged,
                "perf's start",
                seconds=DEADLINE / TRIES,
                alive=lambda: self.process.poll() is None,
            )
        except AssertionError as error:
            self.process.kill()
            with open(self.log, encoding="utf-8") as log:
                return f"{error}; perf said: {log.read()[-500:]!r}"
        return None

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(DEADLINE)
        os.close(self.control)
        os.close(self.answer)


@contextlib.contextmanager
def perf(name, rate, *how):
    """Records NAME.data while the block runs; it has begun when the block does."""
    for left in reversed(range(TRIES)):
        process = Perf(name, rate, how)
        try:
            why = process.begin()
            if why is None:
                yield
                return
        finally:
            process.end()
        assert left, why
        print(f"# {why}")
