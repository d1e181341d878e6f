#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""in_andiron.so in a host that speaks Fluent Bit's interface for plugins found by name, as its
flb_plugin_proxy.c and proxy/go do.

MODULE: in_andiron.so
TEST_PLUGINS: the folders of andiron's plugins
ANDIRON, WORKLOAD: the command, and a program that takes CPU time
"""

import ctypes
import os
import re
import struct
import time

from tap import ANDIRON, WORKLOAD, Background, case, main, need_root, run, write
from waiting import until

MODULE = os.environ["MODULE"]
Property = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
Text = ctypes.c_char_p
# What the plugin gives a printf: three texts.
Log = ctypes.CFUNCTYPE(None, ctypes.c_int, Text, ctypes.c_int, Text, Text, Text, Text)


class Definition(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int) for n in ("type", "proxy", "flags")]
    _fields_ += [(n, ctypes.c_char_p) for n in ("name", "description")]


class Api(ctypes.Structure):
    _fields_ = [("output_property", Property), ("input_property", Property)]
    _fields_ += [("unused", ctypes.c_void_p * 2), ("log", Log)]


class Input(ctypes.Structure):
    _fields_ = [("name", Text), ("api", ctypes.POINTER(Api)), ("instance", ctypes.c_void_p)]


class Host:
    """One input with these properties."""

    def __init__(self, **properties):
        self.module = ctypes.CDLL(MODULE)
        self.log, self.records = [], []
        self.kept = {
            k.encode(): ctypes.create_string_buffer(v.encode()) for k, v in properties.items()
        }
        self.api = Api(
            input_property=Property(self.property),
            log=Log(
                lambda level, file, line, form, *texts: self.log.append(
                    (level, b"".join(texts).decode())
                )
            ),
        )
        self.input = Input(b"andiron", ctypes.pointer(self.api), 77)
        self.definition = Definition()
        assert self.module.FLBPluginRegister(ctypes.byref(self.definition)) == 0
        assert (self.definition.type, self.definition.proxy) == (1, 11)
        assert self.definition.name == b"andiron"

    def property(self, key, instance):
        assert instance == 77
        return ctypes.addressof(self.kept[key]) if key in self.kept else None

    def start(self):
        return self.module.FLBPluginInit(ctypes.byref(self.input))

    def collect(self):
        """What it calls each second; all records so far."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        assert self.module.FLBPluginInputCallback(ctypes.byref(data), ctypes.byref(size)) == 1
        if size.value:
            self.records += list(unpack(ctypes.string_at(data, size.value)))
            assert self.module.FLBPluginInputCleanupCallback(data) == 1
        return self.records

    def found(self, **wanted):
        """The last record with these values."""
        fits = [r for _, r in self.collect() if wanted.items() <= r.items()]
        return fits[-1] if fits else None

    def end(self):
        assert self.module.FLBPluginExit() == 1

    def text(self):
        return "\n".join(line for _, line in self.log)


def unpack(data):
    """[(time, map)] of msgpack, as far as the plugin writes it."""
    at = 0

    def value():
        nonlocal at
        kind, at = data[at], at + 1
        if kind == 0xDA:
            n = struct.unpack_from(">H", data, at)[0]
            at += 2 + n
            return data[at - n : at].decode()
        at += 8
        return struct.unpack_from({0xCF: ">Q", 0xCB: ">d"}[kind], data, at - 8)[0]

    while at < len(data):
        assert data[at : at + 3] == b"\x92\xd7\0", data[at:]
        seconds, ns = struct.unpack_from(">II", data, at + 3)
        pairs, at = data[at + 11] & 0x0F, at + 12
        yield seconds + ns / 1e9, {value(): value() for _ in range(pairs)}


def host(**properties):
    return Host(plugin_dirs=os.environ["TEST_PLUGINS"], interval_sec="1", **properties)


def own(pid):
    text = f"""pyroscope.ebpf "work" {{
  targets          = [{{"__process_pid__" = "{pid}", "service_name" = "work", "pod" = "p1"}}]
  targets_only     = true
  forward_to       = [embed.profiles.fluent_bit.receiver]
  collect_interval = "1s"
}}
embed.profiles "fluent_bit" {{}}
"""
    return os.path.abspath(write("own.alloy", text))


@case
def machine():
    """without a configuration: CPU time of this machine's services, and the ledger's counts"""
    need_root()
    begun, inputs = time.time(), host()
    with Background(WORKLOAD, "600"):
        assert inputs.start() > 0, inputs.text()
        until(lambda: inputs.found(kind="cpu"), "CPU time of a service")
        until(
            lambda: (inputs.found(name="andiron_samples_taken_total") or {}).get("value"),
            "a count of samples",
        )
        assert inputs.found(name="andiron_ledger_balanced")["value"] == 1
        inputs.end()
    assert all(begun - 2 < at < time.time() + 2 for at, _ in inputs.records)
    assert not [line for level, line in inputs.log if level == 1], inputs.text()


@case
def one_program():
    """a configuration of one's own; sums only grow, to service and target"""
    need_root()
    with Background(WORKLOAD, "600") as work:
        inputs = host(config=own(work.pid), worker=ANDIRON, target_labels="pod")
        assert inputs.start() > 0, inputs.text()
        until(lambda: inputs.found(service="work", target="p1"), "CPU time of the target")
        until(lambda: inputs.found(service="work", target="")["cpu_ms"] > 1000, "a second of work")
        assert host().start() < 0, "a second one was let in"
        inputs.end()
    sums = [r["cpu_ms"] for _, r in inputs.records if r.get("target") == ""]
    assert sums == sorted(sums), sums


@case
def mistakes():
    """a mistake keeps Fluent Bit from starting, and is in its log; the next start is a fresh one"""
    wrong = os.path.abspath(write("wrong.alloy", 'discovery.proces "all" {}\n'))
    for properties, words in {
        (("config", wrong),): "wrong.alloy:1",
        (("config", "/none.alloy"),): "none.alloy",
        (("max_series", "many"),): "max_series is a whole number from 1 to 100000",
    }.items():
        inputs = host(**dict(properties))
        assert inputs.start() < 0
        assert words in inputs.text(), inputs.text()
        inputs.end()
    idle = os.path.abspath(write("idle.alloy", 'embed.profiles "fluent_bit" {}\n'))
    before = len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        inputs = host(config=idle)
        assert inputs.start() > 0, inputs.text()
        until(lambda: inputs.found(name="andiron_ledger_balanced"), "a metric")
        inputs.end()
    until(
        lambda: (len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))) == before,
        "the end of its threads and descriptors",
    )


@case
def exports():
    """it exports the five functions, needs libandiron and the C library, and is no flb- file"""
    symbols = run("nm", "-D", "--defined-only", MODULE).expect(0).out
    names = {line.split()[-1] for line in symbols.splitlines()}
    calls = {"Register", "Init", "InputCallback", "InputCleanupCallback", "Exit"}
    assert names == {"FLBPlugin" + call for call in calls}, names
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", MODULE).expect(0).out)
    assert set(needed) <= {"libandiron.so.1", "libc.so.6"}, needed
    assert not os.path.basename(MODULE).startswith("flb-")


main()
