# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes API server over a real etcd, for tests, and what Prometheus
discovers there.

No kubelet and no scheduler: a test creates pods with a node's name and writes
their status itself. Everything listens on loopback and lives in the current
directory.
"""

import base64
import contextlib
import http.client
import json
import os
import ssl
import subprocess
import time

from pyroscope import free_ports, get, until

ADMIN = "admin-token"
CORE, RBAC = "/api/v1/namespaces", "/apis/rbac.authorization.k8s.io/v1"
# packaging/kubernetes/andiron.yaml, and where its objects are made
MANIFEST = os.path.join(
    os.path.dirname(os.path.abspath(__file__)),
    "..",
    "..",
    "packaging",
    "kubernetes",
    "andiron.yaml",
)
KINDS = {
    "Namespace": CORE,
    "ServiceAccount": f"{CORE}/andiron/serviceaccounts",
    "ConfigMap": f"{CORE}/andiron/configmaps",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "DaemonSet": "/apis/apps/v1/namespaces/andiron/daemonsets",
}


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def jwt(namespace, account, uid, lifetime=3600):
    """A service account's token, as the server's own issuer would sign it."""
    issuer, now = "https://kubernetes.default.svc", int(time.time())
    parts = [
        {"alg": "RS256", "typ": "JWT"},
        {
            "iss": issuer,
            "aud": [issuer],
            "sub": f"system:serviceaccount:{namespace}:{account}",
            "iat": now - 60,
            "nbf": now - 60,
            "exp": now + lifetime,
            "kubernetes.io": {
                "namespace": namespace,
                "serviceaccount": {"name": account, "uid": uid},
            },
        },
    ]
    coded = b".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=") for p in parts)
    signed = subprocess.run(
        ["openssl", "dgst", "-sha256", "-sign", "sa.key"],
        input=coded,
        check=True,
        capture_output=True,
    )
    return (coded + b"." + base64.urlsafe_b64encode(signed.stdout).rstrip(b"=")).decode()


def coded(data):
    return base64.b64encode(data).decode()


class Cluster:
    """etcd and kube-apiserver. `flags` are added to the API server's; `ca` is whom to trust, if
    not its own certificate."""

    ADDRESS, PORT = "127.0.0.1", 0  # where it is asked; 0: at any port
    BIND = ["--bind-address=127.0.0.1", "--disable-admission-plugins=ServiceAccount"]

    def __init__(self, *flags, ca="certs/apiserver.crt"):
        self.flags = flags
        self.programs = get("etcd"), get("kube-apiserver")
        self.etcd_port, peer, port = free_ports(3)
        self.port = self.PORT or port
        openssl("genrsa", "-out", "sa.key", "2048")
        openssl("rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")
        openssl(
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=clients",
            "-keyout",
            "clients.key",
            "-out",
            "clients.crt",
        )
        with open("tokens.csv", "w", encoding="utf-8") as f:
            f.write(f'{ADMIN},admin,admin-uid,"system:masters"\n')
        self.server, self.ca = f"https://{self.ADDRESS}:{self.port}", os.path.abspath(ca)
        self.api, self.connection, self.store, self.killed = None, None, None, None
        local = "http://127.0.0.1:"
        self.etcd = self.run(
            self.programs[0],
            "--data-dir=etcd",
            f"--listen-client-urls={local}{self.etcd_port}",
            f"--advertise-client-urls={local}{self.etcd_port}",
            f"--listen-peer-urls={local}{peer}",
            f"--initial-advertise-peer-urls={local}{peer}",
            f"--initial-cluster=default={local}{peer}",
            "--unsafe-no-fsync",
            "--quota-backend-bytes=8589934592",
            "--log-level=warn",
        )
        self.start()

    @staticmethod
    def run(*command):
        with open(f"log-{os.path.basename(command[0])}", "ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def start(self, *flags):
        """Starts the API server and waits until it is ready."""
        self.api = self.run(
            self.programs[1],
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            "--cert-dir=certs",
            f"--secure-port={self.port}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            "--token-auth-file=tokens.csv",
            "--client-ca-file=clients.crt",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-key-file=sa.pub",
            "--service-account-signing-key-file=sa.key",
            "--endpoint-reconciler-type=none",
            "--allow-privileged=true",
            *self.BIND,
            *self.flags,
            *flags,
        )
        until(self.ready, "the API server is ready")

    def ready(self):
        if self.api.poll() is not None:
            raise AssertionError(f"the API server ended with {self.api.returncode}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.ask("GET", "/readyz")[0] == 200
        return False

    def start_forgetful(self):
        """Starts it again without the history that etcd had."""
        self.compact()
        self.start()

    def kill(self):
        """The API server is gone, without a goodbye."""
        self.api.kill()
        self.api.wait()
        self.killed = time.monotonic()

    def ask(self, method, path, body=None, token=ADMIN, kind="application/json"):
        """Status and decoded answer of one request."""
        kept = self.connection
        if not self.connection:
            self.connection = http.client.HTTPSConnection(
                self.ADDRESS,
                self.port,
                timeout=120,
                context=ssl.create_default_context(cafile=self.ca),
            )
        try:
            text = body if body is None or isinstance(body, str) else json.dumps(body)
            self.connection.request(
                method, path, text, {"Authorization": f"Bearer {token}", "Content-Type": kind}
            )
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            if kept and method == "GET":
                return self.ask(
                    method, path, body, token, kind
                )  # what was kept may have been closed meanwhile
            raise
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text.decode(errors="replace")

    def fetch(self, path, accept):
        """The bytes of an answer, in a wire of one's choice."""
        connection = http.client.HTTPSConnection(
            self.ADDRESS, self.port, context=ssl.create_default_context(cafile=self.ca)
        )
        connection.request(
            "GET", path, headers={"Authorization": f"Bearer {ADMIN}", "Accept": accept}
        )
        found = connection.getresponse().read()
        connection.close()
        return found

    def must(self, method, path, body=None, kind="application/json"):
        status, answer = self.ask(method, path, body, kind=kind)
        assert 200 <= status < 300, (method, path, status, answer)
        return answer

    def create(self, path, body, status=None):
        """Creates an object and, where it is given, writes its status."""
        made = self.must("POST", path, body)
        if status is not None:
            made = self.patch(f"{path}/{body['metadata']['name']}/status", {"status": status})
        return made

    def apply(self, manifest):
        """Makes the objects of our manifest's text, to the letter; {kind: as made}."""
        made = {}
        for document in manifest.split("\n---\n"):
            kind = next(line[6:] for line in document.splitlines() if line.startswith("kind: "))
            made[kind] = self.must(
                "POST", f"{KINDS[kind]}?fieldValidation=Strict", document, "application/yaml"
            )
        assert set(made) == set(KINDS)
        return made

    def kubeconfig(self):
        """How programs other than this one ask it, as an administrator."""
        of_cluster = {"server": self.server, "certificate-authority": self.ca}
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": of_cluster}],
                "users": [{"name": "u", "user": {"token": ADMIN}}],
            }
        )

    def patch(self, path, body):
        return self.must("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path):
        self.must("DELETE", f"{path}?gracePeriodSeconds=0")

    def in_etcd(self, path, body):
        """One request to etcd itself, by its JSON gateway."""
        if not self.store:
            self.store = http.client.HTTPConnection("127.0.0.1", self.etcd_port, timeout=60)
        self.store.request("POST", path, json.dumps(body))
        answer = self.store.getresponse()
        text = answer.read()
        assert answer.status == 200, text
        return json.loads(text)

    def compact(self):
        """Forgets all history that etcd has."""
        revision = self.in_etcd("/v3/kv/range", {"key": coded(b"x")})["header"]["revision"]
        self.in_etcd("/v3/kv/compaction", {"revision": revision, "physical": True})

    def stored(self, namespace, name):
        """A pod's protobuf as etcd has it."""
        found = self.in_etcd(
            "/v3/kv/range", {"key": coded(f"/registry/pods/{namespace}/{name}".encode())}
        )
        return base64.b64decode(found["kvs"][0]["value"])

    def put(self, namespace, pods, together=100):
        """Writes pods, {name: protobuf}, straight into etcd: two thousand a second. The API server
        sees them at once.

        Those written together share one revision, which an API server never makes: who lists while
        it reads them gets some, and none of the others by watching on from there."""
        puts = [
            {
                "requestPut": {
                    "key": coded(f"/registry/pods/{namespace}/{name}".encode()),
                    "value": coded(value),
                }
            }
            for name, value in pods.items()
        ]
        for i in range(0, len(puts), together):
            self.in_etcd("/v3/kv/txn", {"success": puts[i : i + together]})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in (self.api, self.etcd):
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Oracle:
    """Prometheus's Kubernetes discovery; configs: {name: its configuration}."""

    def __init__(self, configs):
        with open("log-oracle", "ab") as log:
            self.process = subprocess.Popen(
                [get("kubernetes-oracle"), json.dumps(configs)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def targets(self):
        """{name: label sets, sorted} as of now."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        found = json.loads(self.process.stdout.readline())
        return {name: in_order(targets) for name, targets in found.items()}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def in_order(targets):
    return sorted(targets, key=lambda labels: sorted(labels.items()))


class Journal:
    """What test.journal has written, read as far as it goes."""

    def __init__(self, path):
        self.path, self.offset, self.rows, self.last = path, 0, {}, 0

    def read(self):
        """The changes since the last call."""
        changes = []
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb") as f:
            f.seek(self.offset)
            text = f.read()
            whole = text[: text.rfind(b"\n") + 1]
            self.offset += len(whole)
            changes = [json.loads(line) for line in whole.splitlines()]
        for change in changes:
            if change["labels"] is None:
                self.rows.pop(change["row"], None)
            else:
                self.rows[change["row"]] = change["labels"]
        return changes

    def targets(self):
        self.read()
        return in_order(self.rows.values())
