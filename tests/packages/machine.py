# SPDX-License-Identifier: Apache-2.0
"""A fresh Debian that systemd has booted, in a container, without what another test left in it.

Its suite and mirror are this machine's own. It shares the network, and has ids of processes of its
own, so nothing in it samples.
"""

import os
import pathlib
import re
import subprocess

from tap import Skip, until

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
ENVIRONMENT = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive"]
PATIENCE = 900  # seconds: packages come over a network, and others compute beside
# What packages may change without being its owners: journals of installations, and what a booted
# system keeps of itself.
NOBODYS = re.compile(
    r"/(var/(log|cache|tmp|lib/(apt|systemd|dpkg/(status|available|diversions|statoverride|lock)"
    r"|dpkg/triggers|dpkg/(alternatives|updates)))|etc/ld\.so\.cache|tmp|root)\b"
)


def call(*command, **options):
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=PATIENCE,
        check=False,
        **options,
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}:\n{done.stdout[-4000:]}"
    return done.stdout


def suite_and_mirror():
    form = "$(CODENAME) $(ORIGIN) $(REPO_URI)"
    with open("/etc/os-release", encoding="utf-8") as f:
        here = dict(re.findall(r'^(\w+)="?([^"\n]*)', f.read(), re.M)).get("VERSION_CODENAME")
    for line in call("apt-get", "indextargets", "--format", form).splitlines():
        suite, origin, mirror = line.split(" ", 2)
        if (suite, origin) == (here, "Debian"):
            return suite, mirror
    raise Skip("apt has no list of this Debian's packages: run apt-get update on Debian")


class Machine:
    """with Machine(folder, packages) as m: m.run("dpkg", "-i", …)"""

    def __init__(self, root, packages):
        self.root, self.container, self.first = pathlib.Path(root), None, None
        suite, mirror = suite_and_mirror()
        kept = CACHE / "andiron/debootstrap"
        kept.mkdir(parents=True, exist_ok=True)
        words = ["--variant=minbase", f"--cache-dir={kept}", f"--include={','.join(packages)}"]
        call("debootstrap", *words, suite, root, mirror)

    def boot(self):
        words = ["--boot", "--quiet", "--register=no", "--keep-unit", "--console=pipe"]
        words += ["--capability=CAP_BPF,CAP_PERFMON,CAP_SYSLOG,CAP_CHECKPOINT_RESTORE"]
        # What is told of by filters is systemd's doing, not the container's.
        words += ["--system-call-filter=bpf perf_event_open pidfd_getfd"]
        self.container = subprocess.Popen(
            ["systemd-nspawn", *words, "-D", self.root],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(self.is_up, "the end of its boot", alive=lambda: self.container.poll() is None)

    def is_up(self):
        """systemd-nspawn's child is systemd at last; one before it goes when that is begun."""
        own = self.container.pid
        children = pathlib.Path(f"/proc/{own}/task/{own}/children").read_text(encoding="ascii")
        self.first = children.split()[0] if children else None
        return self.first and self.ask("systemctl", "is-system-running") in ("running", "degraded")

    def command(self, *words):
        return ["nsenter", "-t", self.first, "-a", "--wd=/", *ENVIRONMENT, *words]

    def run(self, *words):
        return call(*self.command(*words))

    def ask(self, *words):
        """What it says, whatever it makes of it."""
        return subprocess.run(
            self.command(*words), capture_output=True, text=True, timeout=PATIENCE, check=False
        ).stdout.strip()

    def refused(self, *words):
        """What a command says that must fail."""
        done = subprocess.run(
            self.command(*words), capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode != 0, f"{' '.join(words)} succeeded:\n{done.stdout}"
        return done.stdout + done.stderr

    def files(self):
        """All that is on its disk and is a package's or an administrator's."""
        found = self.run("find", "/", "-xdev", "-printf", "%p\\n").splitlines()
        return {path for path in found if not NOBODYS.match(path)}

    def end(self):
        if self.container and self.container.poll() is None:
            self.container.terminate()  # systemd-nspawn asks systemd to halt
            try:
                self.container.wait(30)
            except subprocess.TimeoutExpired:
                self.container.kill()
                self.container.wait()
