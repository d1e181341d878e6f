# SPDX-License-Identifier: Apache-2.0
"""A running configuration: andiron/embed.h as a Python class.

Whatever a program does with an Agent, the library never calls what is gone and is never called
once it is closed. So the C functions that stand for callbacks are kept until andiron_close has
returned; a close waits for the calls of other threads; and an agent that was forgotten is closed
when it is collected, or when Python ends, before callbacks have no interpreter to run in.
"""

import atexit
import contextlib
import ctypes
import dataclasses
import errno
import os
import sys
import threading
import warnings
import weakref

from . import library as c

LONGEST = 86400 * 365  # of a deadline, in seconds


@dataclasses.dataclass(frozen=True)
class FinishedProfile:
    """What was sampled in one interval, encoded."""

    name: str  # of the consumer
    data: bytes  # pprof, gzip
    samples: int
    start_ns: int  # Unix time
    end_ns: int


def _guarded(function, *arguments):
    """Calls what belongs to the user. 0, or -1 after an exception, which goes where those of
    threads go. SystemExit ends nothing: the thread is not Python's."""
    try:
        function(*arguments)
    except BaseException:  # pylint: disable=broad-except
        with contextlib.suppress(BaseException):
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), None)))
        return -1
    return 0


class _Handle:
    """A struct andiron, and what must live as long. Does not know its Agent, which may be
    collected."""

    def __init__(self, lib, how, functions):
        self.lib, self.functions = lib, functions
        self.pid = os.getpid()
        self.pointer = ctypes.c_void_p()
        self.changed = threading.Condition()
        self.callers = []  # threads that are in a call
        self.closing = False
        c.call(lib, "open", ctypes.byref(how), ctypes.byref(self.pointer))
        _open.add(self)

    def call(self, name, *arguments):
        if os.getpid() != self.pid:  # locks may be held by threads that a fork has left behind
            return c.call(self.lib, name, self.pointer, *arguments)
        with self.changed:
            if self.closing:
                raise c.Error(errno.EBADF, "the agent is closed")
            self.callers.append(threading.get_ident())
        try:
            return c.call(self.lib, name, self.pointer, *arguments)
        finally:
            with self.changed:
                self.callers.remove(threading.get_ident())
                self.changed.notify_all()

    def close(self):
        """A further close does nothing, and does not wait for the first, which may be waiting for
        the callback that the further one is called in. Calls of the same thread are not waited
        for: then this is a signal handler that came between Python's steps, and the interrupted
        call finds no pointer."""
        if self.closing or os.getpid() != self.pid:  # the parent's; nothing of it runs here
            return
        try:
            # Ends what others wait for, and refuses where we are in a callback of this agent.
            self.call("stop", 0)
        except c.Error as refused:
            if refused.code == errno.EBADF:
                return
            raise
        with self.changed:
            if self.closing:
                return
            self.closing = True
            me = threading.get_ident()
            try:
                self.changed.wait_for(lambda: all(caller == me for caller in self.callers))
            except BaseException:  # an interrupt: it stays open, for another close
                self.closing = False
                raise
        self.lib.andiron_close(self.pointer)
        self.pointer.value = None
        _open.discard(self)


_open = set()


@atexit.register
def _close_open():
    for handle in list(_open):
        with contextlib.suppress(c.Error):
            handle.close()


def _close_forgotten(handle):
    """The collector runs anywhere: in a callback, or under a lock that a callback waits for. So
    another thread closes, and nobody waits for it."""
    if handle in _open and handle.pid == os.getpid():
        threading.Thread(target=handle.close).start()
        warnings.warn("an andiron.Agent was not closed", ResourceWarning)


class Agent:
    """One instance of andiron: open from its making until close().

    plugin_dirs, worker: folders, and the program that parses files; None: where they are installed
    queue_bytes, workers: bound of each consumer's queue, and threads; 0: the default
    log(level, component, line): called for each line from `log_level` on, by threads of andiron
    library: the path of libandiron.so.1; None: where the system's loader finds it
    """

    def __init__(
        self,
        *,
        plugin_dirs=None,
        worker=None,
        queue_bytes=0,
        workers=0,
        log=None,
        log_level="info",
        library=None,
    ):
        if log_level not in c.LEVELS:
            raise ValueError(f"log_level is one of {', '.join(c.LEVELS)}")
        lib = c.library(None if library is None else os.fspath(library))
        how = c.Embed(size=ctypes.sizeof(c.Embed), log_level=c.LEVELS.index(log_level))
        how.queue_bytes = c.unsigned(queue_bytes, 64, "queue_bytes")
        how.workers = c.unsigned(workers, 32, "workers")
        if plugin_dirs is not None:
            how.plugin_dirs = c.encoded(_folders(plugin_dirs), "plugin_dirs")
        if worker is not None:
            how.worker = c.encoded(os.path.abspath(worker) if worker else "", "worker")
        if log is not None and not callable(log):
            raise TypeError("log is no function")
        if log is not None:
            how.log = c.LOG_FN(_log_function(log))
        self._handle = _Handle(lib, how, [how.log])
        weakref.finalize(self, _close_forgotten, self._handle).atexit = False

    def on_profiles(self, name, take):
        """Has take(profile) called for each profile that `embed.profiles "NAME"` gets, by a thread
        of andiron, one call at a time. If it raises, the profile is dropped, its samples are
        counted as refused, and threading.excepthook is told. Before start()."""

        if not callable(take):
            raise TypeError("take is no function")

        def taken(_, profile):
            return _guarded(lambda: take(_finished(profile.contents)))

        function = c.PROFILE_FN(taken)
        self._handle.functions.append(function)
        self._handle.call("on_profiles", c.encoded(name, "name"), c.FORM_PPROF, function, None)

    def load(self, text, name="(configuration)"):
        """Takes a configuration; of one that runs, changes to it, all or nothing. Gives its
        warnings as text. `name` stands before its findings."""
        raw = text.encode()
        return self._handle.call("load", c.encoded(name, "name"), raw, len(raw))

    def load_file(self, path):
        """The same from a file, or from a folder of *.alloy files."""
        return self._handle.call("load_file", c.encoded(path, "path"))

    def start(self):
        """Returns when all components run. An Error of code EIO names those that could not start;
        the others run."""
        self._handle.call("start")

    def stop(self, deadline=10.0):
        """Ends the run. What is queued is delivered within so many seconds, else a DeadlineError
        is raised. State can still be read."""
        self._handle.call("stop", int(min(max(0, deadline), LONGEST) * 1e9))

    def metrics(self):
        """Prometheus text."""
        return self._handle.call("read", c.READ_METRICS)

    def health(self):
        """JSON, as GET /health of `andiron run`."""
        return self._handle.call("read", c.READ_HEALTH)

    def ledger(self):
        """JSON: what became of each sample."""
        return self._handle.call("read", c.READ_LEDGER)

    def targets(self):
        """JSON: which processes each target has."""
        return self._handle.call("read", c.READ_TARGETS)

    def close(self):
        """Stops at once what still runs, waits for callbacks, and gives everything back."""
        self._handle.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _folders(folders):
    """A folder, or several, as plugin_dirs has them."""
    if isinstance(folders, (str, bytes, os.PathLike)):
        folders = [folders]
    paths = [os.path.abspath(os.fsdecode(folder)) for folder in folders]
    if any(":" in path for path in paths):
        raise ValueError("a folder of plugins has no colon in its path")
    return ":".join(paths)


def _log_function(log):
    def logged(_, level, component, line):
        texts = [t.decode("utf-8", "replace") for t in (component, line)]
        _guarded(log, c.LEVELS[min(level, len(c.LEVELS) - 1)], *texts)

    return logged


def _finished(profile):
    return FinishedProfile(
        profile.name.decode(),
        ctypes.string_at(profile.bytes, profile.n_bytes),
        profile.samples,
        profile.start_ns,
        profile.end_ns,
    )
