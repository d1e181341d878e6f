# SPDX-License-Identifier: Apache-2.0
"""Debian's kernels, kept outside the tree.

A kernel is what `linux-image-ARCH` of a suite depends on; of its package we keep
the kernel, and beside it the suite's static busybox. What is kept
is used for a month, and longer where the network is away.
"""

import fcntl
import glob
import os
import shutil
import time

from packages import Missing, Root

SUITES = {
    "5.10": ["bullseye"],
    "6.1": ["bookworm"],
    "6.12": ["trixie"],
    "newest": ["trixie-backports", "sid"],
}
DEBIAN = {"x86_64": "amd64", "arm64": "arm64"}
MONTH = 30 * 24 * 3600


def cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "andiron", "kernels")


class Lock:
    """One at a time: who comes second finds what the first has made."""

    def __init__(self, name):
        os.makedirs(cache(), exist_ok=True)
        self.path = os.path.join(cache(), f"lock-{name}")

    def __enter__(self):
        self.file = open(self.path, "w", encoding="utf-8")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


class Kernel:
    """Files of one kernel: the image, and a static busybox."""

    def __init__(self, name, arch, folder):
        self.name, self.arch, self.folder = name, arch, folder
        self.image = self._one("boot/vmlinu*-*", "usr/lib/modules/*/vmlinu*")
        self.busybox = self._one("bin/busybox", "usr/bin/busybox")
        if not self.image or not self.busybox:
            raise Missing(
                f"the packages of the kernel {name} for {arch} have no kernel or no busybox"
            )
        _, _, version = os.path.basename(self.image).partition("-")
        self.version = version or os.path.basename(os.path.dirname(self.image))

    def _one(self, *patterns):
        found = sorted(path for p in patterns for path in glob.glob(os.path.join(self.folder, p)))
        return found[0] if found else ""


def _image_package(root):
    """Newer kernels are one package of modules and one of the image; older ones are whole."""
    names = [n for n in root.depends(f"linux-image-{root.arch}") if n.startswith("linux-image-")]
    if not names:
        raise Missing(f"linux-image-{root.arch} of {'/'.join(root.suites)} names no kernel")
    inner = [n for n in root.depends(names[0]) if n.startswith("linux-binary-")]
    return inner[0] if inner else names[0]


def _fetch(name, arch, folder):
    root = Root(os.path.join(cache(), f"apt-{name}-{arch}"), DEBIAN[arch], SUITES[name])
    fresh = folder + ".part"
    shutil.rmtree(fresh, ignore_errors=True)
    root.update()
    root.unpack(
        [_image_package(root), "busybox-static"],
        fresh,
        ["./boot/vmlinu*", "./usr/lib/modules/*/vmlinu*", "./bin/busybox", "./usr/bin/busybox"],
    )
    Kernel(name, arch, fresh)  # fails where something is not there
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(fresh, folder)
    shutil.rmtree(root.folder)


def get(name, arch, say):
    """The kernel, downloaded where it is not here or is old."""
    folder = os.path.join(cache(), f"{name}-{arch}")
    with Lock(f"{name}-{arch}"):
        have = os.path.isdir(folder)
        if not have or os.stat(folder).st_mtime < time.time() - MONTH:
            say(f"fetching Debian's kernel {name} for {arch} ...")
            try:
                _fetch(name, arch, folder)
            except Missing:
                if not have:
                    raise
                say(
                    f"the source does not answer; going on with the kernel of "
                    f"{time.ctime(os.stat(folder).st_mtime)}"
                )
    return Kernel(name, arch, folder)
