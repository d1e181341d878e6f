# SPDX-License-Identifier: Apache-2.0
"""Pages of ours in a real browser, whose picture of them is read back as text."""

import os
import re
import shutil
import subprocess
import tempfile

PROGRAM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
SKIP = "1..0 # SKIP no browser: install chromium to try the flame graph in one"


def dump(work, page, address=""):
    profile = tempfile.mkdtemp(dir=work)
    command = [
        PROGRAM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        f"--user-data-dir={profile}",
        "--virtual-time-budget=3000",
        "--dump-dom",
        "file://" + page + address,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True).stdout


def play(work, page, script):
    """What the page says of itself after a script that plays the user. A copy of the page has it,
    whose policy is taken out for that."""
    played = os.path.join(work, "played.html")
    with open(page, encoding="utf-8") as text, open(played, "w", encoding="utf-8") as out:
        out.write(re.sub(r"<meta http-equiv[^>]*>", "", text.read()).replace("</body>", script))
    return dump(work, played)
