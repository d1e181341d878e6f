# SPDX-License-Identifier: Apache-2.0
"""A real OpenTelemetry Collector (tests/servers/collector), and pods for its k8sattributes
processor to find."""

import base64
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile

from kubernetes import ADMIN, Cluster
from otlp import Message
from pyroscope import get, until

CONTAINER = "a1" * 32
KEPT = (
    "k8s.pod.name",
    "k8s.namespace.name",
    "k8s.pod.uid",
    "k8s.node.name",
    "k8s.container.name",
    "container.image.name",
)
PROCESSORS = """
processors:
  k8s_attributes:
    auth_type: kubeConfig
    extract:
      metadata: [%s]
      labels: [{tag_name: team, key: team, from: pod}]
    pod_association:
      - sources: [{from: resource_attribute, name: %s}]
"""


def processors(association):
    """Of a configuration: k8s_attributes, which finds pods by that attribute of a resource."""
    return PROCESSORS % (", ".join(KEPT), association)


class Collector:
    """A Collector in a folder of its own, which its configuration calls FOLDER. What its exporter
    `journal: {path: FOLDER/journal}` got are its messages."""

    def __init__(self, config, kubeconfig="", listens=()):
        self.place = tempfile.TemporaryDirectory(prefix="andiron-collector-")
        folder = self.place.name
        self.journal = pathlib.Path(folder, "journal")
        self.configure(config)
        self.log = open(f"{folder}/log", "ab")
        self.process = subprocess.Popen(
            [
                get("collector"),
                f"--config=file:{folder}/config.yaml",
                "--feature-gates=service.profilesSupport",
            ],
            stdout=self.log,
            stderr=self.log,
            env={**os.environ, "KUBECONFIG": kubeconfig},
        )
        until(lambda: self.process.poll() is not None or all(map(self.listens, listens)), self.said)

    def configure(self, config):
        """It reads this when it starts, and at SIGHUP."""
        folder = self.place.name
        pathlib.Path(folder, "config.yaml").write_text(
            config.replace("FOLDER", folder), encoding="utf-8"
        )

    def said(self):
        return f"{self.process.poll()}: " + self.whole_log()[-3000:]

    def whole_log(self):
        return pathlib.Path(self.place.name, "log").read_text(encoding="utf-8")

    @staticmethod
    def listens(port):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0

    def messages(self):
        """What it would have sent on; a line under way does not count yet."""
        text = self.journal.read_text(encoding="ascii") if self.journal.exists() else ""
        return [Message(base64.b64decode(line)) for line in text.split("\n")[:-1]]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.log.close()
        self.place.cleanup()


def pod(name, ip, team, container):
    spec = {
        "nodeName": "n1",
        "automountServiceAccountToken": False,
        "containers": [{"name": "app", "image": "registry/app:1"}],
    }
    status = {
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "hostIP": "10.1.0.1",
        "containerStatuses": [
            {
                "name": "app",
                "image": "registry/app:1",
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "containerID": f"containerd://{container}",
            }
        ],
    }
    return {
        "metadata": {"name": name, "namespace": "shop", "labels": {"team": team}},
        "spec": spec,
    }, status


@contextlib.contextmanager
def shop(container=CONTAINER):
    """An API server with pods in the namespace "shop", the first with this container: the pods as
    it has them, and a kubeconfig's path."""
    get("kube-apiserver")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with Cluster() as cluster:
            pods = "/api/v1/namespaces/shop/pods"
            cluster.create("/api/v1/namespaces", {"metadata": {"name": "shop"}})
            made = {}
            for name, ip, team, container in (
                ("web-1", "10.2.0.1", "front", container),
                ("db-1", "10.2.0.2", "data", "b2" * 32),
            ):
                body, status = pod(name, ip, team, container)
                made[name] = cluster.create(pods, body, status)
            config = {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "x",
                "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                "clusters": [
                    {
                        "name": "x",
                        "cluster": {"server": cluster.server, "certificate-authority": cluster.ca},
                    }
                ],
                "users": [{"name": "x", "user": {"token": ADMIN}}],
            }
            pathlib.Path("kubeconfig").write_text(json.dumps(config), encoding="utf-8")
            yield made, os.path.abspath("kubeconfig")
        os.chdir("/")
