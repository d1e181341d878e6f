#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_itself.py C: programs in C, Go and Python that put their own profile into Pyroscope, as a
user without a name.

TEST_LIBRARY, TEST_PLUGINS: libandiron.so and the folders of plugins
ANDIRON: the command, which parses files
"""

import os
import shutil
import subprocess
import sys
import tempfile

from pyroscope import Pyroscope, Skip, get, run
from waiting import DEADLINE

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
C = sys.argv[1]
NOBODY = 65534
# The two that suffice, as setpriv calls them.
SUFFICIENT = ["bpf", "perfmon"]
BUILD = {
    "LIBRARY": os.environ["TEST_LIBRARY"],
    "PLUGIN_DIRS": os.environ["TEST_PLUGINS"],
    "WORKER": os.environ["ANDIRON"],
    "PYTHONPATH": os.path.join(ROOT, "host-abi/bindings/python"),
    "PYTHONDONTWRITEBYTECODE": "1",
}


class Programs:
    """The three, where anybody may execute them; {language: command}."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="itself-")
        os.chmod(self.folder, 0o755)
        python = shutil.which("python3", path="/usr/bin") or sys.executable
        script = os.path.join(ROOT, "packaging/examples/itself-to-pyroscope.py")
        return {
            "c": [shutil.copy(C, self.folder)],
            "go": [shutil.copy(get("itself-go"), f"{self.folder}/itself-go")],
            "python": [python, shutil.copy(script, self.folder)],
        }

    def __exit__(self, *_):
        shutil.rmtree(self.folder)


def privileged_parts():
    if os.geteuid() != 0:
        raise Skip("needs root: run it by `sudo ./check`")
    for tool, package in {"setpriv": "util-linux", "setcap": "libcap2-bin"}.items():
        if not shutil.which(tool):
            raise Skip(f"needs {tool}: apt-get install {package}")


def as_nobody(command, url, capabilities, seconds="2"):
    sets = "-all" + "".join(f",+{name}" for name in capabilities)
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    rights = [f"--bounding-set={sets}", f"--inh-caps={sets}", f"--ambient-caps={sets}"]
    return subprocess.run(
        [*user, *rights, *command, seconds, url],
        env={**os.environ, **BUILD},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


def functions(server, language):
    return {
        name
        for _, _, names in server.frames(f'{{service_name="itself-{language}"}}')
        for name in names
    }


def in_pyroscope():
    """with CAP_BPF and CAP_PERFMON alone, its own functions are in Pyroscope, and no other's"""
    privileged_parts()
    with Pyroscope() as server, Programs() as programs:
        for language, command in programs.items():
            ran = as_nobody(command, server.url, SUFFICIENT)
            assert ran.returncode == 0 and not ran.stderr, ran
            names = functions(server, language)
            assert any(name == "work" or name.endswith(".work") for name in names), names
        services = {series["service_name"] for series in server.series("{}", "service_name")}
        assert services == {f"itself-{language}" for language in programs}, services


def by_setcap():
    """a program to whose file setcap gives them needs nobody's help"""
    privileged_parts()
    with Pyroscope() as server, Programs() as programs:
        for language in ("c", "go"):
            (program,) = programs[language]
            subprocess.run(["setcap", "cap_bpf,cap_perfmon+ep", program], check=True)
            done = subprocess.run(
                ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", program]
                + ["2", server.url],
                env={**os.environ, **BUILD},
                capture_output=True,
                text=True,
                timeout=DEADLINE,
                check=False,
            )
            assert done.returncode == 0 and not done.stderr, done
            assert functions(server, language), language


def without():
    """without them each says by name which is missing and what to run, and does its work"""
    privileged_parts()
    lacks = {
        (): "it lacks CAP_BPF and CAP_PERFMON;",
        ("perfmon",): "it lacks CAP_BPF;",
        ("bpf",): "it lacks CAP_PERFMON;",
    }
    with Pyroscope() as server, Programs() as programs:
        for language, command in programs.items():
            for capabilities, words in lacks.items():
                ran = as_nobody(command, server.url, capabilities, seconds="0")
                assert ran.returncode == 0 and ran.stdout.strip(), ran
                for part in ("no profile: ", "pyroscope.ebpf.self", words, "setcap cap_"):
                    assert part in ran.stderr, (language, part, ran.stderr)
        assert not server.series("{}", "service_name")


sys.exit(run([in_pyroscope, by_setcap, without]))
