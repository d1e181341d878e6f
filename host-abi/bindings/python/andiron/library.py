# SPDX-License-Identifier: Apache-2.0
"""libandiron.so.1 as ctypes sees it, and its failures as exceptions.

The structures are those of andiron/embed.h, member by member; tests/embed compares them with the
header. The library is opened as a CDLL, so Python's lock is not held while one of its functions
runs: most of them wait for a thread that may be on its way into a callback.
"""

import ctypes
import errno
import functools
import os

SONAME = "libandiron.so.1"
FORM_PPROF = 2
READ_METRICS, READ_HEALTH, READ_LEDGER, READ_TARGETS = 1, 2, 3, 4
LEVELS = ("error", "warn", "info", "debug")  # ANDIRON_LOG_*, by number


class Error(Exception):
    """What libandiron refused, in its own words. `code` is a number of the module errno."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class DeadlineError(Error):
    """It has stopped, but not all profiles were delivered in time."""


LOG_FN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_char_p)


class Embed(ctypes.Structure):
    """struct andiron_embed"""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("log_level", ctypes.c_uint32),
        ("plugin_dirs", ctypes.c_char_p),
        ("worker", ctypes.c_char_p),
        ("queue_bytes", ctypes.c_uint64),
        ("workers", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("log", LOG_FN),
        ("answers", ctypes.c_char_p),
    ]


class Finished(ctypes.Structure):
    """struct andiron_profile"""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("form", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("batch", ctypes.c_void_p),
        ("bytes", ctypes.c_void_p),
        ("n_bytes", ctypes.c_uint64),
        ("samples", ctypes.c_uint64),
        ("start_ns", ctypes.c_int64),
        ("end_ns", ctypes.c_int64),
        ("owner", ctypes.c_void_p),
        ("retain", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
    ]


PROFILE_FN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(Finished))

_P, _TEXT, _RET_TEXT = ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)

# Of what the package calls: the arguments, but for the text that each but close hands out.
FUNCTIONS = {
    "open": (ctypes.POINTER(Embed), ctypes.POINTER(_P)),
    "close": (_P,),
    "on_profiles": (_P, _TEXT, ctypes.c_uint32, PROFILE_FN, _P),
    "load": (_P, _TEXT, _TEXT, ctypes.c_uint64),
    "load_file": (_P, _TEXT),
    "start": (_P,),
    "stop": (_P, ctypes.c_int64),
    "read": (_P, ctypes.c_uint32),
}


@functools.lru_cache(maxsize=None)
def library(path=None):
    """The library at that path; None: where the system's loader finds it. It is never unloaded."""
    try:
        lib = ctypes.CDLL(path or SONAME)
        for name, arguments in FUNCTIONS.items():
            function = getattr(lib, "andiron_" + name)
            function.restype = ctypes.c_int32
            function.argtypes = arguments + (() if name == "close" else (_RET_TEXT,))
        lib.andiron_version.restype = ctypes.c_char_p
        lib.andiron_text_free.argtypes = [_P]
        lib.andiron_text_free.restype = None
    except (OSError, AttributeError) as problem:
        raise Error(
            errno.ENOENT,
            f"libandiron cannot be used: {problem}; install Debian's package libandiron1, or say "
            f"where the file is by library=PATH",
        ) from None
    return lib


def call(lib, name, *arguments):
    """Calls a function and gives its text, "" for none; raises what it refuses."""
    pointer = ctypes.c_void_p()
    result = getattr(lib, "andiron_" + name)(*arguments, ctypes.byref(pointer))
    try:
        raw = ctypes.string_at(pointer.value) if pointer.value else b""
    finally:
        lib.andiron_text_free(pointer)
    text = raw.decode("utf-8", "replace")
    if result < 0:
        raise failure(-result, text)
    return text


def failure(code, text=""):
    kind = DeadlineError if code == errno.ETIMEDOUT else Error
    return kind(code, text.rstrip("\n") or os.strerror(code))


def encoded(text, what):
    """A text as C takes it, where it would end at a zero."""
    raw = os.fsencode(text)
    if b"\0" in raw:
        raise ValueError(f"{what} has a zero in it")
    return raw


def unsigned(number, bits, what):
    """ctypes would cut off what does not fit."""
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{what} is {number}")
    return number


def version(path=None):
    """The version of libandiron."""
    return library(path).andiron_version().decode()
