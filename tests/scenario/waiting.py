# SPDX-License-Identifier: Apache-2.0
"""Waiting for a condition: the one place where tests let time pass."""

import os
import time

SANITIZED = os.environ.get("SANITIZED") == "1"
# A sanitized program starts slowly, a busy machine slower, and nobody waits for long for what does
# happen.
DEADLINE = 300 if SANITIZED else 200


def until(condition, what, seconds=DEADLINE, alive=lambda: True):
    """The condition's first true value. Fails after so many seconds, and at once when nobody is
    alive who could make it true; `what` says what did not happen, as a text or as a function that
    makes one then.
    """
    end = time.monotonic() + seconds
    while True:
        lives = alive()  # asked first: what its end made true counts
        value = condition()
        if value:
            return value
        if not lives or time.monotonic() > end:
            text = what() if callable(what) else what
            raise AssertionError(
                f"{text} did not happen within {seconds} s" if lives else f"ended before {text}"
            )
        time.sleep(0.02)  # the poll interval
