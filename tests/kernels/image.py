# SPDX-License-Identifier: Apache-2.0
"""The guest's whole file system, as a cpio archive that its kernel unpacks.

Programs lie where they lie on this machine, with the shared libraries that they
need, so that paths that are compiled into them hold. Made without root: an
archive says what owner and device a file is.
Format: the kernel's Documentation/driver-api/early-userspace/buffer-format.rst, "newc".
"""

import os
import re
import stat
import subprocess

TRIPLET = {"x86_64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}


class Archive:
    """Files by their path in the guest."""

    def __init__(self):
        self.parts, self.names, self.inode = [], set(), 0

    def _add(self, name, mode, data=b"", device=(0, 0)):
        if name in self.names:
            return
        self.names.add(name)
        if os.path.dirname(name):  # unpacked in order: parents first
            self.folder(os.path.dirname(name))
        self.inode += 1
        fields = [self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0]
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + name.encode() + b"\0"
        self.parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]

    def folder(self, name):
        self._add(name.strip("/"), stat.S_IFDIR | 0o755)

    def file(self, name, data, mode=0o755):
        self._add(name.strip("/"), stat.S_IFREG | mode, data)

    def device(self, name, major, minor):
        self._add(name.strip("/"), stat.S_IFCHR | 0o600, device=(major, minor))

    def copy(self, path, name=None):
        with open(path, "rb") as f:
            self.file(name or path, f.read())

    def write(self, path):
        self._add("TRAILER!!!", 0)
        with open(path, "wb") as f:
            f.write(b"".join(self.parts))


class Programs:
    """Adds programs and what they are linked with, from a root for their architecture; `under` is
    the folder that is their root in the guest."""

    def __init__(self, archive, arch, root="/", under=""):
        self.archive, self.root, self.under, self.done = archive, root, under, set()
        self.dirs = [
            f"usr/lib/{TRIPLET[arch]}",
            f"lib/{TRIPLET[arch]}",
            "usr/lib",
            "lib",
            "lib64",
            "usr/lib64",
        ]

    def _library(self, name, beside):
        for folder in self.dirs:
            path = os.path.join(self.root, folder, name)
            if os.path.exists(path):
                return path, f"/{folder}/{name}"
        own = os.path.join(beside, name)  # of the build, found by the program's run path
        if os.path.exists(own):
            return own, own
        raise FileNotFoundError(f"the shared library {name} is not under {self.root}")

    def add(self, path, name=None):
        """`name` is where it lies in the guest; the same path by default."""
        name = name or path
        if name in self.done:
            return
        self.done.add(name)
        self.archive.copy(path, self.under + name)
        told = subprocess.run(
            ["readelf", "-Wdl", path],
            capture_output=True,
            text=True,
            check=True,
            env=dict(os.environ, LC_ALL="C"),
        ).stdout
        for library in re.findall(r"\(NEEDED\).*\[(.+)\]", told):
            self.add(*self._library(library, os.path.dirname(path)))
        interpreter = re.search(r"program interpreter: (.+)\]", told)
        if interpreter:  # by the path that is written in the program
            at = os.path.join(self.root, interpreter.group(1).lstrip("/"))
            if not os.path.exists(at):
                at = self._library(os.path.basename(interpreter.group(1)), "/")[0]
            self.add(at, interpreter.group(1))
