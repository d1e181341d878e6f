#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""host-abi/bindings/python, with real samples of a real program.

TEST_LIBRARY, TEST_PLUGINS: libandiron.so and the folders of plugins
ANDIRON: the command, which parses files and reports profiles
WORKLOAD: a program whose function workload_70 takes most of its time
"""

import contextlib
import errno
import gc
import gzip
import json
import os
import re
import sys
import tempfile
import threading
import time
import warnings
from unittest import mock

import andiron
from andiron import library as c
from running import cpu_seconds
from tap import ANDIRON, WORKLOAD, Background, case, folded, main, need_root, read, run, share
from waiting import until

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
HOW = {
    "library": os.environ["TEST_LIBRARY"],
    "plugin_dirs": os.environ["TEST_PLUGINS"].split(":"),
    "worker": ANDIRON,
}
ROUNDS = 36
SILENT = 'discovery.process "all" {}'
SAMPLED = """pyroscope.ebpf "e" {
  forward_to       = [embed.profiles.mine.receiver]
  targets_only     = true
  targets          = [{"__process_pid__" = "%d"}]
  sample_rate      = 499
  collect_interval = "1s"
}
embed.profiles "mine" {}
"""


def own(what):
    return len(os.listdir(f"/proc/self/{what}"))


def open_files():
    """What is open, for whoever looks for the one that was left."""
    links = []
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            links.append(os.readlink(f"/proc/self/fd/{fd}"))
    return " ".join(links)


@contextlib.contextmanager
def nothing_left():
    """Threads and descriptors are after the block what they were before; /proc may show a thread
    for a moment after it was joined."""
    before = own("task"), own("fd")
    yield
    gc.collect()
    until(
        lambda: (own("task"), own("fd")) == before,
        lambda: f"threads and descriptors: {before} before, {own('task'), own('fd')} after"
        f" ({open_files()}): that",
        seconds=30,
    )


@contextlib.contextmanager
def thread_exceptions():
    """The exceptions that threads end with."""
    caught, old = [], threading.excepthook
    threading.excepthook = caught.append
    try:
        yield caught
    finally:
        threading.excepthook = old


@contextlib.contextmanager
def refused(code, *words):
    try:
        yield
    except andiron.Error as error:
        assert error.code == code, error
        missing = [word for word in words if word not in str(error)]
        assert not missing, f"no {missing} in {error}"
    else:
        raise AssertionError("nothing was refused")


@contextlib.contextmanager
def busy_thread():
    """A thread that always wants Python's lock."""
    end = threading.Event()

    def work():
        while not end.is_set():
            sum(range(100))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def members(struct, header="embed"):
    """Of a structure in a header of the ABI."""
    text = read(os.path.join(ROOT, f"host-abi/include/andiron/{header}.h"))
    body = re.search(rf"^struct {struct} {{\n(.*?)^}};", text, re.M | re.S)[1]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    names = []
    for line in body.split(";"):
        function = re.search(r"\(\*(\w+)\)", line)
        names += [function[1]] if function else re.findall(r"(\w+)(?=,|\[|$)", line.strip())
    return names


def go_members(struct, file="library"):
    """Of a structure that the binding for Go declares: nBytes is n_bytes, FileID file_id."""
    text = read(os.path.join(ROOT, f"host-abi/bindings/go/{file}.go"))
    names = re.findall(
        r"^\t(\w+) ", re.search(rf"^type {struct} struct {{\n(.*?)^}}", text, re.M | re.S)[1], re.M
    )
    capital = re.compile("[A-Z]+(?![a-z])|[A-Z]")
    return [capital.sub(lambda m: "_" + m[0].lower(), name).lstrip("_") for name in names]


def rust_members(struct, file="c"):
    """Of a structure that the binding for Rust declares; r#type is type."""
    text = read(os.path.join(ROOT, f"host-abi/bindings/rust/src/{file}.rs"))
    body = re.search(rf"^(?:pub )?struct {struct} {{\n(.*?)^}}", text, re.M | re.S)[1]
    return re.findall(r"^    (?:pub )?(?:r#)?(\w+): ", body, re.M)


# What the bindings for Go and Rust call the structures of other headers.
GO_STRUCTS = {
    ("abi", "targets"): {"str": "cStr"},
    ("target", "targets"): {"label": "cLabel", "target": "cTarget", "targets": "cTargets"},
    ("batch", "batch"): {
        "string": "cStringRecord",
        "column": "cColumn",
        "segment": "cSegment",
        "batch": "cBatch",
        "profile_type": "ProfileType",
        **{
            name: name.capitalize()
            for name in (
                ["function", "line", "location", "mapping", "stack", "attribute", "link"]
                + ["group", "row", "loss", "encoded"]
            )
        },
    },
}


@case
def declarations():
    """structures and version are those of the library, also in the bindings for Go and Rust"""
    embed, profile_ = members("andiron_embed"), members("andiron_profile")
    assert embed == [name for name, _ in c.Embed._fields_] == go_members("cEmbed")
    assert embed == rust_members("Embed") and profile_ == rust_members("Profile")
    assert profile_ == [name for name, _ in c.Finished._fields_] == go_members("cProfile")
    for (header, file), structs in GO_STRUCTS.items():
        for name, its in structs.items():
            there = members(f"andiron_{name}", header)
            here = go_members(its, file)
            assert here == there, (name, here, there)
            framed = its.startswith("c") and its != "cStringRecord"
            rust = (its[1:], "c") if framed else (its.removeprefix("c"), "batch")
            assert rust_members(*rust) == there, (name, rust, there)
    project = read(os.path.join(ROOT, "host-abi/bindings/python/pyproject.toml"))
    crate = read(os.path.join(ROOT, "host-abi/bindings/rust/Cargo.toml"))
    version = f'version = "{andiron.version(HOW["library"])}"'
    assert version in project and version in crate


@case
def profile():
    """with andiron.Profile(pid=…): the program's function is in each form of the profile"""
    need_root()
    with Background(WORKLOAD, "60") as worker, nothing_left():
        with andiron.Profile(worker.pid, sample_rate=997, **HOW) as p:
            until(lambda: cpu_seconds(worker.pid) > 0.5, "half a second of work")
            with refused_by(RuntimeError):
                p.write("early.pb.gz")
        for suffix in (".pb.gz", ".folded", ".html"):
            p.write("x" + suffix)
        assert p.ledger["taken"] >= p.samples > 100, p.ledger
        with refused_by(ValueError):
            p.write("x.png")
        with refused_by(FileNotFoundError):
            p.write("nowhere/x.html")
    report = json.loads(run(ANDIRON, "report", "--json", "x.pb.gz").out)
    assert report["by_self"][0]["function"] == "workload_70", report["by_self"][0]
    assert share(folded("x.folded"), "workload_70") > 0.4
    assert "workload_70" in read("x.html")
    assert sorted(f for f in os.listdir() if f.startswith("x")) == ["x.folded", "x.html", "x.pb.gz"]
    with refused_by(ProcessLookupError):
        andiron.Profile(worker.pid, **HOW)


@case
def profile_in_any_folder():
    """a Profile's own folder stands below TMPDIR, whose name may have any letter"""
    need_root()
    with tempfile.TemporaryDirectory(suffix="é😀") as folder:
        with mock.patch.object(tempfile, "tempdir", folder), andiron.Profile(**HOW):
            sum(range(100))


@case
def profile_whose_end_is_interrupted():
    """what was taken is told, and what was written is had"""
    need_root()
    stop = andiron.Agent.stop

    def interrupted(agent, deadline):
        stop(agent, deadline)
        raise KeyboardInterrupt

    profile = andiron.Profile(**HOW)
    with mock.patch.object(andiron.Agent, "stop", interrupted):
        with refused_by(KeyboardInterrupt), profile:
            end = time.process_time() + 0.5
            while time.process_time() < end:
                sum(range(1000))
    assert profile.samples > 0, profile.ledger
    profile.write("interrupted.folded")


@contextlib.contextmanager
def refused_by(kind, words=""):
    try:
        yield
    except kind as error:
        assert words in str(error), error
        return
    raise AssertionError(f"no {kind.__name__}")


@case
def process_ids():
    """what is no process's id is refused before anything is sampled, in a sentence"""
    for wrong in ([], ()):
        with refused_by(ValueError, "names no process"):
            andiron.Profile(wrong, **HOW)
    for wrong in (0, -1, 1 << 31, 1 << 40, [os.getpid(), 1 << 64]):
        with refused_by(ValueError, "is no process id"):
            andiron.Profile(wrong, **HOW)
    for wrong in (str(os.getpid()), b"1", [str(os.getpid())], 1.5):
        with refused_by(TypeError):
            andiron.Profile(wrong, **HOW)


@case
def deadlines():
    """a deadline of any size, none and the longest too, ends a run"""
    for deadline in (0, -1, float("inf"), float("-inf"), 1e300):
        with andiron.Agent(**HOW) as agent:
            agent.load(SILENT)
            agent.start()
            agent.stop(deadline)


@case
def callbacks():
    """profiles come by callback; one that raises costs its profile, is reported and counted"""
    need_root()
    profiles, log, inside = [], [], []

    def take(p):
        profiles.append(p)
        inside.append(json.loads(agent.ledger()))
        for function in (agent.close, agent.stop, lambda: agent.load(SILENT)):
            with refused(errno.EDEADLK, "callback"):
                function()
        if len(profiles) == 1:
            sys.exit("the first")

    def line(level, component, text):
        log.append((level, component, text))
        agent.metrics()  # from the loop's thread, which it would wait for

    with thread_exceptions() as raised, nothing_left(), busy_thread():
        with andiron.Agent(log=line, log_level="debug", **HOW) as agent:
            agent.on_profiles("mine", take)
            agent.load(SAMPLED % os.getpid())
            agent.start()
            until(lambda: len(profiles) > 1, "a second profile")
            assert "andiron_" in agent.metrics()
            assert json.loads(agent.health()) and json.loads(agent.targets())
            agent.stop()
            ledger = json.loads(agent.ledger())["writers"]["embed.profiles.mine"]
    assert {level for level, _, _ in log} <= set(c.LEVELS) and log
    codes = [one.exc_value.code for one in raised]
    assert set(codes) == {"the first", errno.EDEADLK} and codes.count("the first") == 1, codes
    counts = [p.samples for p in profiles]
    assert ledger["dropped"] == {"embed.profiles.mine:refused": counts[0]}, ledger
    assert ledger["delivered"] == sum(counts[1:]) > 0, ledger
    assert all(p.name == "mine" and p.start_ns < p.end_ns for p in profiles)
    assert b"busy_thread" not in profiles[-1].data and gzip.decompress(profiles[-1].data)
    assert inside[0]["taken"] > 0


@case
def configurations():
    """a bad configuration is refused in the library's words, and what runs goes on"""
    with andiron.Agent(**HOW) as agent:
        agent.on_profiles("mine", lambda p: None)
        with refused(errno.EEXIST, "mine"):
            agent.on_profiles("mine", lambda p: None)
        with refused(errno.EINVAL, "no configuration"):
            agent.start()
        with refused(errno.EINVAL, "my.alloy:2", 'no argument "sample_rat"'):
            agent.load('pyroscope.ebpf "e" {\n sample_rat = 9 }', "my.alloy")
        with refused(errno.ENOENT, "nowhere.alloy"):
            agent.load_file("nowhere.alloy")
        agent.load(SILENT)
        agent.start()
        with refused(errno.EINVAL, "discovery.proces"):
            agent.load('discovery.proces "typo" {}')
        with refused(errno.EBUSY):
            agent.on_profiles("late", lambda p: None)
        agent.load('embed.profiles "mine" {}')
        with refused(errno.ETIMEDOUT, "deadline") as late:
            agent.stop(deadline=1e-9)
    with refused(errno.EBADF, "closed"):
        agent.metrics()
    agent.close()
    with refused(errno.ENOENT, "nowhere.so", "library=PATH"):
        andiron.Agent(library="./nowhere.so")
    for wrong in ({"log_level": "loud"}, {"workers": -1}, {"plugin_dirs": ["/a:b"]}):
        with refused_by(ValueError):
            andiron.Agent(**{**HOW, **wrong})
    with refused_by(ValueError), andiron.Agent(**HOW) as agent:
        agent.on_profiles("zero\0", print)


def one_round(text=SILENT, **how):
    with andiron.Agent(**how, **HOW) as agent:
        agent.on_profiles("mine", lambda p: None)
        agent.load(text)
        agent.start()
        agent.load(text)
        agent.stop()


@case
def rounds():
    """some dozens of agents leave no thread and no descriptor"""
    one_round()
    with nothing_left():
        for _ in range(ROUNDS):
            one_round()


@case
def python_lock():
    """calls that wait for a callback let it have Python's lock, however often it is wanted"""
    lines = []
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with nothing_left(), busy_thread(), busy_thread():
            for _ in range(5):
                one_round(log=lambda *line: lines.append(line), log_level="debug")
    finally:
        sys.setswitchinterval(old)
    assert lines


@case
def closing():
    """a close waits for other threads' calls; they end or are refused"""
    for _ in range(10):
        agent = andiron.Agent(**HOW)
        agent.load(SILENT)
        agent.start()
        outcomes, began = [], threading.Barrier(4)

        def ask():
            with contextlib.suppress(threading.BrokenBarrierError):
                began.wait(60)
            while not outcomes or outcomes[-1] != errno.EBADF:
                try:
                    agent.metrics()
                except andiron.Error as error:
                    outcomes.append(error.code)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        began.wait(60)
        agent.metrics()
        agent.close()
        for thread in threads:
            thread.join()
        assert set(outcomes) == {errno.EBADF}, outcomes


@case
def forgotten():
    """an agent that nobody closes is closed when it is collected, and when Python ends"""
    with warnings.catch_warnings(record=True) as warned, nothing_left():
        warnings.simplefilter("always")
        agent = andiron.Agent(**HOW)
        agent.load(SILENT)
        agent.start()
        del agent
        gc.collect()
        until(lambda: not c_open(), "the forgotten agent's end")
        for thread in threading.enumerate():
            if thread is not threading.current_thread():
                thread.join()
    assert [w.category for w in warned] == [ResourceWarning]
    need_root()
    program = f"""import andiron, os
agent = andiron.Agent(log=lambda *line: None, log_level="debug", **{HOW!r})
agent.on_profiles("mine", lambda p: None)
agent.load({SAMPLED!r} % os.getpid())
agent.start()
print("ends")
"""
    ended = run(sys.executable, "-X", "faulthandler", "-c", program).expect(0, "ends")
    assert not ended.err, ended.err


def c_open():
    return sys.modules["andiron.agent"]._open


@case
def forked():
    """the child of a fork is refused its parent's agent, and opens one of its own"""
    with andiron.Agent(**HOW) as agent:
        agent.load(SILENT)
        child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(BaseException):
                with refused(errno.ECHILD, "forked"):
                    agent.metrics()
                agent.close()
                one_round()
                code = 0
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        agent.start()


main()
