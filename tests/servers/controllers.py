# SPDX-License-Identifier: Apache-2.0
"""What a cluster of one node has besides its API server and its kubelet: stands in for the
controllers, the scheduler and the DNS, as far as a DaemonSet, a StatefulSet of one pod, a pod and a
Service need them. It does what those do, and with the same objects, so whoever installs something
sees no difference.
"""

import contextlib
import copy
import hashlib
import http.client
import json
import socket
import struct
import threading

from kubernetes import CORE
from tap import read

KINDS = ["DaemonSet", "StatefulSet"]
ROUND = 0.2  # seconds between two looks
REVISION = "controller-revision-hash"
DOMAIN = ".svc.cluster.local"
OF_SERVICE = "kubernetes.io/service-name"


def copy_of(cluster):
    """The same cluster, over a connection of its own: each thread needs one."""
    mine = copy.copy(cluster)
    mine.connection = None
    return mine


def revision(one):
    text = json.dumps(one["spec"]["template"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def owner(pod):
    return next((o["uid"] for o in pod["metadata"].get("ownerReferences", ())), None)


class Controllers:
    """Looks at all there is, again and again, and does the next step. What fails, because something
    is not there yet or not there any more, is done in the next round."""

    def __init__(self, cluster, node):
        self.cluster, self.node, self.n = copy_of(cluster), node, 0
        self.namespaces = set()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        never = threading.Event()
        while not never.wait(ROUND):
            with contextlib.suppress(AssertionError, OSError, http.client.HTTPException):
                self.turn()

    def turn(self):
        for space in self.cluster.must("GET", CORE)["items"]:
            self.furnish(space["metadata"]["name"])
        pods = self.cluster.must("GET", "/api/v1/pods")["items"]
        owners = set()
        for kind in KINDS:
            for one in self.cluster.must("GET", f"/apis/apps/v1/{kind.lower()}s")["items"]:
                self.run_set(kind, one, pods)
                owners.add(one["metadata"]["uid"])
        for pod in pods:
            kind = [o["kind"] for o in pod["metadata"].get("ownerReferences", ())]
            if kind and kind[0] in KINDS and owner(pod) not in owners:
                self.delete(pod)
            elif not pod["spec"].get("nodeName"):
                self.bind(pod)

    def furnish(self, space):
        """Its account, and the API server's authority."""
        if space in self.namespaces:
            return
        self.cluster.ask(
            "POST", f"{CORE}/{space}/serviceaccounts", {"metadata": {"name": "default"}}
        )
        self.cluster.ask(
            "POST",
            f"{CORE}/{space}/configmaps",
            {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": read(self.cluster.ca)}},
        )
        self.namespaces.add(space)

    def run_set(self, kind, one, pods):
        """One pod of the template as it is now; the old one goes before the new one comes."""
        made, template = one["metadata"], one["spec"]["template"]
        mine = [pod for pod in pods if owner(pod) == made["uid"]]
        for pod in mine:
            if pod["metadata"]["labels"].get(REVISION) != revision(one):
                self.delete(pod)
        if mine:
            return
        self.n += 1
        name = f"{made['name']}-{0 if kind == 'StatefulSet' else self.n}"
        labels = {**template["metadata"]["labels"], REVISION: revision(one)}
        self.cluster.must(
            "POST",
            f"{CORE}/{made['namespace']}/pods",
            {
                "metadata": {
                    **template["metadata"],
                    "labels": labels,
                    "name": name,
                    "ownerReferences": [
                        {
                            "apiVersion": "apps/v1",
                            "kind": kind,
                            "name": made["name"],
                            "uid": made["uid"],
                            "controller": True,
                            "blockOwnerDeletion": True,
                        }
                    ],
                },
                "spec": {**template["spec"], "nodeName": self.node},
            },
        )

    def delete(self, pod):
        made = pod["metadata"]
        if "deletionTimestamp" not in made:
            self.cluster.must("DELETE", f"{CORE}/{made['namespace']}/pods/{made['name']}")

    def bind(self, pod):
        made = pod["metadata"]
        self.cluster.must(
            "POST",
            f"{CORE}/{made['namespace']}/pods/{made['name']}/binding",
            {
                "metadata": {"name": made["name"]},
                "target": {"apiVersion": "v1", "kind": "Node", "name": self.node},
            },
        )


class Names:
    """A DNS server: NAME.NAMESPACE.svc.cluster.local is the pods of a headless Service or, if that
    selects none, its EndpointSlices."""

    def __init__(self, cluster, address):
        self.cluster = copy_of(cluster)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 53))
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            question, who = self.socket.recvfrom(512)
            with contextlib.suppress(
                AssertionError, OSError, http.client.HTTPException, LookupError, ValueError
            ):
                self.socket.sendto(self.answer(question), who)

    def addresses(self, name):
        """None: there is no such name."""
        service, _, space = name.removesuffix(DOMAIN).partition(".")
        if not name.endswith(DOMAIN) or not space or "." in space:
            return None
        status, found = self.cluster.ask("GET", f"{CORE}/{space}/services/{service}")
        if status != 200:
            return None
        if not found["spec"].get("selector"):
            slices = f"/apis/discovery.k8s.io/v1/namespaces/{space}/endpointslices"
            mine = self.cluster.must("GET", f"{slices}?labelSelector={OF_SERVICE}%3D{service}")
            return [a for s in mine["items"] for one in s["endpoints"] for a in one["addresses"]]
        selector = ",".join(f"{k}%3D{v}" for k, v in found["spec"]["selector"].items())
        pods = self.cluster.must("GET", f"{CORE}/{space}/pods?labelSelector={selector}")["items"]
        return [pod["status"]["podIP"] for pod in pods if pod["status"].get("podIP")]

    def answer(self, question):
        at, words = 12, []
        while question[at]:
            words.append(question[at + 1 : at + 1 + question[at]].decode())
            at += 1 + question[at]
        kind = struct.unpack(">H", question[at + 1 : at + 3])[0]
        found = self.addresses(".".join(words).lower())
        records = found if found and kind == 1 else []
        head = struct.pack(">HHHHH", 0x8580 | (3 if found is None else 0), 1, len(records), 0, 0)
        answers = b"".join(
            struct.pack(">HHHIH", 0xC00C, 1, 1, 1, 4) + socket.inet_aton(one) for one in records
        )
        return question[:2] + head + question[12 : at + 5] + answers
