# SPDX-License-Identifier: Apache-2.0
"""Holds stacks against what calls.py says of itself."""

import os
import re

from profiles import Wrong

HERE = os.path.dirname(os.path.abspath(__file__))
CALLS = os.path.join(HERE, "calls.py")


def short(name):
    """As versions before 3.11 know it."""
    return name.rsplit(".", 1)[-1]


class Tree:
    """Which line of the program calls whom."""

    def __init__(self, qualified):
        self.qualified = qualified
        self.calls, self.by_native, self.loops = {}, set(), {}
        with open(CALLS, encoding="utf-8") as f:
            for number, text in enumerate(f, 1):
                found = re.search(r"# calls: (\S+)", text)
                if found:
                    self.calls[number] = self.name(found[1])
                if text.rstrip().endswith(" by native"):
                    self.by_native.add(number)
                loop = re.search(r"# (one|three)$", text.rstrip())
                if loop:
                    self.loops[number] = loop[1]

    def name(self, qualified):
        return qualified if self.qualified else short(qualified)

    def judge(self, frames):
        """Which of the two loops of spin the stack, root first, ends in, or "else"."""
        own = [i for i, f in enumerate(frames) if is_own(f)]
        if not own:
            return None
        first = frames[own[0]]
        if first.function not in ("<module>", "work", self.name("top_task")):
            raise Wrong(f"begins with {first}")
        for at, to in zip(own, own[1:]):
            self.check_call(frames[at], frames[to], frames[at + 1 : to])
        for i in own:
            if frames[i].line < frames[i].first or frames[i].line == 0:
                raise Wrong(f"{frames[i]} begins at {frames[i].first}")
        return self.loops.get(frames[own[-1]].line, "else")

    def check_call(self, caller, callee, between):
        expected = self.calls.get(caller.line)
        if caller.function == "made":
            expected = "spin" if caller.line == 2 else None
        if callee.function == "<module>" and caller.function == "by_exec":
            expected = "<module>"
        if callee.function != expected:
            raise Wrong(f"{caller} calls {callee}, not {expected}")
        native = [f for f in between if not f.file.endswith(".py")]
        if caller.line in self.by_native and not native:
            raise Wrong(f"{caller} calls {callee} without native frames")


def is_own(frame):
    return frame.file.endswith("calls.py") or frame.file == "<made>"
