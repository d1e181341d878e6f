# SPDX-License-Identifier: Apache-2.0
"""CPUs that are plugged into a running machine, when the guest asks for them.

The guest writes a line "plug N" to its results port; QEMU is told by its machine protocol (QMP).
Maps and per-CPU memory follow the CPUs that there may be, and a kernel takes a number of them from
its command line. QEMU itself has no more than 255, and takes too long to boot with all of them.
"""

import json
import re
import socket

QEMU_MAX = 255  # without x2APIC, which its emulation has from version 9.0 on


class Slots:
    """A machine's CPUs, those that it may get included."""

    def __init__(self, cpus, possible):
        self.smp = str(cpus)
        self.options, self.inherited, self.plugged, self.told_kernel = [], [], 0, ""
        self.ours = self.theirs = None
        if possible <= cpus:
            return
        self.smp = f"{cpus},maxcpus={min(possible, QEMU_MAX)}"
        self.told_kernel = f"possible_cpus={possible}"
        self.ours, self.theirs = socket.socketpair()
        self.ours.settimeout(60)
        self.inherited = [self.theirs.fileno()]
        self.options = ["-chardev", f"socket,id=qmp,fd={self.inherited[0]}"]
        self.options += ["-mon", "chardev=qmp,mode=control"]

    def started(self):
        """QEMU has its end."""
        if self.theirs:
            self.theirs.close()

    def close(self):
        for end in (self.ours, self.theirs):
            if end:
                end.close()

    def follow(self, told):
        """Gives the guest what it asked for in all that it has told, once."""
        asked = re.search(rb"^plug (\d+)$", told, re.M)
        if not asked or not self.ours or self.plugged:
            return
        port = self.ours.makefile("rw", encoding="utf-8")
        port.readline()  # its greeting
        self._ask(port, "qmp_capabilities")
        free = [
            slot for slot in self._ask(port, "query-hotpluggable-cpus") if "qom-path" not in slot
        ]
        free.sort(key=lambda slot: list(slot["props"].values()))
        self.plugged = int(asked.group(1))
        for slot in free[: self.plugged]:
            self._ask(port, "device_add", driver=slot["type"], **slot["props"])

    @staticmethod
    def _ask(port, command, **arguments):
        port.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        port.flush()
        while line := port.readline():
            answer = json.loads(line)
            if "error" in answer:
                raise RuntimeError(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]
        raise RuntimeError("QEMU has ended")
