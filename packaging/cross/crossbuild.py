#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crossbuild.py ARCH BUILD-DIR: builds what is installed for ARCH, arm64 or x86_64.

Needs no root. The compiler is the distribution's cross compiler. The libraries are those of this
machine's own release for the other architecture, unpacked into a root of their own in a cache
outside the tree. packaging/packages names them: what the build needs here, it needs there. The
root has a database of dpkg's, so that one can ask which package a file is of.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from packages import Missing, Root, release  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMPILER = {
    "arm64": ("aarch64-linux-gnu", "gcc-aarch64-linux-gnu"),
    "x86_64": ("x86_64-linux-gnu", "gcc-x86-64-linux-gnu"),
}
FAMILY = {"arm64": "aarch64", "x86_64": "x86_64"}
DEBIAN = {"arm64": "arm64", "x86_64": "amd64"}


def cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "andiron", "cross")


def libraries():
    with open(os.path.join(ROOT, "packaging/packages"), encoding="utf-8") as f:
        names = re.findall(r"^build: (.*)$", f.read(), re.M)
    return [name for line in names for name in line.split() if name.endswith("-dev")] + [
        "libc6-dev"
    ]


@contextlib.contextmanager
def locked(name):
    """One at a time: who comes second finds what the first has made."""
    os.makedirs(cache(), exist_ok=True)
    with open(os.path.join(cache(), f"lock-{name}"), "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def stay_inside(folder):
    """Makes absolute links relative: a linker would follow them to this machine's libraries, and
    where it finds none, link statically."""
    for place, folders, files in os.walk(folder):
        for path in (os.path.join(place, name) for name in folders + files):
            if os.path.islink(path) and (target := os.readlink(path)).startswith("/"):
                os.unlink(path)
                os.symlink(os.path.relpath(folder + target, place), path)


def sysroot(arch, say):
    """A folder with the libraries and headers of this release for the architecture."""
    wanted = libraries()
    folder = os.path.join(cache(), f"sysroot-{release()}-{arch}")
    mark = os.path.join(folder, "packages")
    with locked(f"sysroot-{arch}"):
        if os.path.exists(mark):
            with open(mark, encoding="utf-8") as f:
                if f.read().split() == wanted:
                    return folder
        say(f"fetching the libraries of {release()} for {arch} ...")
        shutil.rmtree(folder, ignore_errors=True)
        root = Root(os.path.join(cache(), f"apt-{release()}-{arch}"), DEBIAN[arch], [release()])
        root.update()
        root.unpack(root.with_dependencies(wanted), folder, database=True)
        shutil.rmtree(root.folder)
        stay_inside(folder)
        with open(mark, "w", encoding="utf-8") as f:
            f.write(" ".join(wanted))
    return folder


CROSS_FILE = """\
[binaries]
c = '{triplet}-gcc'
ar = '{triplet}-ar'
strip = '{triplet}-strip'
pkgconfig = 'pkg-config'

[properties]
sys_root = '{sysroot}'
pkg_config_libdir = ['{sysroot}/usr/lib/{triplet}/pkgconfig', '{sysroot}/usr/share/pkgconfig']
needs_exe_wrapper = true

[built-in options]
c_args = ['--sysroot={sysroot}']
c_link_args = ['--sysroot={sysroot}']

[host_machine]
system = 'linux'
cpu_family = '{family}'
cpu = '{family}'
endian = 'little'
"""


def run(command, log):
    with open(log, "ab") as out:
        if (
            subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
            ).returncode
            == 0
        ):
            return
    with open(log, encoding="utf-8", errors="replace") as f:
        raise RuntimeError(f"{' '.join(command[:3])} failed:\n{f.read()[-4000:]}")


def configure(arch, folder, say):
    """Makes the build folder where it is not there; (sysroot, log of what is run there)."""
    triplet, package = COMPILER[arch]
    if not shutil.which(f"{triplet}-gcc"):
        raise Missing(f"needs {triplet}-gcc: apt-get install {package}")
    libs, log = sysroot(arch, say), os.path.join(folder, "compile.log")
    os.makedirs(folder, exist_ok=True)
    open(log, "wb").close()
    cross_file = os.path.join(folder, "cross.ini")
    with open(cross_file, "w", encoding="utf-8") as f:
        f.write(CROSS_FILE.format(triplet=triplet, family=FAMILY[arch], sysroot=libs))
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        run(["meson", "setup", "--cross-file", cross_file, folder, ROOT], log)
    return libs, log


def installed(folder):
    """The built files that an installation has, by the names that ninja knows."""
    done = subprocess.run(
        ["meson", "introspect", folder, "--targets"], check=True, capture_output=True
    )
    names = [f for t in json.loads(done.stdout) if t["installed"] for f in t["filename"]]
    return sorted(os.path.relpath(name, os.path.realpath(folder)) for name in names)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in COMPILER:
        sys.exit(__doc__)
    arch, folder = sys.argv[1], os.path.abspath(sys.argv[2])
    say = lambda text: print(text, file=sys.stderr, flush=True)
    try:
        _, log = configure(arch, folder, say)
        say(f"building for {arch} ...")
        run(["ninja", "-C", folder, *installed(folder)], log)
    except (Missing, RuntimeError) as error:
        sys.exit(f"crossbuild: {error}")


if __name__ == "__main__":
    main()
