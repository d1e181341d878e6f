# SPDX-License-Identifier: Apache-2.0
"""Containers as the sampler sees them: cgroups with the paths that a kubelet gives."""

import contextlib
import os
import uuid

from tap import WORKLOAD, Background, Skip, read, until


def hierarchy():
    """Where the cgroups of containers are: a v1 controller that is mounted, else v2."""
    mounts = [line.split()[1:4] for line in read("/proc/mounts").splitlines()]
    v1 = {
        line.split()[0] for line in read("/proc/cgroups").splitlines()[1:] if line.split()[1] != "0"
    }
    for controller in ("memory", "cpu", "pids"):
        if controller in v1:
            found = [
                where
                for where, kind, options in mounts
                if kind == "cgroup" and controller in options.split(",")
            ]
            break
    else:
        found = [where for where, kind, _ in mounts if kind == "cgroup2"]
    if not found or not os.access(found[0], os.W_OK):
        raise Skip("needs a cgroup hierarchy that is mounted writable")
    return found[0]


def made(path):
    """Whether it could be made: another test's container may take the upper ones away meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        os.makedirs(path)
        return True


class Container(Background):
    """The workload, in the cgroup of a container of the pod `uid`."""

    def __init__(self, uid=None):
        self.uid, self.id = uid or str(uuid.uuid4()), uuid.uuid4().hex * 2
        self.path = f"{hierarchy()}/kubepods/burstable/pod{self.uid}/{self.id}"
        until(lambda: made(self.path), "the cgroup is made")
        super().__init__(
            "sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$1" 600', self.path, WORKLOAD
        )
        self.until(lambda: "workload" in read(f"/proc/{self.pid}/comm"), "the workload began")

    def __exit__(self, *about):
        super().__exit__(*about)
        until(lambda: not read(f"{self.path}/cgroup.procs"), "the cgroup is empty")
        path = self.path
        with contextlib.suppress(OSError):  # the upper ones may be others', too
            for _ in range(4):
                os.rmdir(path)
                path = os.path.dirname(path)
