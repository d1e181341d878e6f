# SPDX-License-Identifier: Apache-2.0
"""The agent as a process of a test: ANDIRON is the command, WORKLOAD something to sample."""

import json
import os
import pathlib
import signal
import socket
import subprocess

from pyroscope import DEADLINE, Skip, until

ANDIRON = os.environ["ANDIRON"]
PATIENT = ("--drain-deadline", "2m")  # a busy machine names all that was taken, too


def status(folder, path):
    """What the agent answers on its socket; empty while there is none."""
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(f"{folder}/status")
            s.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            return s.makefile("rb").read().decode()
    except OSError:
        return ""


class Agent:
    """`andiron run` of a file, beside something busy: a program of its own unless the test has
    one."""

    def __init__(self, folder, config, command=None, busy=None):
        if os.geteuid() != 0:
            raise Skip("sampling needs root; run ./check with sudo")
        self.folder, self.log = folder, open(f"{folder}/log", "w+", encoding="utf-8")
        self.busy = subprocess.Popen(
            busy or [os.environ["WORKLOAD"], "300"], stdout=subprocess.DEVNULL
        )
        self.agent = subprocess.Popen(
            [
                *(
                    command
                    or [
                        ANDIRON,
                        "run",
                        *PATIENT,
                        "--status",
                        f"{folder}/status",
                        "--ledger",
                        f"{folder}/ledger",
                    ]
                ),
                config,
            ],
            stdout=self.log,
            stderr=self.log,
        )

    def text(self):
        return pathlib.Path(f"{self.folder}/log").read_text(encoding="utf-8")

    def until(self, condition, what):
        return until(
            condition, lambda: f"{what}: {self.text()}", alive=lambda: self.agent.poll() is None
        )

    def metrics(self):
        """The values by "name{labels}", as Prometheus's text has them."""
        lines = status(self.folder, "/metrics").partition("\r\n\r\n")[2].splitlines()
        return {
            key: float(value)
            for key, _, value in (one.rpartition(" ") for one in lines if not one.startswith("#"))
        }

    def stop(self):
        """SIGTERM; the ledger, whose equation holds for each writer."""
        self.agent.send_signal(signal.SIGTERM)
        assert self.agent.wait(DEADLINE) == 0, self.text()
        ledger = json.loads(pathlib.Path(f"{self.folder}/ledger").read_text(encoding="utf-8"))
        for writer in ledger["writers"].values():
            there = sum(writer[k] for k in ("delivered", "spooled", "uncertain", "in_flight"))
            assert ledger["taken"] + writer["carried"] == there + sum(
                writer["dropped"].values()
            ), ledger
        return ledger

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in (self.agent, self.busy):
            if process.poll() is None:
                process.kill()
            process.wait()
        self.log.close()
