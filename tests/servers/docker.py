# SPDX-License-Identifier: Apache-2.0
"""A real Docker engine for tests: Debian's, in namespaces of mounts, network and processes of its
own. What it holds is in memory. With its first process goes all of it; only the cgroups that it
made are removed by hand."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import urllib.parse

from tap import Skip, until

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = """
#include <stdlib.h>
#include <unistd.h>
static volatile unsigned long turns;
int main(int argc, char **argv)
{
    if (argc > 1) {
        while (atoi(argv[1]) == 0)
            turns++;
    }
    for (;;)
        pause();
}
"""
INSIDE = """
set -e
mount --make-rprivate /
mount -t proc none /proc
ip link set lo up
mount -t tmpfs none "$1"
mount -t tmpfs none /run
while :; do
    rm -f "$1/pid"
    dockerd --iptables=false --ip6tables=false --bridge=none --storage-driver vfs \
        --host "unix://$2" --data-root "$1/data" --exec-root "$1/exec" --pidfile "$1/pid" \
        --cgroup-parent "/$3" || :
    read -r _ <"$4"
done
"""


class Connection(http.client.HTTPConnection):
    """HTTP over a socket's path."""

    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def made(name):
    done = subprocess.run(
        [f"{HERE}/get", name], stdout=subprocess.PIPE, text=True, check=False, timeout=600
    )
    if done.returncode:
        raise Skip(f"{name} could not be made; tests/servers/get says why")
    return done.stdout.strip()


def image(folder):
    """A tar of one static program: it waits, or with the argument 0 it counts."""
    source, program = f"{folder}/waits.c", f"{folder}/waits"
    with open(source, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    subprocess.run(["cc", "-static", "-O1", "-o", program, source], check=True)
    subprocess.run(["tar", "-C", folder, "-cf", f"{folder}/image.tar", "waits"], check=True)
    with open(f"{folder}/image.tar", "rb") as f:
        return f.read()


class Engine:
    """A context: dockerd, and what a test does with it through its API."""

    def __init__(self):
        self.tree = made("docker")
        self.folder = tempfile.mkdtemp(prefix="andiron-docker-")
        self.socket, self.group = f"{self.folder}/s", os.path.basename(self.folder)
        libraries = ":".join(
            f"{self.tree}/{d}/{os.uname().machine}-linux-gnu" for d in ("usr/lib", "lib")
        )
        self.log = open(f"{self.folder}/log", "w+", encoding="utf-8")
        os.mkdir(f"{self.folder}/data")
        os.mkfifo(f"{self.folder}/begin")
        self.process = subprocess.Popen(
            # unshare blocks SIGTERM, so it would outlive a test that is ended.
            ["setpriv", "--pdeathsig", "KILL"]
            + ["unshare", "-m", "-n", "-p", "--fork", "--kill-child", "sh", "-c", INSIDE, "engine"]
            + [f"{self.folder}/data", self.socket, self.group, f"{self.folder}/begin"],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env={
                **os.environ,
                "LD_LIBRARY_PATH": libraries,
                "PATH": f"{self.tree}/usr/sbin:{self.tree}/usr/bin:{os.environ['PATH']}",
            },
        )

    def text(self):
        with open(f"{self.folder}/log", encoding="utf-8", errors="replace") as f:
            return f.read()[-4000:]

    def answers(self):
        try:
            self.ask("GET", "/_ping")
            return True
        except OSError:
            return False

    def ready(self):
        until(self.answers, self.text, alive=lambda: self.process.poll() is None)

    def ask(self, method, path, body=None, kind="application/json", **query):
        """The answer's JSON, or its text."""
        connection = Connection(self.socket)
        where = path + ("?" + urllib.parse.urlencode(query) if query else "")
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.request(method, where, data, {"Content-Type": kind} if data else {})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status < 300, f"{method} {where}: {answer.status} {text}"
        return json.loads(text) if text.startswith(("{", "[")) else text

    def take_image(self):
        self.ask(
            "POST",
            "/images/create",
            image(self.folder),
            "application/x-tar",
            fromSrc="-",
            repo="waits",
        )

    def run(self, name, network="none", labels=None, command=("/waits",), **more):
        """Creates and starts a container; its id."""
        made_ = self.ask(
            "POST",
            "/containers/create",
            {
                "Image": "waits",
                "Cmd": list(command),
                "Labels": labels or {},
                "HostConfig": {"NetworkMode": network},
                **more,
            },
            name=name,
        )
        self.ask("POST", f"/containers/{made_['Id']}/start")
        return made_["Id"]

    def begin_swarm(self):
        self.ask(
            "POST", "/swarm/init", {"ListenAddr": "127.0.0.1:2377", "AdvertiseAddr": "127.0.0.1"}
        )

    def serve(self, name, replicas, command=("/waits",), ports=(), **more):
        """Creates a service, whose tasks are in the network of the host; its id."""
        task = {
            "ContainerSpec": {"Image": "waits", "Command": list(command), **more},
            "Networks": [] if ports else [{"Target": "host"}],
        }
        service = {
            "Name": name,
            "Labels": {"com.example/tier": "front"},
            "TaskTemplate": task,
            "Mode": {"Replicated": {"Replicas": replicas}},
            "EndpointSpec": {"Ports": list(ports)},
        }
        return self.ask("POST", "/services/create", service)["ID"]

    def remove(self, name):
        self.ask("DELETE", f"/containers/{name}", force="1")

    def processes(self):
        """Pids of dockerd, as this side sees them."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if words[0] == b"dockerd" and f"unix://{self.socket}".encode() in words:
                found.append(int(pid))
        return found

    def hold(self):
        """Kills dockerd; it begins again after release()."""
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        until(lambda: not self.processes(), "dockerd did not end")
        os.unlink(self.socket)

    def release(self):
        with open(f"{self.folder}/begin", "w", encoding="utf-8") as f:
            f.write("\n")
        self.ready()

    def __enter__(self):
        try:
            self.ready()
            self.take_image()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *why):
        self.process.kill()
        self.process.wait()
        until(self.removed, "the engine's cgroups did not go")
        self.log.close()
        shutil.rmtree(self.folder)

    def removed(self):
        """Whether all cgroups of the engine could be removed."""
        gone = True
        for place in (line.split()[1:3] for line in open("/proc/mounts", encoding="utf-8")):
            top = f"{place[0]}/{self.group}"
            if place[1] not in ("cgroup", "cgroup2") or not os.path.isdir(top):
                continue
            for folder, _, _ in os.walk(top, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    gone = False
        return gone
