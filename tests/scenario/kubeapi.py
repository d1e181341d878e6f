# SPDX-License-Identifier: Apache-2.0
"""As much of a Kubernetes API server as a pod discovery sees, and its faults.

TLS with a CA made here, a bearer token, LIST in pages, WATCH as JSON lines with
bookmarks; unless `initial` is set, no watch that begins with all there is, as
servers were before 1.32. `faults` takes functions that answer the next requests
instead.
"""

import contextlib
import http.server
import json
import socket
import ssl
import subprocess
import threading
import urllib.parse

from ports import free_port

TOKEN = "first-token"
BOOKMARK_SECONDS = 0.2


NEW = [
    "openssl",
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-nodes",
    "-days",
    "2",
]


def authority(key, certificate):
    """A CA in these files."""
    subprocess.run(
        [*NEW, "-subj", "/CN=test CA", "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )


def certificate(name, *extensions):
    """NAME.pem with NAME.key, of the authority in ca.crt."""
    files = ["-CA", "ca.crt", "-CAkey", "ca.key", "-keyout", f"{name}.key", "-out", f"{name}.pem"]
    extensions = ("basicConstraints=critical,CA:FALSE", *extensions)
    added = [word for e in extensions for word in ("-addext", e)]
    subprocess.run([*NEW, "-subj", f"/CN={name}", *added, *files], check=True, capture_output=True)


def certify():
    """ca.crt, and server.pem with server.key for 127.0.0.1, in the current directory."""
    authority("ca.key", "ca.crt")
    certificate("server", "subjectAltName=IP:127.0.0.1")


def pod(namespace, name, uid, containers, **labels):
    """A running pod; containers: {name: container id}."""
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "labels": labels,
            "managedFields": [{"manager": "kubelet"}],
        },
        "spec": {
            "nodeName": "node-1",
            "containers": [{"name": c, "image": f"{c}:1"} for c in containers],
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.7",
            "hostIP": "10.1.0.1",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [
                {"name": c, "containerID": f"containerd://{cid}", "state": {"running": {}}}
                for c, cid in containers.items()
            ],
        },
    }


def status(code, message):
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "code": code,
    }


# Faults, to stand in the place of an answer.


def refuses(code, message="no", **headers):
    """An HTTP error with a Status object."""
    return lambda handler: handler.say(code, json.dumps(status(code, message)) + "\n", **headers)


def garbage(handler):
    """What a proxy's error page is like."""
    handler.say(200, "<html><body>It works!</body></html>\n", content_type="text/html")


def event(kind, thing):
    """A watch of this one event; the server goes on with no other."""

    def fault(handler):
        handler.begin()
        handler.line(kind, thing)
        handler.finish_watch()

    return fault


def silence(handler):
    """A watch that ends with nothing said."""
    handler.begin()
    handler.finish_watch()


def half_a_line(handler):
    """A watch that breaks in the middle of an event."""
    handler.begin()
    handler.chunk('{"type":"ADDED","object":{"kind":"Pod","metad')
    handler.close_connection = True


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = (
        "HTTP/1.1"  # a watch comes in chunks, so that its end shows whether it is whole
    )

    def log_message(self, *_):
        pass

    def say(self, code, text, content_type="application/json", **headers):
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(text.encode())))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(text.encode())

    def begin(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, text):
        self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())

    def line(self, kind, thing):
        self.chunk(json.dumps({"type": kind, "object": thing}) + "\n")

    def finish_watch(self):
        self.chunk("")

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = {name: values[0] for name, values in urllib.parse.parse_qs(url.query).items()}
        with contextlib.suppress(OSError):
            self.server.api.answer(self, url.path, query)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port, api):
        super().__init__(("127.0.0.1", port), Handler)
        self.api, self.open = api, set()

    def finish_request(self, request, client_address):
        request.settimeout(30)
        with contextlib.suppress(OSError), self.api.tls.wrap_socket(
            request, server_side=True
        ) as secure:
            self.open.add(secure)
            super().finish_request(secure, client_address)
            self.open.discard(secure)

    def handle_error(self, request, client_address):
        pass


class KubeApi:
    """The pods and who watches them; start() and stop() keep the port."""

    def __init__(self, page=2, initial=False):
        certify()
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain("server.pem", "server.key")
        self.token, self.page, self.initial = TOKEN, page, initial
        self.pods, self.events, self.version = {}, [], 100
        self.list_faults, self.watch_faults, self.seen = [], [], []
        self.objects = {}  # what a path gives: an object, a text, or a fault
        self.changed = threading.Condition()
        self.server, self.port, self.round = None, free_port(), 0
        self.start()

    def start(self):
        self.server = Server(self.port, self)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def stop(self):
        server, self.server = self.server, None
        self.end_watches()
        server.shutdown()
        server.server_close()
        self.thread.join()
        for connection in list(server.open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def end_watches(self):
        """As a server does after a while; the next watch meets the next fault."""
        with self.changed:
            self.round += 1
            self.changed.notify_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.server:
            self.stop()

    def set(self, thing, kind="MODIFIED"):
        """Creates or changes a pod; with kind DELETED it goes."""
        key = (thing["metadata"]["namespace"], thing["metadata"]["name"])
        with self.changed:
            self.version += 1
            thing["metadata"]["resourceVersion"] = str(self.version)
            known = self.pods.pop(key, None)
            if kind != "DELETED":
                self.pods[key] = thing
                kind = "MODIFIED" if known else "ADDED"
            self.events.append((self.version, kind, thing))
            self.changed.notify_all()

    def answer(self, handler, path, query):
        watch, initial = query.get("watch") == "true", query.get("sendInitialEvents") == "true"
        if initial and not self.initial:
            refuses(
                422,
                "sendInitialEvents is forbidden for watch unless the WatchList feature gate is "
                "enabled",
            )(handler)
            return
        faults = self.watch_faults if watch else self.list_faults
        self.seen.append(("watch" if watch else "list", path, query))
        if handler.headers["Authorization"] != f"Bearer {self.token}":
            refuses(401, "Unauthorized")(handler)
        elif path in self.objects:
            self.one(handler, self.objects[path])
        elif path != "/api/v1/pods":
            refuses(404, f"the server could not find {path}")(handler)
        elif faults:
            faults.pop(0)(handler)
        elif watch:
            handler.begin()
            self.watch(
                handler, self.tell_all(handler) if initial else int(query["resourceVersion"])
            )
        else:
            self.list(handler, query)

    def one(self, handler, thing):
        if callable(thing):
            thing(handler)
        else:
            handler.say(200, thing if isinstance(thing, str) else json.dumps(thing))

    def list(self, handler, query):
        first = int(query.get("continue", "0"))
        size = min(self.page, int(query.get("limit", "500")))
        with self.changed:
            items = [self.pods[key] for key in sorted(self.pods)]
            meta = {"resourceVersion": str(self.version)}
        if first + size < len(items):
            meta["continue"] = str(first + size)
        handler.say(
            200,
            json.dumps(
                {
                    "kind": "PodList",
                    "apiVersion": "v1",
                    "metadata": meta,
                    "items": items[first : first + size],
                }
            ),
        )

    def tell_all(self, handler):
        """All there is as events, and the bookmark behind them."""
        with self.changed:
            pods, version = list(self.pods.values()), self.version
        for thing in pods:
            handler.line("ADDED", thing)
        handler.line(
            "BOOKMARK",
            {
                "kind": "Pod",
                "metadata": {
                    "resourceVersion": str(version),
                    "annotations": {"k8s.io/initial-events-end": "true"},
                },
            },
        )
        return version

    def after(self, version):
        return [e for e in self.events if e[0] > version]

    def watch(self, handler, version):
        mine = self.round
        while self.round == mine:
            with self.changed:
                in_time = self.after(version) or self.changed.wait(BOOKMARK_SECONDS)
                new = self.after(version)  # also what came when the wait had ended already
                if not new and not in_time:
                    new = [
                        (
                            self.version,
                            "BOOKMARK",
                            {"kind": "Pod", "metadata": {"resourceVersion": str(self.version)}},
                        )
                    ]
            for version, kind, thing in new:
                handler.line(kind, thing)
        handler.finish_watch()

    def count(self, what):
        return sum(kind == what for kind, _, _ in self.seen)
