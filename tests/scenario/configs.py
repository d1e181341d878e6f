#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole configuration files as people have them, unchanged, up to the server's sums.

It all happens in a mount and a network namespace of its own, in which the
server's names are 127.0.0.1 by /etc/hosts, and 127.0.0.1:4040 leads to it. The
Kubernetes ones find a cluster as in a pod: by the environment and the files of
the service account.

With the argument "parca" it is the files for Parca alone, which takes a server that is long in the
making.
"""

import contextlib
import fcntl
import os
import socket
import struct
import sys
import tempfile
import threading
import time
import urllib.parse

from cgroups import Container
from kubeapi import TOKEN, KubeApi, pod
from ports import carry
from running import PATIENT, Agent, cpu_seconds
from tap import (
    DEADLINE,
    WORKLOAD,
    Background,
    Skip,
    andiron,
    case,
    environment,
    main,
    need_root,
    read,
    run,
    until,
    write,
)

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "servers"))
import parca  # the servers' tests have these too
import pyroscope

EXAMPLES = os.path.join(ROOT, "packaging", "examples")
ARTICLES = os.path.join(ROOT, "..", "shared", "configs")
NAMES = ("pyroscope", "pyroscope.monitoring.svc.cluster.local", "parca.parca.svc.cluster.local")
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
INSIDE = "ANDIRON_TEST_INSIDE"
PARCA = "parca" in sys.argv[1:]
SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def enter():
    """Begins again in namespaces; what needs the world outside is made before."""
    if os.geteuid() != 0 or INSIDE in os.environ:
        return
    found = environment(**{INSIDE: "yes"})
    with contextlib.suppress(pyroscope.Skip):
        if "ANDIRON_PYROSCOPE" not in found:
            pyroscope.get("parca" if PARCA else "push-receiver")
    # A server that is given as a URL is reached through the world's network.
    away = found.get("ANDIRON_PYROSCOPE", "").startswith("http")
    spaces = ["--mount"] if away else ["--mount", "--net"]
    os.execvpe(
        "unshare",
        ["unshare", *spaces, sys.executable, os.path.abspath(__file__), *sys.argv[1:]],
        found,
    )


def furnish():
    """Loopback, names, and a place for a service account, seen by us alone."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    hosts = write("hosts", read("/etc/hosts") + "".join(f"127.0.0.1 {name}\n" for name in NAMES))
    for command in (["--make-rprivate", "/"], ["--bind", hosts, "/etc/hosts"]):
        run("mount", *command).expect(0)
    run("mount", "-t", "tmpfs", "none", "/var/lib").expect(
        0
    )  # a spool of an earlier run is none of ours
    if not os.path.isdir(ACCOUNT):
        run("mount", "-t", "tmpfs", "none", os.path.realpath("/var/run")).expect(0)
        os.makedirs(ACCOUNT)


@contextlib.contextmanager
def port_of_file(url, port=4040):
    """What comes to the port that the file names goes to the server, wherever that is."""
    goal = urllib.parse.urlsplit(url)

    def serve(listener):
        with contextlib.suppress(OSError):  # also the end of listening
            while True:
                near = listener.accept()[0]
                far = socket.create_connection((goal.hostname, goal.port or 80))
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=carry, args=pair, daemon=True).start()

    if goal.port == port and goal.hostname in ("127.0.0.1", "localhost"):
        yield
        return
    with socket.create_server(("127.0.0.1", port)) as listener:
        server = threading.Thread(target=serve, args=(listener,), daemon=True)
        server.start()
        try:
            yield
        finally:  # while it waits in accept() the port is taken, and the next case needs it
            listener.shutdown(socket.SHUT_RDWR)
            server.join(DEADLINE)


def sampled(path, sampler, rate, workers, env=None):
    """Runs the file until the workers have worked for a while; how many samples were delivered."""
    targets = len(workers) if env else 0  # with a cluster around it finds them
    with Agent(path, *PATIENT, env=env) as agent:
        agent.until_metric("andiron_ebpf_sample_rate_hertz", exactly=rate)
        agent.until_health(sampler, "healthy")
        agent.until_metric("pyroscope_ebpf_active_targets", exactly=targets)
        if "status.http" in read(path):
            agent.until_health("status.http", "healthy", "port 12345")
        first = {w: cpu_seconds(w.pid) for w in workers}
        until(
            lambda: all(cpu_seconds(w.pid) - first[w] > 1.5 for w in workers), "1.5 s of work each"
        )
        books = agent.stop()
        said = agent.text()
    writers = list(books["writers"].values())
    assert len(writers) == 1 and books["taken"] == writers[0]["delivered"] + sum(
        writers[0]["dropped"].values()
    ), (books, said)
    assert writers[0]["delivered"] > rate, (books, said)
    return writers[0]["delivered"]


def runs(path, sampler, rate, workers, selector, env=None):
    """Runs the file until the workers have worked for a while; what the server has is what was
    taken."""
    begun = int(time.time() * 1000)
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(pyroscope.Pyroscope())
        except pyroscope.Skip as why:
            raise Skip(str(why)) from why
        stack.enter_context(port_of_file(server.url))
        delivered = sampled(path, sampler, rate, workers, env)
        merged = server.query(
            "SelectMergeProfile",
            profileTypeID=pyroscope.CPU,
            labelSelector=selector,
            start=str(begun),
        )
        total = sum(int(sample["value"][0]) for sample in merged["sample"])
        assert total == delivered * (10**9 // rate), (total, delivered)
        assert "workload_70" in merged["stringTable"], merged["stringTable"][:50]
        return server.series(selector) if server.stand_in else None


def host(path, sampler, service):
    need_root()
    found = andiron("validate", path).expect(0)
    assert "warning" not in found.out + found.err, found.out + found.err
    with Background(WORKLOAD, "600") as worker:
        runs(path, sampler, 97, [worker], f'{{service_name="{service}"}}')


@contextlib.contextmanager
def two_pods(path):
    """A file for Kubernetes, which warns once, and two pods around it: the workers, and the
    environment of a pod."""
    need_root()
    found = andiron("validate", path).expect(
        0, "default_target", "taken to mean that there is no default target"
    )
    assert (found.out + found.err).count("warning:") == 1, found.out + found.err
    with Container() as a, Container() as b, KubeApi() as api:
        for name, container in (("web-1", a), ("web-2", b)):
            api.set(pod("shop", name, container.uid, {"app": container.id}))
        for name, text in (("token", TOKEN), ("ca.crt", read("ca.crt"))):
            write(f"{ACCOUNT}/{name}", text)
        yield [a, b], environment(
            KUBERNETES_SERVICE_HOST="127.0.0.1", KUBERNETES_SERVICE_PORT=str(api.port)
        )


def kubernetes(path, sampler, cluster):
    with two_pods(path) as (workers, env):
        series = runs(
            path, sampler, 19, workers, f'{{service_name="ebpf/shop/app",cluster="{cluster}"}}', env
        )
    assert series is None or {(s["namespace"], s["pod"], s["container"]) for s in series} == {
        ("shop", "web-1", "app"),
        ("shop", "web-2", "app"),
    }, series


def parca_kubernetes():
    """packaging/examples/kubernetes-parca.alloy warns once, and runs as in a pod, up to Parca's
    total."""
    with two_pods(f"{EXAMPLES}/kubernetes-parca.alloy") as (
        workers,
        env,
    ), parca.Parca() as server, port_of_file(server.url, 7070):
        delivered = sampled(
            f"{EXAMPLES}/kubernetes-parca.alloy", "pyroscope.ebpf.pods", 19, workers, env
        )
        assert server.total('{service_name="ebpf/shop/app",cluster="example"}') == delivered * (
            10**9 // 19
        ), delivered
        for pod_name in ("web-1", "web-2"):
            assert (
                server.total(f'{{namespace="shop",pod="{pod_name}",container="app"}}') > 0
            ), pod_name
        assert (6, b"workload_70") in parca.fields(server.merged()), "no name of the workload's"


def our_host():
    """packaging/examples/host-pyroscope.alloy runs, and the server has what the ledger says."""
    host(f"{EXAMPLES}/host-pyroscope.alloy", "pyroscope.ebpf.host", "host")


def our_kubernetes():
    """packaging/examples/kubernetes-pyroscope.alloy warns once, and runs as in a pod."""
    kubernetes(f"{EXAMPLES}/kubernetes-pyroscope.alloy", "pyroscope.ebpf.pods", "example")


def examples_are_valid():
    """Every file of packaging/examples is, without an error."""
    for name in sorted(os.listdir(EXAMPLES)):
        if name.endswith(".alloy"):
            andiron("validate", f"{EXAMPLES}/{name}").expect(0)


def article_host():
    """The article's file for a host runs unchanged."""
    host(f"{ARTICLES}/article-ebpf.alloy", "pyroscope.ebpf.instance", "unspecified")


def article_kubernetes():
    """The article's file for Kubernetes warns once, and runs unchanged as in a pod."""
    kubernetes(f"{ARTICLES}/article-kubernetes.alloy", "pyroscope.ebpf.instance", "prod-eu-west-1")


for one in [parca_kubernetes] if PARCA else [our_host, our_kubernetes, examples_are_valid]:
    case(one)
# Not a skip: most checkouts have no such folder, and ours stand for its files.
if os.path.isdir(ARTICLES) and not PARCA:
    case(article_host)
    case(article_kubernetes)


enter()
if INSIDE in os.environ:
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        furnish()
        main()
else:
    main()
