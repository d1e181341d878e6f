# SPDX-License-Identifier: Apache-2.0
"""Holds stacks against what calls.py says of itself."""

import os
import re

from profiles import Wrong

HERE = os.path.dirname(os.path.abspath(__file__))
CALLS = os.path.join(HERE, "calls.py")
AWAITS = os.path.join(HERE, "awaits.py")


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


class Awaits:
    """Which line of awaits.py calls or awaits whom."""

    def __init__(self):
        self.calls, self.cut = {}, []
        with open(AWAITS, encoding="utf-8") as f:
            for number, text in enumerate(f, 1):
                found = re.search(r"# calls: (.+)$", text)
                if found:
                    self.calls[number] = [found[1].replace(r"\xe4", "\xe4")]
                found = re.search(r"# calls behind the chain's end: (.+)$", text)
                if found:
                    self.cut = found[1].split(", ")

    def judge(self, frames):
        """The mark that the stack has, or "called"; only spin is judged, with what led there."""
        own = [f for f in frames if f.file.endswith("awaits.py") or is_mark(f)]
        if not own or own[-1].function != "spin":
            return None
        kinds, before, mark = set(), None, ""
        for frame in own:
            if is_mark(frame):
                mark = frame.function
                kinds.add(mark)
                continue
            self.check(before, f"{mark} {frame.function}".strip())
            before, mark = frame, ""
        return min(kinds, default="called", key=lambda kind: (kind == "[awaited by a task]", kind))

    def check(self, caller, callee):
        if caller is None:
            if callee != "<module>":
                raise Wrong(f"begins with {callee}")
            return
        expected = self.calls.get(caller.line, [])
        if caller.function == "<module>":
            expected = expected + self.cut
        if callee not in expected:
            raise Wrong(f"{caller} calls {callee}, not {expected}")


def is_mark(frame):
    return frame.function.startswith("[awaited by ")
