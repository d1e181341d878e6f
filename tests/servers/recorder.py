# SPDX-License-Identifier: Apache-2.0
"""A proxy that keeps what passes through it, and can be told to stand still."""

import gzip
import http.client
import http.server
import re
import threading
import urllib.parse


class Recorder:
    """Forwards requests to the server at `url`; `requests` has path, headers, body and status."""

    def __init__(self, url):
        recorder = self
        place = urllib.parse.urlparse(url)
        self.requests, self.lock, self.open = [], threading.Lock(), threading.Event()
        self.open.set()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                if self.headers.get("Transfer-Encoding") == "chunked":
                    body = b"".join(iter(self.chunk, b""))
                else:
                    body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = dict(self.headers)
                recorder.open.wait()
                ahead = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
                kept = {
                    k: v
                    for k, v in headers.items()
                    if k.lower() in ("content-type", "content-encoding", "user-agent")
                }
                ahead.request("POST", self.path, body, kept)
                answer = ahead.getresponse()
                text = answer.read()
                with recorder.lock:
                    recorder.requests.append((self.path, headers, body, answer.status))
                self.send_response(answer.status)
                for name in ("Content-Type", "Retry-After"):
                    if answer.getheader(name):
                        self.send_header(name, answer.getheader(name))
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
                ahead.close()

            def chunk(self):
                size = int(self.rfile.readline().split(b";")[0], 16)
                data = self.rfile.read(size)
                self.rfile.readline()
                return data

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def profiles(self):
        """The profiles of all requests that were answered 200, as their bytes, sorted."""
        with self.lock:
            done = list(self.requests)
        return sorted(
            profile
            for path, headers, body, status in done
            if status == 200
            for profile in profiles_of(path, headers, body)
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.open.set()
        self.server.shutdown()
        self.server.server_close()


def fields(data):
    """(number, bytes) of a message's length-delimited fields."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        assert tag & 7 in (0, 2), tag
        size = varint()
        if tag & 7 == 2:
            yield tag >> 3, data[at : at + size]
            at += size


def profiles_of(path, headers, body):
    headers = {k.lower(): v for k, v in headers.items()}
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    if path.startswith("/push.v1.PusherService/Push"):
        series = (one for number, one in fields(body) if number == 1)
        samples = (one for s in series for number, one in fields(s) if number == 2)
        return [one for s in samples for number, one in fields(s) if number == 1]
    boundary = re.search(r'boundary="?([^";]+)', headers.get("content-type", ""))
    if not boundary:
        return [body]
    parts = (b"\r\n" + body).split(b"\r\n--" + boundary[1].encode())
    heads = (part.partition(b"\r\n\r\n") for part in parts)
    names = (b'name="profile"', b'name="jfr"')
    return [data for head, _, data in heads if any(name in head for name in names)]
