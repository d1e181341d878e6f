#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pyroscope.java: real JVMs under the real async-profiler, whose recordings arrive as they are."""

import atexit
import contextlib
import functools
import http.server
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(HERE, "../../scenario")]
import runtimes  # noqa: E402
from running import Agent  # noqa: E402
from tap import Background, andiron, case, main, need_root, read, write  # noqa: E402
from waiting import until  # noqa: E402

SOURCE = os.path.join(HERE, "java/Work.java")
COMPONENT = """
pyroscope.java "%s" {
  targets    = [%s]
  forward_to = [pyroscope.write.w.receiver]
  dist       = "%s"
  profiling_config {
    interval = "1s"
    %s
  }
}
"""
WRITE = """
pyroscope.write "w" {
  endpoint {
    url = "%s"
  }
}
"""
METHODS = {b"burnCycles", b"makeGarbage", b"waitForLock"}
ENDS = contextlib.ExitStack()
MADE = {}  # what is compiled once
KILLED = {}  # the JVM whose agent was killed, from the first case to the last


class Server:
    """Takes what is sent to /ingest: `taken` is a list of (name, query, body)."""

    def __init__(self):
        self.taken, outer = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                url = urllib.parse.urlparse(self.path)
                query = dict(urllib.parse.parse_qsl(url.query))
                if url.path == "/ingest":
                    outer.taken.append((query["name"], query, body))
                self.send_response(200 if url.path == "/ingest" else 404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def of(self, service):
        """The recordings of a service."""
        return [body for name, _, body in self.taken if name.split("{")[0] == service]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def is_whole(recording):
    """One or more chunks, each as long as it says."""
    while recording:
        if recording[:4] != b"FLR\0" or len(recording) < 68:
            return False
        (length,) = struct.unpack(">Q", recording[8:16])
        if not 68 <= length <= len(recording):
            return False
        recording = recording[length:]
    return True


def methods(recordings):
    """The workload's methods that samples stood in."""
    assert all(recordings) and all(map(is_whole, recordings)), [len(r) for r in recordings]
    return {method for method in METHODS if any(method in r for r in recordings)}


def classes():
    """A copy of the compiled program in the current folder."""
    if "classes" not in MADE:
        folder = tempfile.mkdtemp(prefix="java-classes-")
        atexit.register(shutil.rmtree, folder)
        MADE["classes"] = runtimes.compiled_java(SOURCE, folder=f"{folder}/classes")
    shutil.copytree(MADE["classes"], "classes", dirs_exist_ok=True)
    return "classes"


def command(java, *flags):
    classes()
    return [*java.command, "-Xmx64m", *flags, "-cp", "classes", "Work"]


def jvm_case(function):
    """A case of root's, at whose end its JVMs end."""

    @functools.wraps(function)
    def run():
        need_root()
        with ENDS:
            function()

    return case(run)


class Jvm(Background):
    """One that ends with its case at the latest."""

    def __init__(self, arguments, service):
        super().__init__(*arguments)
        self.service = service
        ENDS.callback(self.__exit__)

    def works(self):
        self.until_says("works")
        return self

    def target(self, pid=None):
        return f'{{"__process_pid__" = "{pid or self.pid}", "service_name" = "{self.service}"}}'


def folder_of(jvm):
    return f"/tmp/andiron-java-{jvm.pid}"


def newest():
    return runtimes.javas()[-1]


def config_of(server, *components):
    """Each (name, targets, settings of profiling_config)."""
    dist = runtimes.async_profiler()
    texts = [COMPONENT % (name, ", ".join(ts), dist, more) for name, ts, more in components]
    return write("java.alloy", "".join(texts) + WRITE % server.url)


@jvm_case
def killed():
    """An agent that is killed leaves no JVM profiling for long; the last case looks."""
    folder = tempfile.mkdtemp(prefix="java-killed-")
    KILLED["folder"] = folder
    with Server() as server:
        shutil.copytree(classes(), f"{folder}/classes")
        jvm = [*newest().command, "-Xmx64m", "-cp", f"{folder}/classes", "Work"]
        with open(f"{folder}/out", "wb") as out:
            KILLED["jvm"] = subprocess.Popen(jvm, stdout=out, stderr=out)
        target = f'{{"__process_pid__" = "{KILLED["jvm"].pid}", "service_name" = "killed"}}'
        with Agent(config_of(server, ("j", [target], ""))) as agent:
            agent.until(lambda: server.of("killed"), "a recording arrives")
            # One is under way, whose interval has begun just now.
            agent.until(recording_of_killed, "a recording is under way")
            agent.process.kill()
            agent.process.wait()


def recording_of_killed():
    try:
        path = f"/tmp/andiron-java-{KILLED['jvm'].pid}/recording.jfr"
        with open(path, "rb") as f:
            return f.read()
    except FileNotFoundError:
        return b""


@jvm_case
def kinds():
    """CPU time, allocations and locks: each JVM's recordings have what it was asked for, and
    nothing is left when the agent has stopped."""
    wanted = {
        "cpu": ('alloc = ""\n lock = ""', {b"burnCycles"}),
        "alloc": ('cpu = false\n lock = ""\n alloc = "64k"', {b"makeGarbage"}),
        "lock": ('cpu = false\n alloc = ""\n lock = "1ms"', {b"waitForLock"}),
        "own": ('custom_arguments = ["-e", "cpu,lock", "--lock", "1ms"]', {b"waitForLock"}),
    }
    jvms = {name: Jvm(command(newest()), name).works() for name in wanted}
    parts = [(name, [jvms[name].target()], wanted[name][0]) for name in wanted]
    with Server() as server:
        config = config_of(server, *parts)
        andiron("validate", config).expect(0)
        with Agent(config) as agent:
            for name, (_, least) in wanted.items():
                agent.until(lambda n=name, l=least: l <= methods(server.of(n)), f"{name} arrives")
            for name in wanted:
                assert agent.targets(f"pyroscope.java.{name}")[0][1:] == ({"java"}, "")
            agent.signal(signal.SIGTERM)
            agent.end()
        assert b"burnCycles" not in b"".join(server.of("alloc") + server.of("lock"))
        assert b"waitForLock" not in b"".join(server.of("alloc"))
        for _, query, _ in server.taken:
            assert query["format"] == "jfr" and int(query["until"]) > int(query["from"]), query
        for jvm in jvms.values():
            assert not os.path.exists(folder_of(jvm)), "the folder is left"
            assert jvm.process.poll() is None


@jvm_case
def versions():
    """Every version of HotSpot, until it ends."""
    with Server() as server:
        javas = runtimes.javas()
        jvms = [Jvm(command(java), f"java{java.major}").works() for java in javas]
        # A JDK 8 says where it allocates by its debug symbols alone, which Debian has apart.
        pairs = list(zip(jvms, javas))
        old = [jvm.target() for jvm, java in pairs if java.major < 9]
        new = [jvm.target() for jvm, java in pairs if java.major >= 9]
        config = config_of(server, ("old", old, 'alloc = ""'), ("new", new, ""))
        with Agent(config) as agent:
            for jvm, java in pairs:
                least = METHODS - {b"makeGarbage"} if java.major < 9 else METHODS
                agent.until(
                    lambda j=jvm, l=least: l <= methods(server.of(j.service)),
                    f"{jvm.service} arrives",
                )
            for jvm in jvms:
                jvm.signal(signal.SIGTERM)
                jvm.end()
            agent.until_metric("andiron_java_jvms", exactly=0)


@jvm_case
def last():
    """Where a JVM ends in good order, its last recording arrives; of one that was killed none."""
    jvms = {name: Jvm(command(newest()), name).works() for name in ("ended", "killed")}
    targets = [jvm.target() for jvm in jvms.values()]
    with Server() as server:
        config = config_of(server, ("j", targets, ""))
        write("java.alloy", read("java.alloy").replace('"1s"', '"1h"'))
        with Agent(config) as agent:
            recordings = [f"{folder_of(jvm)}/recording.jfr" for jvm in jvms.values()]
            agent.until(lambda: all(map(os.path.exists, recordings)), "both are recorded")
            jvms["ended"].signal(signal.SIGTERM)
            jvms["killed"].signal(signal.SIGKILL)
            agent.until(lambda: server.of("ended"), "the last recording arrives")
            agent.until_metric("andiron_java_jvms", exactly=0)
            agent.signal(signal.SIGTERM)
            agent.end()
        methods(server.of("ended"))
        assert len(server.taken) == 1, [name for name, _, _ in server.taken]
        assert not any(os.path.exists(folder_of(jvm)) for jvm in jvms.values()), "left"


# A /tmp of its own, other pids, another user; what the agent has in dist is not to be seen.
CONTAINER = """
mount -t tmpfs tmpfs /mnt && mkdir /mnt/jdk /mnt/classes &&
mount --bind "$1" /mnt/jdk && cp "$2"/*.class /mnt/classes && mount -t tmpfs tmpfs /tmp &&
chmod 1777 /tmp && mount -t tmpfs tmpfs "$3" && cd / &&
exec setpriv --reuid=1234 --regid=1235 --clear-groups \
    /mnt/jdk/bin/java -Xmx64m -cp /mnt/classes Work
"""


@jvm_case
def containers():
    """A JVM of another user in other namespaces gets a copy of the library, which goes again; one
    that the agent may not become says what is lacking."""
    java = next(one for one in reversed(runtimes.javas()) if os.path.isabs(one.command[0]))
    home = os.path.dirname(os.path.dirname(java.command[0]))
    inside = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", CONTAINER, "sh"]
    jvm = Jvm([*inside, home, os.path.abspath(classes()), runtimes.async_profiler()], "inside")
    jvm.works()
    with open(f"/proc/{jvm.pid}/task/{jvm.pid}/children", encoding="ascii") as f:
        pid = f.read().split()[0]
    ENDS.callback(os.kill, int(pid), signal.SIGKILL)
    tmp = f"/proc/{pid}/root/tmp"
    with Server() as server:
        config = config_of(server, ("j", [jvm.target(pid)], ""))
        with Agent(config) as agent:
            agent.until(lambda: METHODS <= methods(server.of("inside")), "all kinds arrive")
            copy = f"{tmp}/andiron-java-1/libasyncProfiler.so"
            assert os.stat(copy).st_uid == 1234, os.stat(copy)
            agent.signal(signal.SIGTERM)
            agent.end()
        assert not os.path.exists(f"{tmp}/andiron-java-1"), os.listdir(tmp)
        refused = ["setpriv", "--bounding-set=-setuid"]
        with Background(*refused, os.environ["ANDIRON"], "run", config) as agent:
            agent.until_says("CAP_SETUID")


@jvm_case
def refusals():
    """A JVM that refuses is told of in the log, once, and in the targets' status; so is what is no
    JVM, and a library that is none."""
    java = newest()
    flags = {"off": "-XX:+DisableAttachMechanism", "quiet": "-Xrs"}
    jvms = {name: Jvm(command(java, flag), name).works() for name, flag in flags.items()}
    good = Jvm(command(java), "good").works()
    other = Background("sleep", "600")
    strangers = [f'{{"__process_pid__" = "{pid}"}}' for pid in (other.pid, "x")]
    targets = [jvm.target() for jvm in jvms.values()] + strangers + ['{"a" = "b"}']
    with Server() as server, Agent(
        config_of(server, ("j", targets + [good.target(), good.target()], ""))
    ) as agent:
        agent.until(lambda: len(server.of("good")) >= 3, "the others are profiled")
        told = {labels.get("__process_pid__"): why for labels, _, why in rows(agent)}
        assert "DisableAttachMechanism" in told[str(jvms["off"].pid)], told
        assert "-Xrs" in told[str(jvms["quiet"].pid)], told
        assert "is not a JVM" in told[str(other.pid)], told
        assert "no process id" in told["x"] and "__process_pid__" in told[None], told
        assert "another target" in told[str(good.pid)] or told[str(good.pid)] == "", told
        assert agent.text().count("DisableAttachMechanism") == 1, agent.text()
        assert "not a JVM" not in agent.text(), agent.text()
        for jvm in [*jvms.values(), other]:
            assert jvm.process.poll() is None, "SIGQUIT has ended it"
        agent.signal(signal.SIGTERM)
        agent.end()
    config = write("java.alloy", COMPONENT % ("j", good.target(), "/etc", "") + WRITE % server.url)
    with Agent(config) as agent:
        agent.until_health("pyroscope.java.j", "unhealthy", "dist")
    other.process.kill()


def rows(agent):
    return agent.targets("pyroscope.java.j")


@jvm_case
def stuck():
    """A JVM that is stopped holds nothing up: the others go on, and the agent ends in time."""
    jvms = [Jvm(command(newest()), name).works() for name in ("frozen", "going")]
    with Server() as server:
        config = config_of(server, ("j", [jvm.target() for jvm in jvms], ""))
        with Agent(config, "--drain-deadline", "2s") as agent:
            agent.until(lambda: server.of("frozen") and server.of("going"), "both arrive")
            jvms[0].signal(signal.SIGSTOP)
            before = len(server.of("going"))
            agent.until(lambda: len(server.of("going")) >= before + 2, "the other goes on")
            agent.signal(signal.SIGTERM)
            agent.end()
        assert not any(os.path.exists(folder_of(jvm)) for jvm in jvms), "a folder is left"


@jvm_case
def killed_is_over():
    """The JVM whose agent was killed has ended its recording by itself."""
    jvm = KILLED["jvm"]
    try:
        until(lambda: is_whole(recording_of_killed() or b"x"), "profiling ends", 60)
        assert jvm.poll() is None
    finally:
        jvm.kill()
        jvm.wait()
        shutil.rmtree(KILLED["folder"])
        shutil.rmtree(f"/tmp/andiron-java-{jvm.pid}", ignore_errors=True)


main()
