# SPDX-License-Identifier: Apache-2.0
"""What stands between a client and a real API server, and fails: a cable that can be pulled."""
import contextlib
import ctypes
import os
import socket
import subprocess
import threading

CLONE_NEWNET = 0x40000000


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Cable:
    """The way to a local port through a network namespace: packets end where it is cut, and nobody says so. Needs root."""

    def __init__(self, port):
        self.name, self.to, self.open = f"andiron-{os.getpid()}", port, []
        near, far = f"an{os.getpid()}", f"af{os.getpid()}"
        self.far = far
        ip("netns", "add", self.name)
        ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", self.name)
        ip("address", "add", "10.213.77.1/30", "dev", near)
        ip("link", "set", near, "up")
        ip("-n", self.name, "link", "set", far, "up")
        self.mend()
        self.listener = self.inside(lambda: socket.create_server(("10.213.77.2", 0)))
        self.port = self.listener.getsockname()[1]
        self.server = f"https://10.213.77.2:{self.port}"
        threading.Thread(target=self.accept, daemon=True).start()

    def inside(self, make):
        """A socket that is made in the namespace stays there."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/thread-self/ns/net", "rb") as home, open(f"/var/run/netns/{self.name}", "rb") as there:
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

    # A link that is down would be known to the sender's kernel; nobody tells it of an address that is not there any more.
    def cut(self):
        ip("-n", self.name, "address", "delete", "10.213.77.2/30", "dev", self.far)

    def mend(self):
        ip("-n", self.name, "address", "add", "10.213.77.2/30", "dev", self.far)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        for one in self.open:
            one.close()
        ip("netns", "delete", self.name)
