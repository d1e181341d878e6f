# SPDX-License-Identifier: Apache-2.0
"""perf beside what is tested: another walker over the same programs."""
import contextlib
import os
import shutil
import signal
import subprocess

from tap import DEADLINE, until

HERE = shutil.which("perf") is not None


@contextlib.contextmanager
def perf(name, rate, *how):
    """Records NAME.data while the block runs; it has begun when the block does."""
    os.mkfifo(f"{name}.ctl")
    os.mkfifo(f"{name}.ack")
    control = os.open(f"{name}.ctl", os.O_RDWR)
    answer = os.open(f"{name}.ack", os.O_RDWR | os.O_NONBLOCK)
    with open(f"{name}.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(["perf", "record", "-e", "cpu-clock", "-F", str(rate), "-D", "-1", "-m", "8M", "-o", f"{name}.data",
                                    "--control", f"fifo:{name}.ctl,{name}.ack", *how], stdout=log, stderr=log)

    def acknowledged():
        with contextlib.suppress(BlockingIOError):
            return b"ack" in os.read(answer, 64)

    try:
        os.write(control, b"enable\n")
        until(acknowledged, "perf's start")
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(DEADLINE)
        os.close(control)
        os.close(answer)
