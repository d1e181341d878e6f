# SPDX-License-Identifier: Apache-2.0
"""An S3 bucket in memory, as much of one as Parca needs of it, that signs URLs.

A request by a signed URL is checked by the rules of AWS's signature 4, and by those that Google's
signature 2 has beyond it: no header that was not signed may say what the body is.
"""

import hashlib
import hmac
import http.server
import re
import threading
import time
import urllib.parse

KEY, SECRET, REGION = "key", "secret", "here"


def signature(method, path, query, host):
    """What the X-Amz-Signature of a signed URL is to be."""
    given = dict(urllib.parse.parse_qsl(query))
    assert given["X-Amz-SignedHeaders"] == "host", given
    rest = "&".join(
        sorted(part for part in query.split("&") if not part.startswith("X-Amz-Signature="))
    )
    request = "\n".join([method, path, rest, f"host:{host}", "", "host", "UNSIGNED-PAYLOAD"])
    date = given["X-Amz-Date"]
    scope = f"{date[:8]}/{REGION}/s3/aws4_request"
    text = "\n".join(
        ["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(request.encode()).hexdigest()]
    )
    key = f"AWS4{SECRET}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key.hex()


def unchunked(body):
    """The bytes of a body in chunks that are signed one by one."""
    out, at, size = b"", 0, None
    while size != 0:
        end = body.index(b"\r\n", at)
        size = int(body[at:end].split(b";")[0], 16)
        out += body[end + 2 : end + 2 + size]
        at = end + 2 + size + 2
    return out


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def describe(self, data):
        return {
            "ETag": f'"{hashlib.md5(data).hexdigest()}"',
            "Content_Type": "application/octet-stream",
            "Last_Modified": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()),
        }

    def do_GET(self):
        path, _, query = self.path.partition("?")
        data = self.server.objects.get(path)
        if "list-type" in query:
            self.say(
                200,
                b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>",
                Content_Type="application/xml",
            )
        elif data is None:
            self.say(
                404,
                b"<Error><Code>NoSuchKey</Code><Message>none</Message></Error>",
                Content_Type="application/xml",
            )
        else:
            asked = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            first, last = (
                (int(asked[1]), int(asked[2] or len(data) - 1)) if asked else (0, len(data) - 1)
            )
            part = {"Content_Range": f"bytes {first}-{last}/{len(data)}"} if asked else {}
            self.say(206 if asked else 200, data[first : last + 1], **self.describe(data), **part)

    do_HEAD = do_GET

    def do_PUT(self):
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if "X-Amz-Signature" in query:
            self.server.signed.append(path)
            status = self.server.faults.pop(0) if self.server.faults else 200
            right = (
                signature("PUT", path, query, self.headers["Host"])
                == dict(urllib.parse.parse_qsl(query))["X-Amz-Signature"]
            )
            if not right or "Content-Type" in self.headers or "Authorization" in self.headers:
                status = 403
            if status != 200:
                self.say(status)
                return
        if self.headers.get("X-Amz-Content-Sha256", "").startswith("STREAMING-"):
            body = unchunked(body)
        self.server.objects[path] = body
        self.say(200, **self.describe(body))


class Bucket:
    """`objects` by path; `signed`: paths that were put to by signed URLs; `faults`: what the next
    of these are answered."""

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.objects, self.server.signed, self.server.faults = {}, [], []
        self.objects, self.signed, self.faults = (
            self.server.objects,
            self.server.signed,
            self.server.faults,
        )
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def config(self):
        """As Parca's configuration has it."""
        return (
            "object_storage:\n  bucket:\n    type: S3\n    config:\n      bucket: files\n"
            f"      endpoint: 127.0.0.1:{self.server.server_port}\n      region: {REGION}\n     "
            f" insecure: true\n"
            f"      access_key: {KEY}\n      secret_key: {SECRET}\n"
        )
