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
        self.calls, self.by_native, self.one, self.three = {}, set(), 0, 0
        with open(CALLS, encoding="utf-8") as f:
            for number, text in enumerate(f, 1):
                found = re.search(r"# calls: (\S+)", text)
                if found:
                    self.calls[number] = self.name(found[1])
                if text.rstrip().endswith(" by native"):
                    self.by_native.add(number)
                if text.rstrip().endswith("# one"):
                    self.one = number
                if text.rstrip().endswith("# three"):
                    self.three = number

    def name(self, qualified):
        return qualified if self.qualified else short(qualified)

    def wrong(self, frames):
        """Why these frames, root first, cannot be; None: they can."""
        own = [i for i, f in enumerate(frames) if is_own(f)]
        if not own:
            return "no frame of the program"
        first = frames[own[0]]
        if first.function not in ("<module>", "work", self.name("top_task")):
            return f"begins with {first}"
        for at, to in zip(own, own[1:]):
            why = self.wrong_call(frames[at], frames[to], frames[at + 1 : to])
            if why:
                return why
        for i in own:
            if frames[i].line < frames[i].first or frames[i].line == 0:
                return f"{frames[i]} begins at {frames[i].first}"
        return None

    def wrong_call(self, caller, callee, between):
        expected = self.calls.get(caller.line)
        if caller.function == "made":
            expected = "spin" if caller.line == 2 else None
        if callee.function == "<module>" and caller.function == "by_exec":
            expected = "<module>"
        if callee.function != expected:
            return f"{caller} calls {callee}, not {expected}"
        native = [f for f in between if not f.file.endswith(".py")]
        if caller.line in self.by_native and not native:
            return f"{caller} calls {callee} without native frames"
        return None


def is_own(frame):
    return frame.file.endswith("calls.py") or frame.file == "<made>"


class Told:
    """What the stacks of a run come to."""

    def __init__(self, stacks, tree):
        self.samples = self.early = self.whole = self.one = self.three = 0
        self.wrong = {}
        for frames, n, _ in stacks:
            self.samples += n
            if is_early(frames):
                self.early += n
                continue
            why = tree.wrong(frames)
            if why:
                self.wrong[why] = self.wrong.get(why, 0) + n
            self.whole += n * is_whole(frames)
            own = [f for f in frames if is_own(f)]
            if own and own[-1].function == "spin":
                self.one += n * (own[-1].line == tree.one)
                self.three += n * (own[-1].line == tree.three)
        self.later = self.samples - self.early

    def __str__(self):
        return (
            f"{self.samples} samples, {self.early} before the program ran or was known; of the "
            f"others right {self.right:.2%}, whole {self.whole / self.later:.2%}, "
            f"line three of one and three {self.share:.3f}"
        )

    @property
    def right(self):
        return 1 - sum(self.wrong.values()) / self.later

    @property
    def share(self):
        return self.three / max(1, self.one + self.three)


def is_whole(frames):
    return re.search(r"^_start$|clone|start_thread|libc", frames[0].function) is not None


def is_early(frames):
    """The interpreter starts, or the process was not known yet."""
    return frames[0].function == "[runtime]" or not any(map(is_own, frames))
