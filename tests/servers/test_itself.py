#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_itself.py C: programs in C, Go and Python that put their own profile into Pyroscope, as a
user without a name.

TEST_LIBRARY, TEST_PLUGINS: libandiron.so and the folders of plugins
ANDIRON: the command, which parses files
"""

import ctypes
import errno
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile

from pyroscope import Pyroscope, Skip, get, run
from waiting import DEADLINE

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
C = sys.argv[1]
NOBODY = 65534
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
# The two that suffice for functions of Python, as setpriv calls them.
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
    if not shutil.which("setpriv"):
        raise Skip("needs setpriv: apt-get install util-linux")


def as_nobody(command, url, capabilities, seconds="2", preexec_fn=None):
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
        preexec_fn=preexec_fn,
    )


def functions(server, language):
    return {
        name
        for _, _, names in server.frames(f'{{service_name="itself-{language}"}}')
        for name in names
    }


def has_work(server, language):
    names = functions(server, language)
    assert any(name == "work" or name.endswith(".work") for name in names), names


def in_pyroscope():
    """without any privilege a program's own functions are in Pyroscope, and no other's; of Python's
    the interpreter's, and it says which capabilities its own take"""
    privileged_parts()
    with Pyroscope() as server, Programs() as programs:
        for language, command in programs.items():
            ran = as_nobody(command, server.url, [])
            assert ran.returncode == 0, ran
            if language == "python":
                assert "_PyEval_EvalFrameDefault" in functions(server, language)
                for part in ("no functions of Python: ", "it lacks CAP_BPF and CAP_PERFMON;"):
                    assert part in ran.stderr, ran
            else:
                assert not ran.stderr, ran
                has_work(server, language)
        services = {series["service_name"] for series in server.series("{}", "service_name")}
        assert services == {f"itself-{language}" for language in programs}, services


def of_python():
    """with CAP_BPF and CAP_PERFMON alone a script's functions are there"""
    privileged_parts()
    with Pyroscope() as server, Programs() as programs:
        ran = as_nobody(programs["python"], server.url, SUFFICIENT)
        assert ran.returncode == 0 and not ran.stderr, ran
        has_work(server, "python")


def refuse_perf_events():
    """As a container's filter of system calls does: perf_event_open fails with EPERM."""
    number = {"x86_64": 298, "aarch64": 241}[platform.machine()]
    program = [
        (0x20, 0, 0, 0),  # the number of the call
        (0x15, 0, 1, number),
        (0x06, 0, 0, 0x50000 | errno.EPERM),  # SECCOMP_RET_ERRNO
        (0x06, 0, 0, 0x7FFF0000),  # SECCOMP_RET_ALLOW
    ]
    text = b"".join(struct.pack("HBBI", *line) for line in program)
    lines = ctypes.create_string_buffer(text)
    filter_of = struct.pack("HxxxxxxP", len(program), ctypes.addressof(lines))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert libc.prctl(PR_SET_SECCOMP, 2, filter_of, 0, 0) == 0, ctypes.get_errno()


def without():
    """where the kernel allows no perf events each says so, and does its work"""
    privileged_parts()
    with Pyroscope() as server, Programs() as programs:
        for language, command in programs.items():
            ran = as_nobody(command, server.url, [], seconds="0", preexec_fn=refuse_perf_events)
            assert ran.returncode == 0 and ran.stdout.strip(), ran
            for part in ("no profile: ", "profile.self.program", "perf_event_paranoid"):
                assert part in ran.stderr, (language, part, ran.stderr)
        assert not server.series("{}", "service_name")


sys.exit(run([in_pyroscope, of_python, without]))
