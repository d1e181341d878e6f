#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is left of the privileges that the agent was started with, and what each of them is for."""

import contextlib
import ctypes
import errno
import os
import platform
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess

from answers import Server, says
from pprofs import Receiver
from running import PATIENT, Agent, cpu_seconds, sender_of, worker_of
from tap import (
    ANDIRON,
    SIX,
    WORKLOAD,
    Background,
    Skip,
    andiron,
    case,
    case_unsanitized,
    environment,
    folded,
    main,
    need_root,
    read,
    run,
    share,
    with_capabilities,
    write,
)

# By number, include/uapi/linux/capability.h.
NUMBERS = {
    "dac_override": 1,
    "dac_read_search": 2,
    "sys_ptrace": 19,
    "sys_admin": 21,
    "sys_nice": 23,
    "sys_resource": 24,
    "syslog": 34,
    "perfmon": 38,
    "bpf": 39,
    "checkpoint_restore": 40,
}
KEPT = [name for name in SIX if name != "syslog"]

SAMPLER = """
pyroscope.ebpf "node" {
  forward_to       = [profile.file.out.receiver]
  targets_only     = false
  sample_rate      = 199
  collect_interval = "1s"
}
"""
WRITER = """
profile.file "out" {
  paths = ["%s"]
}
"""


def mask(names):
    return sum(1 << NUMBERS[name] for name in names)


def graph(*parts, path="out.folded"):
    return write("agent.alloy", "".join(parts) + WRITER % os.path.abspath(path))


def threads(pid):
    """The lines of /proc/PID/status of each thread, as {word: text}."""
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            lines = read(f"/proc/{pid}/task/{tid}/status").splitlines()
            found.append({k: v.strip() for k, _, v in (line.partition(":") for line in lines)})
    return found


def parser_of(pid):
    """The process that parses files for the agent."""
    return worker_of(pid, sends=False)


def sets(thread):
    return {k: int(thread[k], 16) for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}


def in_the_kernel():
    """A program that works there all the time: on an idle machine hardly a sample is there."""
    return Background("dd", "if=/dev/zero", "of=/dev/null", "bs=1M")


@case
def keeps_what_it_declares():
    """Started by root, no thread keeps more than five capabilities, to be used or inherited;
    CAP_SYSLOG is gone, and the kernel's functions have names all the same. The parser has none."""
    need_root()
    with Background(WORKLOAD, "60") as worker, in_the_kernel(), Agent(
        graph(SAMPLER), *PATIENT
    ) as a:
        parser = a.until(lambda: parser_of(a.pid), "the parser")
        a.until(
            lambda: threads(parser)[0]["Seccomp_filters"] == "2",
            "the parser's sandbox, beside the agent's filter",
        )
        own, parsers = threads(a.pid), threads(parser)
        assert len(own) > 2, own
        for thread in own:
            found = sets(thread)
            extra = mask(["sys_nice", "sys_resource"])
            assert found["CapPrm"] & ~extra == mask(KEPT), thread
            assert found["CapEff"] == found["CapPrm"] == found["CapBnd"], thread
            assert found["CapInh"] == found["CapAmb"] == 0, thread
            assert thread["NoNewPrivs"] == "1", thread
        for thread in parsers:
            found = sets(thread)
            assert found["CapPrm"] == found["CapInh"] == found["CapAmb"] == 0, thread
        works_on(a, worker)
        a.signal(signal.SIGTERM)
        a.end().expect(0, "capabilities kept: ", "CAP_BPF")
    stacks = folded("out.folded")
    assert share(stacks, "workload_70") > 0
    assert named(stacks)["kernel"], list(stacks)[:20]


@case
def keeps_nothing_for_nothing():
    """A graph that does not sample keeps no capability at all. A sampler that is added later is
    refused with what to do, and the old graph goes on; a reload that needs nothing is taken."""
    need_root()
    with Agent(graph()) as a:
        for thread in threads(a.pid):
            assert set(sets(thread).values()) == {0} and thread["NoNewPrivs"] == "1", thread
        graph(SAMPLER)
        said = andiron("reload", "--patience", "1m", "status")
        said.expect(1, "which was given up at start", "restart the agent")
        assert "which was given up at start" in a.text(), a.text()
        assert "restart the agent" in a.text(), a.text()
        graph(path="other.folded")
        andiron("reload", "--patience", "1m", "status").expect(0, "reloaded")
        assert a.text().count(": reloaded\n") == 1, a.text()
        a.signal(signal.SIGTERM)
        a.end().expect(0)


@case
def sampler_of_a_module():
    """A module that comes from a server may bring a sampler: what any component may need is kept
    for it, and is enough."""
    need_root()
    sampler = SAMPLER.replace("[profile.file.out.receiver]", "argument.to.value")
    module = 'declare "it" {\n  argument "to" { }\n' + sampler + "}\n"
    with Server(says("", 503)) as server, Background(WORKLOAD, "60") as worker:
        block = f'''
import.http "lib" {{
  url            = "http://127.0.0.1:{server.port}/"
  poll_frequency = "1s"
  poll_timeout   = "900ms"
}}
lib.it "x" {{
  to = [profile.file.out.receiver]
}}
'''
        with Agent(graph(block), *PATIENT) as a:
            a.until_health("lib.it.x", "unhealthy", "waits for a value of import.http.lib")
            for thread in threads(a.pid):
                assert sets(thread)["CapPrm"] & mask(KEPT) == mask(KEPT), thread
            server.answer = says(module)
            works_on(a, worker)
            a.signal(signal.SIGTERM)
            a.end().expect(0, "capabilities kept: ", "CAP_BPF")


@case
def configurations_of_others():
    """What only another user may read can be read again by a reload: for this one is kept."""
    need_root()
    path = graph()
    os.chmod(path, 0o600)
    nobody = pwd.getpwnam("nobody").pw_uid
    os.chown(path, nobody, nobody)
    with Agent(path) as a:
        for thread in threads(a.pid):
            assert sets(thread)["CapPrm"] == mask(["dac_read_search"]), thread
        graph(path="other.folded")
        a.signal(signal.SIGHUP)
        a.until(lambda: "reloaded\n" in a.text(), "an answer")
        assert "not reloaded" not in a.text(), a.text()
        a.signal(signal.SIGTERM)
        a.end().expect(0)


@case
def content_of_others():
    """So is it for a file whose content is in the configuration."""
    need_root()
    nobody = pwd.getpwnam("nobody").pw_uid
    write("secret", "old")
    os.chmod("secret", 0o600)
    os.chown("secret", nobody, nobody)
    with Agent(graph('local.file "s" { filename = "secret" }\n')) as a:
        for thread in threads(a.pid):
            assert sets(thread)["CapPrm"] == mask(["dac_read_search"]), thread
        write("secret", "new")
        a.until(lambda: "reloaded\n" in a.text(), "the new content is taken")
        assert "not reloaded" not in a.text(), a.text()
        a.signal(signal.SIGTERM)
        a.end().expect(0)


@case
def reloads_with_what_is_left():
    """The sampler is loaded again, with plugins that were not used before, by what was kept."""
    need_root()
    more = """
discovery.process "all" { }
discovery.relabel "all" {
  targets = discovery.process.all.targets
}
"""
    targeted = SAMPLER.replace(
        "targets_only     = false", "targets = discovery.relabel.all.output"
    ).replace('"node"', '"other"')
    with Background(WORKLOAD, "60") as worker, Agent(graph(SAMPLER), *PATIENT) as a:
        graph(more, targeted, path="second.folded")
        a.signal(signal.SIGHUP)
        a.until_says("andiron: reloaded")
        a.until_health("pyroscope.ebpf.other", "healthy")
        works_on(a, worker)
        a.signal(signal.SIGTERM)
        a.end().expect(0)
    assert share(folded("second.folded"), "workload_70") > 0


def works_on(agent, worker):
    """The agent has had two seconds of the worker's to sample."""
    before = cpu_seconds(worker.pid)
    agent.until(lambda: cpu_seconds(worker.pid) - before > 2, "work of the worker")


@case_unsanitized
def files_of_others():
    """Without CAP_DAC_OVERRIDE root cannot write into another user's folder: it says so and what to
    do. A folder that is open to all works, and so does a file of root's in it."""
    need_root()
    nobody = pwd.getpwnam("nobody").pw_uid
    os.mkdir("theirs", 0o755)
    os.chown("theirs", nobody, nobody)
    r = andiron("run", "--status", "theirs/status", graph())
    r.expect(1, "theirs/status", "without CAP_DAC_OVERRIDE", "chown root")
    for mode, code, words in ((0o755, None, "without CAP_DAC_OVERRIDE"), (0o1777, 0, "")):
        os.chmod("theirs", mode)
        config = graph(SAMPLER, path="theirs/w.folded")
        with Background(WORKLOAD, "60") as worker, Agent(config, *PATIENT) as a:
            works_on(a, worker)
            a.signal(signal.SIGTERM)
            r = a.end()
        assert words in r.out and code in (None, r.code), (mode, r.code, r.out)
        assert os.path.exists("theirs/w.folded") == (mode == 0o1777), mode


@case_unsanitized
def records_into_the_callers_folder():
    """`record` writes into a folder that is its caller's alone, over a file of the caller's."""
    need_root()
    nobody = pwd.getpwnam("nobody")
    os.mkdir("home", 0o700)
    write("home/w.folded", "from before")
    for path in ("home", "home/w.folded"):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    env = environment(SUDO_UID=str(nobody.pw_uid), SUDO_GID=str(nobody.pw_gid))
    os.chmod(".", 0o755)
    andiron("record", "-F", "199", "-d", "1s", "-o", "home/w.folded", env=env).expect(0, "wrote")
    assert os.stat("home/w.folded").st_uid == nobody.pw_uid
    assert "from before" not in read("home/w.folded")


CAPSET = {"x86_64": 126, "aarch64": 91, "riscv64": 91}


def refusing(number, code):
    """For preexec_fn: a system call answers with this code, by a seccomp filter."""

    def install():
        libc = ctypes.CDLL(None, use_errno=True)
        statements = [
            (0x20, 0, 0, 0),  # the number of the call
            (0x15, 0, 1, number),
            (0x06, 0, 0, 0x00050000 | code),
            (0x06, 0, 0, 0x7FFF0000),
        ]
        code_ = b"".join(struct.pack("HBBI", *s) for s in statements)
        buffer = ctypes.create_string_buffer(code_, len(code_))
        program = struct.pack("HxxxxxxQ", len(statements), ctypes.addressof(buffer))
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
            raise OSError(ctypes.get_errno(), "no filter")

    return install


@case
def a_failing_drop_is_a_refusal():
    """Where giving up fails, or only seems to be done, nothing is started."""
    need_root()
    number = CAPSET[platform.machine()]
    for code in (1, 0):  # EPERM; success that is a lie
        for verb in (("run", graph(SAMPLER)), ("record", "-d", "1s", "-o", "x.folded")):
            r = andiron(*verb, preexec_fn=refusing(number, code))
            assert r.code == 1 and "privileges" in r.err, (code, verb, r.code, r.err)
    assert not os.path.exists("x.folded") and not os.path.exists("out.folded")


# --- Code that has taken over a process ---


def intruded(pid):
    """The environment in which it is, for the program that is started; its victim. Not with a
    sanitizer, which wants to be loaded first."""
    return {"LD_PRELOAD": os.environ["INTRUDER"], "INTRUDER_VICTIM": str(pid)}


def obtained(text):
    """What it got of all that it tried."""
    tried = dict(re.findall(r"^intruder: ([\w-]+) (\d+)$", text, re.M))
    assert tried.pop("done", None) == "0" and len(tried) == 18, text
    print(f"# intruder: {tried}", flush=True)
    return {name for name, error in tried.items() if error == "0"}


def has_landlock():
    """Its version on this kernel; negative: there is none."""
    return ctypes.CDLL(None).syscall(444, None, 0, 1)


@case_unsanitized
def intruder_in_the_loop():
    """Where the agent speaks to servers, code that has taken it over has what sampling needs, and
    attaches to nothing, mounts nothing, loads no module and makes no namespace. It writes memory of
    root's processes only; without a sampler, not even those, and has no BPF."""
    need_root()
    as_nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    with Background(*as_nobody, "sleep", "600") as victim:
        env = environment(**intruded(victim.pid))
        for parts, more in (((SAMPLER,), {"memory-root", "bpf", "perf"}), ((), set())):
            with Agent(graph(*parts), *PATIENT, env=env) as a:
                a.until_says("intruder: done")
                assert all(thread["Seccomp"] == "2" for thread in threads(a.pid))
                a.signal(signal.SIGTERM)
                a.end().expect(0)
                found = obtained(a.text())
            plain = {"read", "read-root", "write", "listen", "services", "program"}
            assert found == plain | more, found


@case_unsanitized
def intruder_in_the_fetcher():
    """Where files are fetched from debuginfod servers, it reaches no file and no process, listens
    to nobody and runs nothing. (Without Landlock: what the user's files and sockets are.)"""
    need_root()
    with Background("sleep", "600") as victim:
        env = environment(
            DEBUGINFOD_URLS="http://127.0.0.1:1",
            DEBUGINFOD_CACHE_PATH=os.path.abspath("cache"),
            **intruded(victim.pid) | {"LD_PRELOAD": os.environ["INTRUDER_OF_FETCHER"]},
        )
        r = run(os.environ["DEBUGINFOD_PROGRAM"], "00112233445566778899aabbccddeeff", env=env)
        version, found = has_landlock(), obtained(r.err)
    by_landlock = {"read": 1, "read-root": 1, "write": 1, "program": 1, "listen": 4, "signal": 6}
    without = {name for name, since in by_landlock.items() if version < since}
    assert found == {"services"} | without, found
    assert os.path.isdir("cache") and not r.code == 0, r


def intruded_worker(plugin, component, *words):
    """What it gets in a worker that root has started, and that is told to end at once."""
    file = next(
        path
        for folder in os.environ["ANDIRON_PLUGIN_PATH"].split(":")
        if os.path.exists(path := f"{folder}/andiron-{plugin}.so")
    )
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with Background("sleep", "600") as victim, ours:
        end = theirs.fileno()
        worker = Background(
            *(ANDIRON, "worker", file, component, *words),
            env=environment(**intruded(victim.pid)),
            preexec_fn=lambda: os.dup2(end, 3),
            close_fds=False,
        )
        theirs.close()
        with worker:
            worker.until_says("intruder: done")
            ours.close()
            r = worker.end()
    r.expect(0)
    return obtained(r.out)


@case_unsanitized
def intruder_in_the_sender():
    """Where servers are spoken to, it reaches no file, no process and no service of root's, listens
    to nobody and runs nothing. (Without Landlock: it reads what the user's files are.)"""
    need_root()
    by_landlock = {"read": 1, "read-root": 1, "listen": 4}
    for plugin, component in (
        ("pyroscope", "pyroscope.write"),
        ("pyroscope", "otlp.write"),
        ("scrape", "pyroscope.scrape"),
        ("kubernetes", "discovery.kubernetes"),
        ("discovery", "discovery.http"),
        ("discovery", "discovery.dns"),
        ("docker", "discovery.docker"),
        ("docker", "discovery.dockerswarm"),
    ):
        found = intruded_worker(plugin, component, "sender")
        version = has_landlock()
        assert found == {name for name, since in by_landlock.items() if version < since}, found


@case_unsanitized
def intruder_in_the_parser():
    """Where files of strangers are read, it gets nothing at all."""
    need_root()
    assert intruded_worker("symbolize", "profile.symbolize") == set()


PUSH = """
pyroscope.write "out" {
  endpoint { url = "http://%s:%d" }
}
"""


def pushing(port, host="127.0.0.1"):
    sampler = SAMPLER.replace("profile.file.out", "pyroscope.write.out")
    return write("agent.alloy", sampler + PUSH % (host, port))


def outcome(books):
    """What came of the writer's samples, none of which it has lost. (Of a machine with more to do
    than it can, the sampler may have lost some.)"""
    found = books["writers"]["pyroscope.write.out"]
    assert found["delivered"] and not found["spooled"] + found["in_flight"], books
    assert not any(reason.startswith("pyroscope.write") for reason in found["dropped"]), books
    return found


@case
def senders_have_nothing_and_stay():
    """What speaks to servers has no capability, a filter of its own and no terminal. A signal that
    is meant for all of a terminal or a service does not end it; if something does, another takes
    its place, and nothing is lost. (What was just being sent counts as uncertain.)"""
    need_root()
    with Receiver() as receiver, Background(WORKLOAD, "60"):
        with Agent(pushing(receiver.port), *PATIENT) as a:
            a.until(lambda: receiver.pushed, "a push")
            first = sender_of(a.pid)
            for thread in threads(first):
                found = sets(thread)
                assert found["CapPrm"] == found["CapInh"] == found["CapAmb"] == 0, thread
                assert thread["NoNewPrivs"] == "1" and thread["Seccomp_filters"] == "2", thread
            files = {os.readlink(f"/proc/{first}/fd/{end}") for end in (0, 1, 2)}
            assert files == {"/dev/null"} and os.getsid(first) == first, files
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                os.kill(first, number)
            before = len(receiver.pushed)
            a.until(lambda: len(receiver.pushed) > before, "another push")
            assert sender_of(a.pid) == first and "has ended" not in a.text(), a.text()
            os.kill(first, signal.SIGKILL)
            a.until_says("the process that speaks to servers has ended (signal 9 ended it)")
            a.until_metric("andiron_sender_restarts_total", exactly=1)
            before = len(receiver.pushed)
            a.until(lambda: len(receiver.pushed) > before, "a push by the other")
            second = sender_of(a.pid)
            assert second != first and not os.path.exists(f"/proc/{first}")
            books = a.stop()
        assert not os.path.exists(f"/proc/{second}")
    outcome(books)


def with_etc(folder):
    """For preexec_fn: /etc is this folder."""

    def enter():
        libc = ctypes.CDLL(None, use_errno=True)
        if (
            libc.unshare(0x20000)  # CLONE_NEWNS
            or libc.mount(None, b"/", None, 0x44000, None)  # MS_REC | MS_PRIVATE
            or libc.mount(folder.encode(), b"/etc", None, 0x1000, None)  # MS_BIND
        ):
            raise OSError(ctypes.get_errno(), "no mounts of its own")

    return enter


@case
def senders_read_what_is_renamed_into_place():
    """Files by which servers are found are replaced as a whole, as managers of networks do it: what
    speaks to servers reads the new ones, and nothing is lost."""
    need_root()
    os.mkdir("etc")
    for entry in os.scandir("/etc"):
        if entry.is_file():
            shutil.copy(entry.path, "etc")
    write("etc/nsswitch.conf", "hosts: files\n")
    write("etc/resolv.conf", "nameserver 127.0.0.1\n")
    write("etc/hosts", "127.0.0.1 profiles.test\n")
    with Receiver() as receiver, Background(WORKLOAD, "60"):
        config, enter = pushing(receiver.port, "profiles.test"), with_etc(os.path.abspath("etc"))
        with Agent(config, *PATIENT, preexec_fn=enter) as a:

            def until_another_push():
                before = len(receiver.pushed)
                a.until(lambda: len(receiver.pushed) > before, "another push")

            until_another_push()
            for n, name in enumerate(("etc/resolv.conf", "etc/hosts"), 1):
                os.rename(shutil.copy(name, "new"), name)
                a.until_metric("andiron_sender_restarts_total", exactly=n)
                until_another_push()
            assert "has ended" not in a.text(), a.text()
            books = a.stop()
    assert not outcome(books)["uncertain"], books


LANDLOCK_RESTRICT = 446


@case
def a_sender_without_walls_is_a_refusal():
    """Where what speaks to servers cannot be confined, nothing is sent, and it is said why."""
    need_root()
    if has_landlock() < 1:
        raise Skip("needs a kernel with Landlock: boot with lsm=landlock")
    with Receiver() as receiver, Background(WORKLOAD, "60"):
        refusal = refusing(LANDLOCK_RESTRICT, errno.EACCES)
        with Agent(pushing(receiver.port), *PATIENT, preexec_fn=refusal) as a:
            a.until_says("could not start: the process that speaks to servers is not ready: it ")
            assert not sender_of(a.pid)
            a.signal(signal.SIGTERM)
            a.end().expect(1, "it cannot be confined to few files, so it does not run (")
        assert not receiver.pushed


# --- What each of the six is for ---


@contextlib.contextmanager
def workloads():
    """One program of another user's; one whose file only that user may read; one of root's with a
    library that is deleted."""
    write(
        "lib.c",
        "volatile unsigned long s;\n"
        "void lib_spin(void) { for (long i = 0; i < 100000000; i++) s = s * 3 + 1; }\n",
    )
    write("main.c", "void lib_spin(void);\nint main(void)\n{\n\tfor (;;)\n\t\tlib_spin();\n}\n")
    compile_ = ("gcc", "-O1", "-fno-omit-frame-pointer")
    run(*compile_, "-shared", "-fPIC", "-o", "libspin.so", "lib.c").expect(0)
    run(*compile_, "-o", "deleted", "main.c", "-L.", "-lspin", "-Wl,-rpath,$ORIGIN").expect(0)
    os.chmod(".", 0o755)
    as_nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    for name in ("open", "closed"):
        shutil.copy(WORKLOAD, name)
    os.chown("closed", 65534, 65534)
    os.chmod("closed", 0o700)
    with contextlib.ExitStack() as stack:
        started = [
            stack.enter_context(Background(*as_nobody, "./open", "600")),
            stack.enter_context(Background(*as_nobody, "./closed", "600")),
            stack.enter_context(Background("./deleted")),
            stack.enter_context(in_the_kernel()),
        ]
        started[2].until(
            lambda: "libspin.so" in read(f"/proc/{started[2].pid}/maps"), "the library is mapped"
        )
        os.unlink("libspin.so")
        yield


def named(stacks):
    """Which functions of the three, and of the kernel, have names."""

    def has(program, word):
        return any(program in s[0] and any(word in f for f in s) for s in stacks)

    return {
        "open": has("open", "workload_70"),
        "closed": has("closed", "workload_70"),
        "deleted": has("deleted", "lib_spin"),
        "kernel": any(re.fullmatch(r"[a-z_]\w*_\[k\]", f) for s in stacks for f in s),
    }


@case_unsanitized
def each_capability_has_its_use():
    """Each of the six that is missing is named, with what follows, and that follows."""
    need_root()
    everything = {"open", "closed", "deleted", "kernel"}
    with workloads():
        for without, words, lost in (
            (None, (), set()),
            (
                "sys_ptrace",
                ("other users' processes have no file names",),
                {"open", "closed", "deleted"},
            ),
            ("dac_read_search", ("some files cannot be read for names",), {"closed"}),
            ("checkpoint_restore", ("deleted files have no names",), {"deleted"}),
            ("syslog", ("the kernel's functions have no names",), {"kernel"}),
        ):
            rest = [c for c in SIX if c != without]
            r = with_capabilities(
                rest, ANDIRON, "record", "-F", "199", "-d", "2s", "-o", "w.folded"
            ).expect(0, *words, *([f"CAP_{without.upper()}"] if without else []))
            found = named(folded("w.folded"))
            print(f"# without {without}: {found}", flush=True)
            assert {k for k in everything if not found[k]} == lost, (without, found, r.err)
        for without in ("bpf", "perfmon"):
            rest = [c for c in SIX if c != without]
            with_capabilities(rest, ANDIRON, "record", "-o", "x.folded").expect(
                1, f"CAP_{without.upper()}"
            )
    assert not os.path.exists("x.folded")


main()
