# SPDX-License-Identifier: Apache-2.0
"""One run of a kernel under QEMU, and what the guest said at its results port.

Plain emulation, so that it works wherever QEMU does, and nothing but what every
Debian kernel has built in: serial ports and an initramfs. The machine ends by
itself, by the guest's power-off or at a panic; one that does neither is ended at
a deadline.
"""

import gzip
import io
import os
import shutil
import subprocess
import time
import zlib

import hotplug
from packages import Missing

# The program, its machine, the ports (the kernel's console and our results), and what else the
# kernel is told: not to try its timer against its clock, since on a busy host both stand still at
# times.
QEMU = {
    "x86_64": (
        ["qemu-system-x86_64", "-machine", "q35", "-cpu", "max"],
        "ttyS0",
        "ttyS1",
        "no_timer_check",
    ),
    "arm64": (
        ["qemu-system-aarch64", "-machine", "virt", "-cpu", "max,pauth-impdef=on"],
        "ttyAMA0",
        "ttyS0",
        "",
    ),
}
# All processors in one thread: with a thread each, one may run the first byte of an instruction
# that another is patching and the rest of the former (jump labels, which the kernel flips while it
# boots and we by attaching to it), and about one boot in thirty dies of it.
TCG = "tcg,thread=single"
PACKAGE = {"x86_64": "qemu-system-x86", "arm64": "qemu-system-arm"}
STEP_SECONDS = 240  # of the guest, for each step
MACHINE_SECONDS = 900  # of ours, for all of it


class Outcome:
    """Of one step: exit code, what it wrote, how long it took in the guest, files it left."""

    def __init__(self, code, text, seconds):
        self.code, self.text, self.seconds, self.files = code, text, seconds, {}


class Run:
    """What became of a machine: outcomes by the name of the step."""

    def __init__(self):
        self.outcomes, self.up, self.finished, self.seconds, self.console = {}, None, False, 0.0, ""

    def take(self, told):
        """Reads what came by the results port. What makes no sense ends the reading."""
        port, last = io.BytesIO(told), None
        try:
            for line in port:
                words = line.decode().split()
                if words[0] == "up":
                    self.up = float(words[1])
                elif words[0] == "step":
                    text = _packed(port, words[4]).decode(errors="replace")
                    self.outcomes[words[1]] = last = Outcome(int(words[2]), text, float(words[3]))
                elif words[0] == "file":
                    last.files[words[1]] = _packed(port, words[2])
                elif words[0] == "done":
                    self.finished = True
        except (ValueError, IndexError, AttributeError, OSError, EOFError, zlib.error):
            pass  # cut off where the machine ended; `finished` says so


def _packed(port, n):
    return gzip.decompress(port.read(int(n)))


def _attend(qemu, slots, results):
    """Until it ends, or its time."""
    end = time.monotonic() + MACHINE_SECONDS
    while time.monotonic() < end:
        try:
            qemu.wait(1)
            return
        except subprocess.TimeoutExpired:
            with open(results, "rb") as f:
                slots.follow(f.read())


def boot(kernel, initramfs, folder, cpus, possible=0, more=""):
    """Runs the kernel to its end. Leaves console, results and QEMU's own words in `folder`. Of
    `possible` CPUs some may be plugged in while it runs. `more` is told to kernel and init."""
    command, console, results, quirks = QEMU[kernel.arch]
    if not shutil.which(command[0]):
        raise Missing(f"needs {command[0]}: apt-get install {PACKAGE[kernel.arch]}")
    paths = [os.path.join(folder, name) for name in ("console", "results", "qemu")]
    for path in paths:
        open(path, "wb").close()
    ports = ["-serial", f"file:{paths[0]}"]
    if kernel.arch == "x86_64":
        ports += ["-serial", f"file:{paths[1]}"]
    else:  # this machine has one port of its own
        ports += [
            "-chardev",
            f"file,id=results,path={paths[1]}",
            "-device",
            "pci-serial,chardev=results",
        ]
    run, began, slots = Run(), time.monotonic(), hotplug.Slots(cpus, possible)
    with open(paths[2], "wb") as words:
        qemu = subprocess.Popen(
            [
                *command,
                "-accel",
                TCG,
                "-smp",
                slots.smp,
                *slots.options,
                "-m",
                f"{1024 + 8 * max(cpus, possible)}M",
                "-display",
                "none",
                "-monitor",
                "none",
                "-nodefaults",
                "-no-reboot",
                *ports,
                "-kernel",
                kernel.image,
                "-initrd",
                initramfs,
                "-append",
                f"console={console} loglevel=4 panic=-1 RESULTS={results} "
                f"DEADLINE={STEP_SECONDS} {quirks} {slots.told_kernel} {more}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            pass_fds=slots.inherited,
        )
        slots.started()
        try:
            _attend(qemu, slots, paths[1])
        finally:
            qemu.kill()
            qemu.wait()
            slots.close()
    run.seconds = time.monotonic() - began
    said = []
    for path in paths:
        with open(path, "rb") as f:
            said.append(f.read())
    run.console = (said[0] + said[2]).decode(errors="replace")
    run.take(said[1])
    return run
