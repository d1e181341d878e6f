# SPDX-License-Identifier: Apache-2.0
"""A Pyroscope for tests: the tree's own push-receiver, or a real server.

ANDIRON_PYROSCOPE names a real one, as a URL (it is used as it is) or as a
binary (it is started in a folder of its own). What only the stand-in can do
(fail on demand, compact on demand) is asked for by `needs_stand_in`.
"""

import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "scenario"))
from ports import free_port
from waiting import DEADLINE, until

CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


class Skip(Exception):
    """Raised by a test that cannot run here; the text says what lifts it."""


def get(name):
    """The path of a server's binary; the server is built if need be."""
    made = subprocess.run(
        [os.path.join(HERE, "get"), name], stdout=subprocess.PIPE, text=True, check=False
    )
    if made.returncode == 3:
        language = "Rust 1.63" if os.path.exists(os.path.join(HERE, name, "pins")) else "Go 1.25"
        raise Skip(f"{language} or later is missing; install it")
    if made.returncode == 5:
        raise Skip("pip is missing; install python3-pip")
    made.check_returncode()
    return made.stdout.strip()


def free_ports(n):
    return [free_port() for _ in range(n)]


def real_flags(folder, http, grpc, raft, memberlist):
    """Everything on loopback, nothing sent anywhere, no waiting for readiness."""
    local = "127.0.0.1"
    flags = {
        "target": "all",
        "architecture.storage": "v2",
        "storage.backend": "filesystem",
        "storage.filesystem.dir": f"{folder}/shared",
        "metastore.data-dir": f"{folder}/meta",
        "metastore.raft.dir": f"{folder}/raft",
        "metastore.raft.snapshots-dir": f"{folder}/snap",
        "pyroscopedb.data-path": f"{folder}/db",
        "metastore.min-ready-duration": "0s",
        "segment-writer.min-ready-duration": "0s",
        "self-profiling.disable-push": "true",
        "usage-stats.enabled": "false",
        "tracing.enabled": "false",
        "server.http-listen-address": local,
        "server.http-listen-port": http,
        "server.grpc-listen-address": local,
        "server.grpc-listen-port": grpc,
        "metastore.address": f"{local}:{grpc}",
        "query-backend.address": f"{local}:{grpc}",
        "metastore.raft.bind-address": f"{local}:{raft}",
        "metastore.raft.server-id": f"{local}:{raft}",
        "metastore.raft.advertise-address": f"{local}:{raft}",
        "memberlist.bind-addr": local,
        "memberlist.bind-port": memberlist,
        "memberlist.advertise-addr": local,
        "distributor.ring.instance-addr": local,
        "query-frontend.instance-addr": local,
        "overrides-exporter.ring.instance-addr": local,
        "segment-writer.lifecycler.addr": local,
        "symbolizer.debuginfod-url": "http://127.0.0.1:1",
    }
    return [f"-{name}={value}" for name, value in flags.items()]


class Pyroscope:
    """A running server. `flags` are the stand-in's; a real one has its defaults."""

    def __init__(self, *flags):
        named = os.environ.get("ANDIRON_PYROSCOPE", "")
        self.process = self.folder = None
        self.stand_in = not named
        self.tls = False
        self.headers = {}
        if named.startswith(("http://", "https://")):
            self.url = named.rstrip("/")
        elif named:
            self.folder = tempfile.mkdtemp(prefix="andiron-pyroscope-")
            ports = free_ports(4)
            self.url = f"http://127.0.0.1:{ports[0]}"
            self.process = subprocess.Popen(
                [named, *real_flags(self.folder, *ports)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        else:
            self.process = subprocess.Popen(
                [get("push-receiver"), *flags], stdout=subprocess.PIPE, text=True
            )
            self.url = self.process.stdout.readline().strip()
            self.tls = "--tls-cert" in flags
        self._wait_ready()

    def _wait_ready(self):
        def ready():
            try:
                return self._open("GET", "/ready")[0] == 200
            except OSError:
                return False

        until(
            ready,
            f"readiness of the server at {self.url}",
            alive=lambda: not self.process or self.process.poll() is None,
        )

    def close(self):
        if self.process:
            self.process.terminate()
            self.process.wait(DEADLINE)
            if self.process.stdout:
                self.process.stdout.close()
        if self.folder:
            shutil.rmtree(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def needs_stand_in(self):
        if not self.stand_in:
            raise Skip("a real server does not fail on demand; unset ANDIRON_PYROSCOPE")

    def _open(self, method, path, body=None, headers=None):
        request = urllib.request.Request(
            self.url + path, data=body, method=method, headers={**self.headers, **(headers or {})}
        )
        try:
            anyone = ssl._create_unverified_context() if self.tls else None
            with urllib.request.urlopen(request, timeout=DEADLINE, context=anyone) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def push(self, body):
        """Status and answer to a PushRequest that is given as bytes."""
        return self._open(
            "POST", "/push.v1.PusherService/Push", body, {"Content-Type": "application/proto"}
        )

    def query(self, call, **message):
        """A call of the querier, over the last hour, as JSON."""
        now = int(time.time() * 1000)
        message = {"start": str(now - 3600_000), "end": str(now + 600_000), **message}
        status, body = self._open(
            "POST",
            f"/querier.v1.QuerierService/{call}",
            json.dumps(message).encode(),
            {"Content-Type": "application/json"},
        )
        if status != 200:
            raise RuntimeError(f"{call}: {status} {body[:300]!r}")
        return json.loads(body)

    def total(self, selector="{}", profile_type=CPU):
        """The sum of all values behind SelectMergeProfile."""
        merged = self.query(
            "SelectMergeProfile", profileTypeID=profile_type, labelSelector=selector
        )
        return sum(int(sample["value"][0]) for sample in merged.get("sample", []))

    def frames(self, selector="{}"):
        """Its locations, as [(file, build id, names)]."""
        merged = self.query("SelectMergeProfile", profileTypeID=CPU, labelSelector=selector)
        strings = merged.get("stringTable", [])
        mappings = {one["id"]: one for one in merged.get("mapping", [])}
        functions = {one["id"]: strings[int(one["name"])] for one in merged.get("function", [])}
        return [
            (
                strings[int(mappings.get(one.get("mappingId"), {}).get("filename", 0))],
                strings[int(mappings.get(one.get("mappingId"), {}).get("buildId", 0))],
                [functions[line["functionId"]] for line in one.get("line", [])],
            )
            for one in merged.get("location", [])
        ]

    def series(self, selector="{}", *names):
        found = self.query("Series", matchers=[selector], labelNames=list(names))
        return [
            {pair["name"]: pair["value"] for pair in one.get("labels", [])}
            for one in found.get("labelsSet", [])
        ]

    def label_names(self):
        return self.query("LabelNames").get("names", [])

    # What only the stand-in can do.
    def fault(self, mode, n=1, code=500, message=""):
        self.needs_stand_in()
        path = (
            f"/control/fault?mode={mode}&n={n}&code={code}&message={urllib.request.quote(message)}"
        )
        assert self._open("POST", path)[0] == 200

    def compact(self):
        """Drops all but one of the profiles of one series and time; how many went."""
        self.needs_stand_in()
        return int(self._open("POST", "/control/compact")[1])

    def requests(self):
        self.needs_stand_in()
        return int(self._open("GET", "/control/requests")[1])


def run(tests):
    """Runs functions as TAP: Skip skips, any other exception fails."""
    print(f"1..{len(tests)}", flush=True)
    failed = False
    for number, test in enumerate(tests, 1):
        title = f"{number} - {test.__doc__.strip().splitlines()[0]}"
        try:
            test()
            print("ok", title, flush=True)
        except Skip as why:
            print("ok", title, "# SKIP", why, flush=True)
        except Exception as why:  # any failure is this test's
            failed = True
            detail = f"{type(why).__name__}: {why}".replace("\n", "\n# ")
            print(f"not ok {title}\n# {detail}", flush=True)
    return failed
