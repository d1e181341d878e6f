# SPDX-License-Identifier: Apache-2.0
"""A real Parca for tests, in a folder of its own, its store surviving kill -9.

Requests go as gRPC-Web over HTTP/1.1, which a library of Python's own speaks;
the writer under test speaks gRPC over HTTP/2 to the same port.
"""

import base64
import gzip
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from pyroscope import DEADLINE, free_ports, get, until  # makes the scenarios' modules known
from protobuf import fields, numbers, signed
from wire import number, piece

WRITE = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"


class Parca:
    def __init__(self, *flags, storage=None, address="127.0.0.1"):
        """`storage`: its configuration of that; None: a folder of its own."""
        self.flags = flags
        self.folder = tempfile.mkdtemp(prefix="andiron-parca-")
        os.mkdir(
            f"{self.folder}/cache"
        )  # it names nothing without it, and says so at --log-level=debug only
        self.port = free_ports(1)[0]
        self.address = f"{address}:{self.port}"
        self.url = f"http://{self.address}"
        self.config = f"{self.folder}/parca.yaml"
        with open(self.config, "w", encoding="utf-8") as config:
            config.write(
                storage
                or "object_storage:\n  bucket:\n    type: FILESYSTEM\n    config:\n"
                f"      directory: {self.folder}/data\n"
            )
        self.start()

    def start(self):
        self.log = open(f"{self.folder}/log", "ab")
        self.process = subprocess.Popen(
            [
                get("parca"),
                f"--config-path={self.config}",
                f"--http-address={self.address}",
                "--debuginfod-upstream-servers=http://127.0.0.1:9",
                f"--debuginfo-cache-dir={self.folder}/cache",
                "--enable-persistence",
                "--storage-enable-wal",
                f"--storage-path={self.folder}/store",
                *self.flags,
            ],
            stdout=self.log,
            stderr=self.log,
            cwd=self.folder,
        )
        until(
            lambda: self.get("/metrics")[0] == 200,
            "Parca's readiness",
            alive=lambda: self.process.poll() is None,
        )

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait(DEADLINE)
        self.log.close()

    def restart(self, how=signal.SIGTERM):
        self.stop(how)
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop(signal.SIGKILL)
        shutil.rmtree(self.folder)

    def get(self, path):
        """Status and body; 0 without an answer."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=180) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError:
            return 0, b""

    def call(self, path, *messages):
        """A gRPC-Web call: status, message and answer; -1 when the connection is lost."""
        body = b"".join(b"\0" + len(message).to_bytes(4, "big") + message for message in messages)
        request = urllib.request.Request(
            self.url + path, data=body, headers={"Content-Type": "application/grpc-web+proto"}
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return self.trailers(answer.headers, answer.read())
        except (OSError, EOFError) as error:
            return -1, str(error), b""
        except Exception as error:  # http.client's own, when the server dies
            return -1, str(error), b""

    @staticmethod
    def trailers(headers, body):
        answer, found = b"", {k.lower(): v for k, v in headers.items()}
        while body:
            n = int.from_bytes(body[1:5], "big")
            if body[0] & 0x80:
                for line in body[5 : 5 + n].decode().split("\r\n"):
                    name, _, value = line.partition(":")
                    found[name.strip().lower()] = value.strip()
            else:
                answer += body[5 : 5 + n]
            body = body[5 + n :]
        return (
            int(found.get("grpc-status", -1)),
            urllib.parse.unquote(found.get("grpc-message", "")),
            answer,
        )

    def write(self, *series):
        """WriteRaw of series given as bytes: status and message."""
        return self.call(WRITE, b"".join(piece(2, one) for one in series))[:2]

    def query(self, path, **arguments):
        status, body = self.get(f"/api/profiles/{path}?{urllib.parse.urlencode(arguments)}")
        if status != 200:
            raise RuntimeError(f"{path}: {status} {body[:300]!r}")
        return json.loads(body)

    def merged(self, selector="{}", profile_type=CPU):
        """The pprof of all profiles of two hours, as bytes."""
        now = time.time()
        stamp = "%Y-%m-%dT%H:%M:%SZ"
        answer = self.query(
            "query",
            mode="MODE_MERGE",
            report_type="REPORT_TYPE_PPROF",
            **{
                "merge.query": profile_type + selector,
                "merge.start": time.strftime(stamp, time.gmtime(now - 3600)),
                "merge.end": time.strftime(stamp, time.gmtime(now + 3600)),
            },
        )
        return gzip.decompress(base64.b64decode(answer["pprof"]))

    def total(self, selector="{}", profile_type=CPU):
        """The sum of its values."""
        profile = self.merged(selector, profile_type)
        return sum(
            value
            for field, sample in fields(profile)
            if field == 2
            for value in numbers(sample, 2)[:1]
        )

    def frames(self, selector="{}"):
        """Its locations, as {(file, build id, address): names}; names is empty where there is
        none."""
        profile = list(fields(self.merged(selector)))
        strings = [value.decode() for field, value in profile if field == 6]
        tables = {
            kind: {
                one[1]: one
                for one in (dict(fields(value)) for field, value in profile if field == kind)
            }
            for kind in (3, 5)
        }
        found = {}
        for field, value in profile:
            if field != 4:
                continue
            place = dict(fields(value))
            mapping = tables[3].get(place.get(2), {})
            lines = [dict(fields(line)) for kind, line in fields(value) if kind == 4]
            found[strings[mapping.get(5, 0)], strings[mapping.get(6, 0)], place.get(3, 0)] = [
                strings[tables[5][line[1]].get(2, 0)] for line in lines
            ]
        return found

    def give_debug_file(self, build_id, path):
        """Uploads a debug file, as Parca's own clients do."""

        def call(method, *messages):
            status, text, answer = self.call(
                f"/parca.debuginfo.v1alpha1.DebuginfoService/{method}", *messages
            )
            if status != 0:
                raise RuntimeError(f"{method}: {status} {text}")
            return dict(fields(answer))

        with open(path, "rb") as f:
            content = f.read()
        begun = call(
            "InitiateUpload", piece(1, build_id) + number(2, len(content)) + piece(3, build_id)
        )
        upload = dict(fields(begun[1]))[2]
        call(
            "Upload", piece(1, piece(1, build_id) + piece(2, upload)), piece(2, content)
        )  # a stream
        call("MarkUploadFinished", piece(1, build_id) + piece(2, upload))

    def labels(self):
        return self.query("labels").get("labelNames", [])

    def types(self):
        return [
            ":".join(
                [t["name"], t["sampleType"], t["sampleUnit"], t["periodType"], t["periodUnit"]]
            )
            + (":delta" if t.get("delta") else "")
            for t in self.query("types").get("types", [])
        ]


def series(labels, *profiles, packed=True):
    """A RawProfileSeries; labels None: no label set at all."""
    out = (
        b""
        if labels is None
        else piece(1, b"".join(piece(1, piece(1, n) + piece(2, v)) for n, v in labels))
    )
    for one in profiles:
        out += piece(2, piece(1, gzip.compress(one, 1, mtime=0) if packed else one))
    return out
