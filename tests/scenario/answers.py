# SPDX-License-Identifier: Apache-2.0
"""An HTTP server of a test, and what it answers: good, bad or never."""

import contextlib
import http.server
import threading


class Server:
    """Answers every request by `answer`, a function of the handler; `seen` has their heads."""

    def __init__(self, answer, port=0):
        self.answer, self.seen = answer, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.close_connection = True
                sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.seen.append((self.command, self.path, dict(self.headers), sent))
                with contextlib.suppress(OSError):
                    outer.answer(self)

            do_POST = do_GET

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def says(text, code=200, **headers):
    body = text if isinstance(text, bytes) else str(text).encode()

    def answer(handler):
        handler.send_response(code)
        handler.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


# What a server of profiles says to a push.
TAKEN = says("", **{"Content-Type": "application/proto"})


def endless(piece):
    """Never ends, fast or slowly, until the client goes."""

    def answer(handler):
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(piece)
            if len(piece) < 2:
                threading.Event().wait(0.05)

    return answer


def by_path(**answers):
    return lambda handler: answers[handler.path.strip("/")](handler)
