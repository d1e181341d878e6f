# SPDX-License-Identifier: Apache-2.0
"""Holds stacks against what calls.py says of itself."""

import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
CALLS = os.path.join(HERE, "calls.py")


def short(name):
    """As versions before 3.11 know it."""
    return name.rsplit(".", 1)[-1]


class Tree:
    """Which line of the program calls whom."""

    def __init__(self, qualified):
        self.qualified = qualified
        self.calls, self.one, self.three = {}, 0, 0
        with open(CALLS, encoding="utf-8") as f:
            for number, text in enumerate(f, 1):
                found = re.search(r"# calls: (\S+)", text)
                if found:
                    self.calls[number] = self.name(found[1])
                if text.rstrip().endswith("# one"):
                    self.one = number
                if text.rstrip().endswith("# three"):
                    self.three = number

    def name(self, qualified):
        return qualified if self.qualified else short(qualified)

    def wrong(self, frames):
        """Why these frames, root first, cannot be; None: they can."""
        own = [f for f in frames if f.file.endswith("calls.py") or f.file == "<made>"]
        if not own:
            return "no frame of the program"
        if own[0].function not in ("<module>", "work", self.name("top_task")):
            return f"begins with {own[0]}"
        for caller, callee in zip(own, own[1:]):
            if caller.function == "made":
                expected = "spin" if caller.line == 2 else None
            else:
                expected = self.calls.get(caller.line)
            if callee.function == "<module>" and caller.function == "by_exec":
                continue
            if callee.function != expected:
                return f"{caller} calls {callee}, not {expected}"
        for frame in own:
            if frame.line == 0 or frame.line < frame.first:
                return f"{frame} begins at {frame.first}"
        return None
