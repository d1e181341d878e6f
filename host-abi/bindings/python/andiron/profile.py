# SPDX-License-Identifier: Apache-2.0
"""Profile: record some processes while a block runs.

The profile of the whole block is collected and written by `profile.file`, into a folder of its own
until somebody asks for it: an interval's pprof by callback would have to be merged with the next
one's here, and a flame graph could not be made.
"""

import json
import operator
import os
import shutil
import tempfile

from .agent import Agent

SUFFIXES = (".pb.gz", ".folded", ".html")
CONSUMER = "profile.file.block"


class Profile:
    """Samples one process or several from the block's begin to its end.

        with andiron.Profile(pid=1234) as p:
            ...
        p.write("x.pb.gz")

    pid: an id, or several; None: this process
    sample_rate: samples per second of CPU time
    children: also the processes that they start
    deadline: seconds that the end may take
    agent: what Agent takes further
    """

    def __init__(self, pid=None, *, sample_rate=97, children=False, deadline=30.0, **agent):
        self._pids = _processes(os.getpid() if pid is None else pid)
        self._rate, self._children = int(sample_rate), children
        self._deadline, self._how = deadline, agent
        self._agent = self._folder = self._ledger = None

    def __enter__(self):
        if self._folder:
            raise RuntimeError("a Profile is for one block; make another")
        self._folder = tempfile.TemporaryDirectory(prefix="andiron-")
        self._agent = Agent(**self._how)
        try:
            self._agent.load(self._configuration(), "Profile")
            self._agent.start()
        except BaseException:
            self._agent.close()
            raise
        return self

    def __exit__(self, *_):
        try:
            self._agent.stop(self._deadline)
        finally:  # also where that fails, something was taken, and perhaps written
            try:
                self._ledger = json.loads(self._agent.ledger())
            finally:
                self._agent.close()

    @property
    def samples(self):
        """How many samples the profile has."""
        self._expect_end()
        return self._ledger["writers"][CONSUMER]["delivered"]

    @property
    def ledger(self):
        """What became of each sample."""
        self._expect_end()
        return self._ledger

    def write(self, path):
        """Writes the profile: pprof as .pb.gz, folded stacks as .folded, a flame graph as .html.
        A file that is there is replaced as a whole."""
        self._expect_end()
        path = os.fspath(path)
        suffix = next((s for s in SUFFIXES if path.endswith(s)), None)
        if not suffix:
            raise ValueError(f"{path}: the name of a profile ends with one of {SUFFIXES}")
        part = f"{path}.{os.getpid()}.part"
        try:
            shutil.copyfile(self._path(suffix), part)
            os.replace(part, path)
        except BaseException:
            if os.path.exists(part):
                os.unlink(part)
            raise

    def _path(self, suffix):
        return os.path.join(self._folder.name, "profile" + suffix)

    def _expect_end(self):
        if not self._ledger:
            raise RuntimeError("there is no profile before the block's end")

    def _configuration(self):
        targets = ", ".join('{"__process_pid__" = "%d"}' % pid for pid in self._pids)
        paths = ", ".join(json.dumps(self._path(suffix), ensure_ascii=False) for suffix in SUFFIXES)
        return f"""pyroscope.ebpf "block" {{
  forward_to       = [{CONSUMER}.receiver]
  sample_rate      = {self._rate}
  collect_interval = "5s"
  demangle         = "full"
  pid_label        = true
  comm             = "label"
  targets_only     = true
  follow           = {"true" if self._children else "false"}
  targets          = [{targets}]
}}

profile.file "block" {{
  paths = [{paths}]
}}
"""


def _processes(pid):
    """The ids that `pid` stands for. A text would be one for each of its digits."""
    if isinstance(pid, (str, bytes)):
        raise TypeError(f"{pid!r} is no process id: it is a number")
    try:
        pids = [operator.index(pid)]
    except TypeError:
        pids = [operator.index(one) for one in pid]
    if not pids:
        raise ValueError("pid names no process; without it the program profiles itself")
    for one in pids:
        if not 0 < one < 1 << 31:
            raise ValueError(f"{one} is no process id")
        _expect_process(one)
    return pids


def _expect_process(pid):
    try:
        os.kill(pid, 0)
    except PermissionError:
        pass  # it is somebody else's
