# SPDX-License-Identifier: Apache-2.0
"""A browser that is driven as a person drives it: keys, sizes, light and dark, pictures. It is
spoken to by the DevTools protocol over two pipes, JSON that ends with NUL bytes."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

from waiting import DEADLINE

PROGRAM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
CODES = {"Tab": 9, "Enter": 13, "Escape": 27, "/": 191}
CODES |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


class Browser:
    """One page in a browser of its own; `faults` are what its console was told."""

    def __init__(self):
        to_read, self.out = os.pipe()
        self.into, to_write = os.pipe()
        self.n, self.rest, self.faults = 0, b"", []
        self.session, self.loaded = None, False

        def pipes():  # the browser reads from 3 and writes to 4
            kept = os.dup(to_read), os.dup(to_write)
            os.dup2(kept[0], 3)
            os.dup2(kept[1], 4)

        self.process = subprocess.Popen(
            [
                PROGRAM,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
                f"--user-data-dir={os.path.abspath('browser')}",
                "--remote-debugging-pipe",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=pipes,
        )
        os.close(to_read)
        os.close(to_write)
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.into)

    def message(self):
        end = time.monotonic() + DEADLINE
        while b"\0" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.into], [], [], left)[0]:
                raise AssertionError(f"the browser is silent for {DEADLINE} s")
            part = os.read(self.into, 1 << 20)
            assert part, "the browser has ended"
            self.rest += part
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def call(self, method, **params):
        self.n += 1
        wanted = {"id": self.n, "method": method, "params": params}
        if self.session:
            wanted["sessionId"] = self.session
        os.write(self.out, json.dumps(wanted).encode() + b"\0")
        while True:
            told = self.event()
            if told.get("id") == self.n:
                assert "error" not in told, (method, told)
                return told["result"]

    def event(self):
        told = self.message()
        if told.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.faults.append(json.dumps(told["params"]))
        self.loaded = self.loaded or told.get("method") == "Page.loadEventFired"
        return told

    def open(self, address):
        self.loaded = False
        self.call("Page.navigate", url=address)
        while not self.loaded:
            self.event()

    def reload(self):
        self.loaded = False
        self.call("Page.reload")
        while not self.loaded:
            self.event()

    def value(self, script):
        """What a JavaScript expression gives."""
        told = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in told, (script, told)
        return told["result"].get("value")

    def press(self, *keys):
        for key in keys:
            named = {"key": key, "windowsVirtualKeyCode": CODES.get(key, ord(key[0].upper()))}
            text = "\r" if key == "Enter" else key if len(key) == 1 else None
            down = {"text": text} if text else {}
            self.call("Input.dispatchKeyEvent", type="keyDown", **named, **down)
            self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def resize(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def colours(self, scheme):
        """\"light\" or \"dark\"."""
        wanted = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=wanted)

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as out:
            out.write(base64.b64decode(data))
