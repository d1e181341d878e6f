# SPDX-License-Identifier: Apache-2.0
"""Interpreters to run: the system's, those that pyenv has built, and those of other Debian suites,
which are unpacked beside each other in the cache and run in a root of their own."""

import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../kernels"))
import kernels  # noqa: E402
from packages import Missing, Root  # noqa: E402

SUITES = {"3.13": "trixie", "3.14": "sid"}


class Interpreter:
    """`command` runs it; `root` is where its files are."""

    def __init__(self, origin, version, command, root="/"):
        self.origin, self.version, self.command, self.root = origin, version, command, root

    def __str__(self):
        return f"{self.origin}'s {self.version}"

    @property
    def minor(self):
        return int(self.version.split(".")[1])


def asked(command):
    text = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
    done = subprocess.run([*command, "-c", text], stdout=subprocess.PIPE, timeout=60, check=False)
    return done.stdout.decode().strip() if done.returncode == 0 else None


def asked_path():
    """The system's own binary, without what stands before it on the PATH."""
    return os.path.realpath("/usr/bin/python3")


def py_spy():
    """The program of that name, of one version, in the cache; None: it cannot be had."""
    folder = os.path.join(kernels.cache(), "py-spy-0.4.0")
    with kernels.Lock("py-spy"):
        if not os.path.exists(os.path.join(folder, "bin/py-spy")):
            pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder]
            subprocess.run([*pip, "py-spy==0.4.0"], stdin=subprocess.DEVNULL, check=False)
    path = os.path.join(folder, "bin/py-spy")
    return path if os.path.exists(path) else None


def system():
    if os.path.exists("/usr/bin/python3"):
        yield Interpreter("Debian", asked(["/usr/bin/python3"]), ["/usr/bin/python3"])


def pyenv():
    home = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    for path in glob.glob(os.path.join(home, "versions/3.*/bin/python3")):
        version = re.search(r"versions/(3\.\d+\.\d+t?)/", path)
        if version:
            yield Interpreter("pyenv", version[1], [path])


def unpacked(minor):
    """One of another suite, fetched when it is not in the cache yet; None: it cannot be had."""
    folder = os.path.join(kernels.cache(), f"python-{minor}")
    command = ["chroot", folder, f"/usr/bin/python{minor}"]
    with kernels.Lock(f"python-{minor}"):
        if not os.path.exists(os.path.join(folder, "done")):
            root = Root(folder + "-apt", "amd64", [SUITES[minor]])
            os.makedirs(root.folder, exist_ok=True)
            try:
                root.update()
                root.unpack(root.with_dependencies([f"python{minor}"]), folder)
            except Missing as why:
                print(f"# python {minor}: {why}")
                return None
            for name in ("bin", "sbin", "lib", "lib64"):
                if not os.path.lexists(os.path.join(folder, name)):
                    os.symlink(f"usr/{name}", os.path.join(folder, name))
            os.makedirs(os.path.join(folder, "tmp"), exist_ok=True)
            open(os.path.join(folder, "done"), "w", encoding="utf-8").close()
    version = asked(command)
    return Interpreter(SUITES[minor], version, command, folder) if version else None


def all_of(depth):
    """One of each origin and minor version. Of the fast run: the oldest, the newest and two
    between; of the quick one: all that are here."""
    found = {}
    for one in [*system(), *pyenv()]:
        found.setdefault((one.minor, one.origin), one)
    ret = [found[key] for key in sorted(found)]
    if depth == "fast":
        wanted = {ret[0].minor, ret[-1].minor, 9, 11}
        return [one for one in ret if one.minor in wanted]
    if depth == "quick":
        return ret
    return ret + [one for one in map(unpacked, SUITES) if one]
