# SPDX-License-Identifier: Apache-2.0
"""andiron for another architecture: Debian's libraries for it, unpacked beside its kernels,
the distribution's cross compiler, and a meson build of what the plan needs.

The libraries are those of this machine's own release. They are found by
packaging/packages: what the build needs here, it needs there.
"""

import os
import re
import shutil
import subprocess

import kernels
import plan
from packages import Missing, Root, release

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMPILER = {
    "arm64": ("aarch64-linux-gnu", "gcc-aarch64-linux-gnu"),
    "x86_64": ("x86_64-linux-gnu", "gcc-x86-64-linux-gnu"),
}
FAMILY = {"arm64": "aarch64", "x86_64": "x86_64"}


def libraries():
    with open(os.path.join(ROOT, "packaging/packages"), encoding="utf-8") as f:
        names = re.findall(r"^build: (.*)$", f.read(), re.M)
    return [name for line in names for name in line.split() if name.endswith("-dev")] + [
        "libc6-dev"
    ]


def sysroot(arch, say):
    """A folder with the libraries and headers of this release for the architecture."""
    wanted = libraries()
    folder = os.path.join(kernels.cache(), f"sysroot-{release()}-{arch}")
    mark = os.path.join(folder, "packages")
    with kernels.Lock(f"sysroot-{arch}"):
        if os.path.exists(mark):
            with open(mark, encoding="utf-8") as f:
                if f.read().split() == wanted:
                    return folder
        say(f"fetching the libraries of {release()} for {arch} ...")
        shutil.rmtree(folder, ignore_errors=True)
        root = Root(
            os.path.join(kernels.cache(), f"apt-{release()}-{arch}"),
            kernels.DEBIAN[arch],
            [release()],
        )
        root.update()
        root.unpack(root.with_dependencies(wanted), folder)
        shutil.rmtree(root.folder)
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


def targets(arch):
    """What the plan packs, by the names that ninja knows."""
    names = [f"plugins/{name}/andiron-{name}.so" for name in plan.PLUGINS]
    return sorted(set(names + [program for step in plan.steps(arch) for program in step.programs]))


def _run(command, log):
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


def build(arch, beside, say):
    """(build folder, sysroot), the plan's programs built."""
    triplet, package = COMPILER[arch]
    if not shutil.which(f"{triplet}-gcc"):
        raise Missing(f"needs {triplet}-gcc: apt-get install {package}")
    libs = sysroot(arch, say)
    folder = os.path.join(beside, "kernels", f"build-{arch}")
    log = os.path.join(beside, "kernels", f"build-{arch}.log")
    os.makedirs(folder, exist_ok=True)
    open(log, "wb").close()
    cross_file = os.path.join(beside, "kernels", f"{arch}.ini")
    with open(cross_file, "w", encoding="utf-8") as f:
        f.write(CROSS_FILE.format(triplet=triplet, family=FAMILY[arch], sysroot=libs))
    say(f"building for {arch} ...")
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        _run(["meson", "setup", "--cross-file", cross_file, folder, ROOT], log)
    _run(["ninja", "-C", folder, *targets(arch)], log)
    return folder, libs
