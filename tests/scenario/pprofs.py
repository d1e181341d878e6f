# SPDX-License-Identifier: Apache-2.0
"""pprof profiles and pushed requests, as much of them as tests compare."""

import gzip
import http.server
import threading

from protobuf import fields, numbers, signed


def text_of(message, number):
    return next((v.decode() for f, v in fields(message) if f == number), "")


def values_by_function(pprof):
    """{(function, sample type): sum} over all samples with the function anywhere in their stack."""
    raw = gzip.decompress(pprof) if pprof[:2] == b"\x1f\x8b" else pprof
    parts = {}
    for number, value in fields(raw):
        parts.setdefault(number, []).append(value)
    strings = [s.decode() for s in parts[6]]
    types = [strings[(numbers(t, 1) or [0])[0]] for t in parts[1]]
    names = {numbers(f, 1)[0]: strings[numbers(f, 2)[0]] for f in parts.get(5, [])}
    of_location = {
        numbers(l, 1)[0]: {names[numbers(line, 1)[0]] for n, line in fields(l) if n == 4}
        for l in parts.get(4, [])
    }
    sums = {}
    for sample in parts.get(2, []):
        values = [signed(v) for v in numbers(sample, 2)]
        for name in set().union(*(of_location[l] for l in numbers(sample, 1)), set()):
            for kind, value in zip(types, values, strict=True):
                sums[name, kind] = sums.get((name, kind), 0) + value
    return sums


def span(pprof):
    """Begin and end of what a pushed profile covers, in ns; servers are told its end."""
    raw = gzip.decompress(pprof) if pprof[:2] == b"\x1f\x8b" else pprof
    end, duration = (numbers(raw, field)[0] for field in (9, 10))
    return end - duration, end


class Receiver:
    """Takes what pyroscope.write pushes: `pushed` is a list of (labels, profile's bytes)."""

    def __init__(self):
        self.pushed = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                for _, series in fields(body):
                    labels = {
                        text_of(label, 1): text_of(label, 2)
                        for n, label in fields(series)
                        if n == 1
                    }
                    for n, sample in fields(series):
                        if n == 2:
                            raw = next(v for f, v in fields(sample) if f == 1)
                            outer.pushed.append((labels, raw))
                self.send_response(200)
                self.send_header("Content-Type", "application/proto")
                self.send_header("Content-Length", "0")
                self.end_headers()

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def sums(self, name):
        """values_by_function over all profiles of that name."""
        total = {}
        for labels, raw in list(self.pushed):
            if labels["__name__"] == name:
                for key, value in values_by_function(raw).items():
                    total[key] = total.get(key, 0) + value
        return total
