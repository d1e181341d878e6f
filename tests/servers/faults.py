# SPDX-License-Identifier: Apache-2.0
"""What stands between a client and a real API server: a cable that can be pulled, a gateway at
which something happens before a request goes on."""

import contextlib
import ctypes
import http.client
import http.server
import ipaddress
import os
import socket
import ssl
import subprocess
import threading

import kubeapi

CLONE_NEWNET = 0x40000000


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Cable:
    """The way to a local port through a network namespace: packets end where it is cut, and nobody
    says so. Needs root."""

    def __init__(self, port):
        self.name, self.to, self.open = f"andiron-{os.getpid()}", port, []
        near, far = f"an{os.getpid()}", f"af{os.getpid()}"
        # Of the addresses for tests of networks four, so that two runs at a time do not have the
        # same.
        own = ipaddress.ip_network("198.18.0.0/15")[os.getpid() * 4 % 2**17]
        self.address, self.far = str(own + 2), far
        ip("netns", "add", self.name)
        ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", self.name)
        ip("address", "add", f"{own + 1}/30", "dev", near)
        ip("link", "set", near, "up")
        ip("-n", self.name, "link", "set", far, "up")
        self.mend()
        self.listener = self.inside(lambda: socket.create_server((self.address, 0)))
        self.port = self.listener.getsockname()[1]
        self.server = f"https://{self.address}:{self.port}"
        threading.Thread(target=self.accept, daemon=True).start()

    def inside(self, make):
        """A socket that is made in the namespace stays there."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/thread-self/ns/net", "rb") as home, open(
            f"/var/run/netns/{self.name}", "rb"
        ) as there:
            if libc.setns(there.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
            try:
                return make()
            finally:
                libc.setns(home.fileno(), CLONE_NEWNET)

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.to))
                self.open += [client, server]
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self.carry, args=pair, daemon=True).start()

    @staticmethod
    def carry(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)

    # A link that is down would be known to the sender's kernel; nobody tells it of an address that
    # is not there any more.
    def cut(self):
        ip("-n", self.name, "address", "delete", f"{self.address}/30", "dev", self.far)

    def mend(self):
        ip("-n", self.name, "address", "add", f"{self.address}/30", "dev", self.far)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        for one in self.open:
            one.close()
        ip("netns", "delete", self.name)


class Gateway(http.server.ThreadingHTTPServer):
    """The way to an API server by a proxy with a certificate of ca.crt: `before` is called with
    each request's path, and then it goes on."""

    daemon_threads = True

    def __init__(self, cluster, before):
        kubeapi.certify()
        self.cluster, self.before, self.answers = cluster, before, []
        super().__init__(("127.0.0.1", 0), Forward)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain("server.pem", "server.key")
        self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, *_):
        pass  # either end may leave

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Forward(http.server.BaseHTTPRequestHandler):
    """One request and its answer, as it comes; `answers` of the server gets (path, status)."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.before(self.path)
        cluster = self.server.cluster
        onward = http.client.HTTPSConnection(
            cluster.ADDRESS, cluster.port, context=ssl.create_default_context(cafile=cluster.ca)
        )
        with contextlib.closing(onward):
            onward.request(
                "GET",
                self.path,
                headers={name: self.headers[name] for name in ("Authorization", "Accept")},
            )
            answer = onward.getresponse()
            self.server.answers.append((self.path, answer.status))
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while piece := answer.read1(65536):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
