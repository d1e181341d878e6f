#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""in_andiron.so and out_andiron.so in a host that speaks Fluent Bit's interface for plugins found
by name, as its flb_plugin_proxy.c and proxy/go do.

MODULE, OUTPUT: in_andiron.so, out_andiron.so
FUNCTIONS: a library with those that Fluent Bit 5 exports
TEST_PLUGINS: the folders of andiron's plugins
ANDIRON, WORKLOAD: the command, and a program that takes CPU time
"""

import _ctypes
import ctypes
import os
import re
import shutil
import struct
import sys
import time

from answers import TAKEN, Server
from tap import ANDIRON, WORKLOAD, Background, case, main, need_root, run, write
from waiting import until

MODULE, OUTPUT = os.environ["MODULE"], os.environ["OUTPUT"]
OK, RETRY, ERROR = 1, 2, 0
Property = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
Text = ctypes.c_char_p
# What the plugin gives a printf: four texts.
Log = ctypes.CFUNCTYPE(None, ctypes.c_int, Text, ctypes.c_int, Text, Text, Text, Text, Text)


class Definition(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int) for n in ("type", "proxy", "flags")]
    _fields_ += [(n, ctypes.c_char_p) for n in ("name", "description")]
    _fields_ += [("signals", ctypes.c_int)]


class Api(ctypes.Structure):
    _fields_ = [("output_property", Property), ("input_property", Property)]
    _fields_ += [("unused", ctypes.c_void_p * 2), ("log", Log)]


class Input(ctypes.Structure):
    _fields_ = [("name", Text), ("api", ctypes.POINTER(Api)), ("instance", ctypes.c_void_p)]


class Host:
    """One plugin with these properties; `signals` of it are said, and whether it is an output."""

    def __init__(self, module=MODULE, kind=1, signals=0, **properties):
        self.module = ctypes.CDLL(module)
        self.log, self.records = [], []
        self.kept = {
            k.encode(): ctypes.create_string_buffer(v.encode()) for k, v in properties.items()
        }
        read = Property(self.property)
        self.api = Api(
            **{("output" if kind == 2 else "input") + "_property": read},
            log=Log(
                lambda level, file, line, form, *texts: self.log.append(
                    (level, b"".join(texts).decode())
                )
            ),
        )
        self.input = Input(b"andiron", ctypes.pointer(self.api), 77)
        self.definition = Definition()
        assert self.module.FLBPluginRegister(ctypes.byref(self.definition)) == 0
        assert (self.definition.type, self.definition.proxy) == (kind, 11)
        assert (self.definition.name, self.definition.signals) == (b"andiron", signals)

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

    def flush(self, chunk):
        return self.module.FLBPluginFlush(chunk, ctypes.c_size_t(len(chunk)), b"tag")

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


class FluentBit5:
    """A process as Fluent Bit 5 is; its plugins are copies, since one that is loaded stays bound to
    what was there."""

    def __init__(self):
        self.functions = ctypes.CDLL(os.environ["FUNCTIONS"], mode=ctypes.RTLD_GLOBAL)
        self.functions.taken.restype = ctypes.c_void_p
        self.full = ctypes.c_int.in_dll(self.functions, "full")
        self.offered = ctypes.c_int.in_dll(self.functions, "offered")

    def taken(self, signal):
        size = ctypes.c_size_t()
        data = self.functions.taken(signal, ctypes.byref(size))
        return ctypes.string_at(data, size.value) if data else b""

    @staticmethod
    def load(module, **properties):
        copy = os.path.abspath("5-" + os.path.basename(module))
        if not os.path.exists(copy):
            shutil.copy(module, copy)
        dirs = os.environ["TEST_PLUGINS"]
        return Host(copy, plugin_dirs=dirs, worker=ANDIRON, **properties)


def own(pid, more="", other=""):
    text = f"""pyroscope.ebpf "work" {{
  targets          = [{{"__process_pid__" = "{pid}", "service_name" = "work", "pod" = "p1"}}{other}]
  targets_only     = true
  forward_to       = [embed.profiles.fluent_bit.receiver]
  collect_interval = "1s"
{more}}}
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
        config = own(work.pid, "  load_probe = true\n")
        inputs = host(config=config, worker=ANDIRON, target_labels="pod")
        assert inputs.start() > 0, inputs.text()
        assert [l for level, l in inputs.log if level == 2 and "load_probe" in l], inputs.log
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
        (("target_labels", ",".join("abcdefghijklmnopq")),): "target_labels has more than 16 names",
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
def signals():
    """Fluent Bit 5 gets profiles with names, and metrics where they are asked for; before 5 there
    are none of the first, and an output of profiles does not start"""
    need_root()
    for signal, words in (("profiles", "need 5.0 or later"), ("metrics", "prometheus_scrape")):
        old = host(emit=signal + ",records")
        assert old.start() < 0 and f"emit has {signal}, " in old.text(), old.text()
        assert words in old.text(), old.text()
    old = Host(OUTPUT, 2, url="http://127.0.0.1:1")
    assert old.start() < 0 and "use 5.0 or later" in old.text(), old.text()
    five = FluentBit5()
    with Background(WORKLOAD, "600") as work, Background(WORKLOAD, "600") as other:
        inputs = five.load(MODULE, interval_sec="1", config=own(work.pid))
        assert inputs.start() > 0, inputs.text()
        until(lambda: inputs.collect() or b"work" in five.taken(0), "a profile")
        request = five.taken(0)
        for word in (b"service.name", b"pod", b"p1", b"main", b"samples"):
            assert word in request, (word, request)
        inputs.end()
        assert not inputs.records and not five.taken(1), "it gave what nobody asked for"
        five.full.value = 1
        inputs = five.load(
            MODULE,
            interval_sec="1",
            config=own(work.pid, other=f', {{"__process_pid__" = "{other.pid}", "pod" = "p2"}}'),
            emit="profiles, metrics, records",
        )
        assert inputs.start() > 0, inputs.text()

        def is_refused():
            five.offered.value = 0
            records = inputs.collect()
            assert five.offered.value <= 1, "it offered more to a pipeline that is full"
            return any("refused" in r.get("labels", "") for _, r in records)

        until(is_refused, "a count of what the pipeline did not take")
        assert "Fluent Bit has not taken the metrics" in inputs.text(), inputs.text()
        five.full.value = 0
        until(lambda: inputs.collect() and five.taken(1), "metrics")
        assert b"# TYPE andiron_samples_taken_total counter" in five.taken(1)
        taken = re.search(rb"^andiron_samples_taken_total \S+ (\d+)$", five.taken(1), re.M)
        assert abs(int(taken[1]) / 1000 - time.time()) < 60, five.taken(1)
        inputs.end()


# --- The output ---


def pack(value):
    """msgpack, as Fluent Bit's library writes it."""
    if isinstance(value, str):
        value = value.encode()
        return b"\xda" + struct.pack(">H", len(value)) + value
    if isinstance(value, bytes):
        return b"\xc4" + bytes([len(value)]) + value
    if isinstance(value, dict):
        body = b"".join(pack(k) + pack(v) for k, v in value.items())
        return b"\xde" + struct.pack(">H", len(value)) + body
    if isinstance(value, list):
        return b"\xdc" + struct.pack(">H", len(value)) + b"".join(map(pack, value))
    if value is None:
        return b"\xc0"
    return (b"\xd3" + struct.pack(">q", value)) if value < 0 or value > 127 else bytes([value])


def chunk(service, functions):
    """A profile of one stack, leaf first, with 3 samples of 10 ms."""
    strings = ["", "samples", "count", "cpu", "nanoseconds", "/bin/shop"] + functions
    named = [{"id": 0, "name": 6 + i, "filename": 0} for i in range(len(functions))]
    at = [
        {"mapping_index": 1, "address": 16 + i, "lines": [{"function_index": 1 + i, "line": 7}]}
        for i in range(len(functions))
    ]
    profile = {
        "profile_id": bytes(16),
        "attributes": {},
        "sample_types": [{"type": 1, "unit": 2, "aggregation_temporality": 0}],
        "sample": [
            {"location_index": list(range(1, 1 + len(functions))), "values": [3], "attributes": [1]}
        ],
        "mappings": [{}, {"memory_start": 0, "memory_limit": 0, "filename": 5, "attributes": [1]}],
        "locations": [{}] + at,
        "functions": [{}] + named,
        "attribute_table": {"": "", "process.executable.build_id.gnu": "abcdef0123456789"},
        "string_table": strings,
        "time_nanos": time.time_ns(),
        "duration_nanos": 10**9,
        "period_type": {"type": 3, "unit": 4, "aggregation_temporality": 0},
        "period": 10**7,
    }
    scope = {"instrumentation_scope": {"name": None, "attributes": {}}, "profiles": [profile]}
    resource = {"attributes": {"service.name": service, "process.pid": 4711}}
    all_of_it = [{"resource": resource, "scope_profiles": [scope], "schema_url": None}]
    return pack({"meta": {}, "profiles": all_of_it})


@case
def output():
    """a chunk is OK once the writer has it, and comes to Pyroscope with its labels and functions"""
    server = Server(TAKEN)
    FluentBit5()
    out = FluentBit5.load(OUTPUT, kind=2, signals=16, url=f"http://127.0.0.1:{server.port}")
    assert out.start() > 0, out.text()
    assert out.flush(chunk("shop", ["leaf", "main"]) + chunk("till", ["open"])) == OK, out.text()

    def pushed():
        return b"".join(body for _, _, _, body in server.seen)

    until(lambda: b"till" in pushed(), "both profiles of a chunk")
    for word in (b"service_name", b"shop", b"process_cpu"):
        assert word in pushed(), (word, pushed())
    assert out.flush(b"\x81\xa8profiles\x91") == ERROR, "what is cut off was taken"
    assert "the chunk's bytes are no profiles" in out.text(), out.text()
    empty = pack({"meta": {}, "profiles": []})
    assert out.flush(empty) == OK and out.flush(b"") == OK
    assert out.flush(pack({"meta": {}, "profiles": [1]})) == ERROR, "what is no profile was taken"
    assert "profiles left out of a chunk: 1" in out.text(), out.text()
    assert out.flush(pack({"profiles": [1]}) + chunk("shop", ["leaf"])) == OK, out.text()
    out.end()
    server.stop()


@case
def output_retries():
    """while a writer cannot take more, Fluent Bit is to come again"""
    text = """fluent_bit.profiles {
  forward_to = []
}
"""
    FluentBit5()
    config = os.path.abspath(write("nobody.alloy", text))
    out = FluentBit5.load(OUTPUT, kind=2, signals=16, config=config)
    assert out.start() > 0, out.text()
    assert out.log[0][0] == 2 and "name a writer's receiver" in out.log[0][1], out.log
    assert out.flush(chunk("shop", ["leaf", "main"])) == RETRY
    assert "forward_to of fluent_bit.profiles is empty" in out.text(), out.text()
    out.end()


@case
def output_mistakes():
    """an output without a place to send to does not start, and says why"""
    FluentBit5()
    text = 'pyroscope.write "x" {\n  endpoint {\n    url = "http://127.0.0.1:1"\n  }\n}\n'
    idle = os.path.abspath(write("idle.alloy", text))
    for properties, words in {
        (): "give either url",
        (("url", "http://x"), ("config", idle)): "give either url",
        (("url", 'http://"'),): "a character that no URL has",
        (("config", idle),): "has no block fluent_bit.profiles",
        (("config", "/none.alloy"),): "none.alloy",
    }.items():
        out = FluentBit5.load(OUTPUT, kind=2, signals=16, **dict(properties))
        assert out.start() < 0
        assert words in out.text(), out.text()
        out.end()


def run_unloaded():
    """An output whose file is closed, and whose host's structure is gone, without its exit."""
    FluentBit5()
    out = FluentBit5.load(OUTPUT, kind=2, signals=16, url="http://127.0.0.1:1")
    assert out.start() > 0, out.text()
    ctypes.memset(ctypes.byref(out.api), 0, ctypes.sizeof(out.api))
    _ctypes.dlclose(out.module._handle)
    out.log.clear()
    assert out.flush(chunk("shop", ["leaf", "main"])) == OK, out.text()
    until(lambda: "127.0.0.1:1" in out.text(), "a line of a thread that goes on")


@case
def unloaded():
    """threads of a plugin outlive its unloading, which has no exit where another fails to start"""
    run(sys.executable, __file__, "unloaded").expect(0)
    for module in (MODULE, OUTPUT):
        run("readelf", "-d", module).expect(0, "NODELETE")


@case
def exports():
    """they export their functions, need libandiron and what it needs, and are no flb- files"""
    for module, calls, needs in (
        (MODULE, {"InputCallback", "InputCleanupCallback"}, {"libz.so.1", "libprotobuf-c.so.1"}),
        (OUTPUT, {"Flush"}, {"libz.so.1"}),
    ):
        symbols = run("nm", "-D", "--defined-only", module).expect(0).out
        names = {line.split()[-1] for line in symbols.splitlines()}
        assert names == {"FLBPlugin" + c for c in calls | {"Register", "Init", "Exit"}}, names
        needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", module).expect(0).out)
        assert set(needed) <= {"libandiron.so.1", "libc.so.6"} | needs, needed
        assert not os.path.basename(module).startswith("flb-")


if sys.argv[1:] == ["unloaded"]:
    run_unloaded()
else:
    main()
