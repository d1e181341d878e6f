# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/cluster.md, and who types them as they are printed there."""

import os
import re
import subprocess
import tempfile

from tap import read, write

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TEXT = read(f"{ROOT}/docs/cluster.md")


def five():
    """From nothing to a flame graph."""
    counted = re.search("^Five commands.*?^```\n(.*?)^```", TEXT, re.M | re.S)[1].splitlines()
    assert len(counted) == 5, counted
    return counted


def gateway():
    """From agents that send themselves to a gateway, and what it says of itself."""
    lines = re.search("^## A gateway .*?^```\n(.*?)^```", TEXT, re.M | re.S)[1].splitlines()
    assert [line.split()[0] for line in lines] == [*["kubectl"] * 2, "helm", *["kubectl"] * 2]
    return lines


def within_sentences(program):
    """A program's commands that stand in the page's sentences, as often as they stand there."""
    return [" ".join(found.split()) for found in re.findall(f"`({program} [^`]+)`", TEXT)]


class Shell:
    """At the top of the tree, as it is with this build. `programs` are found first: {name: path}.
    sudo goes on as it is: root types here, and sudo's own PATH would hide them."""

    def __init__(self, build, programs):
        self.folder, tools = tempfile.mkdtemp(), tempfile.mkdtemp()
        for name in set(os.listdir(ROOT)) - {"build"}:
            os.symlink(f"{ROOT}/{name}", f"{self.folder}/{name}")
        os.symlink(build, f"{self.folder}/build")
        for name, path in programs.items():
            os.symlink(path, f"{tools}/{name}")
        os.chmod(write(f"{tools}/sudo", '#!/bin/sh\nexec "$@"\n'), 0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "KUBECACHEDIR": tools,
        }

    def __call__(self, line):
        """All that it said."""
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env=self.environment,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}"
        return done.stdout
