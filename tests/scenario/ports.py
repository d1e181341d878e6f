# SPDX-License-Identifier: Apache-2.0
"""Ports for servers that have to be told theirs, ports at which nobody answers, and what carries
bytes from one connection to another."""

import contextlib
import socket

held = []


def free_port():
    """A port of 127.0.0.1 that is nobody else's until this process ends. It is bound, and so not
    given to others; since nobody listens there, a server may: all servers bind with SO_REUSEADDR.
    Until one does, connections are refused.
    """
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))
    held.append(s)
    return s.getsockname()[1]


def carry(source, sink):
    """Sends what comes until its end, and then that."""
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            sink.sendall(piece)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
