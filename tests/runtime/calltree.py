# SPDX-License-Identifier: Apache-2.0
"""Programs whose call tree is known, by comments at the end of their lines:

calls: A B      the next frame of the program is A or B; other.js:A: of that file; ~ is a space
… by library    frames that are not of the program stand between
… by NAME       a frame of that name stands between
native A …      this holds for A, a native method, or what has no line for other reasons
burns           it works, and calls none of the program's functions
one, four       the lines of a function that spins; their times are as 1 to 4
[N]             the line spins N times
"""

import collections
import re

from profiles import Judged, Wrong


class Line:
    def __init__(self, text):
        called = re.search(r"calls: (.*?)( \[\d+\])?$", text.rstrip())
        words, _, self.by = called[1].partition(" by ") if called else ("", "", "")
        self.calls = [word.replace("~", " ") for word in words.split()]
        self.starts = text.strip() == "starts"
        native = re.match(r"native (\S+)", text)
        self.native = native[1] if native else None
        spins = re.search(r"\[(\d+)\]", text)
        self.spins = int(spins[1]) if spins else 0
        self.loop = text.strip() if text.strip() in ("one", "four") else None


class Tree:
    """The lines of the program's files. `roots`: a pattern of the program's first function in a
    stack and of its caller, with a space between them. `unlined`: functions whose lines a compiler
    may leave out."""

    def __init__(self, roots, *files, unlined=()):
        self.roots, self.lines, self.unlined = roots, {}, unlined
        self.files = [path.rsplit("/", 1)[-1] for path in files]
        for path, name in zip(files, self.files):
            with open(path, encoding="utf-8") as f:
                for number, text in enumerate(f, 1):
                    code, _, comment = text.partition(" // ")
                    if code.strip() and comment:
                        line = Line(comment)
                        self.lines[name, line.native or number] = line

    def file(self, frame):
        """Which of the program's files it is of; None: none of them."""
        name = frame.file.rsplit("/", 1)[-1]
        return name if name in self.files else None

    def line(self, frame):
        return self.lines.get((self.file(frame), frame.line or frame.function))

    def is_called(self, frame, line):
        own = frame.function, f"{self.file(frame)}:{frame.function}"
        return any(name in line.calls for name in own)

    def judge(self, frames):
        """None: not in the program, or where it begins. Else what the line calls that spins, and
        which of the loops it spins in; (None, None): it does not; (None, "no line"): nobody knows;
        (None, "unlined"): nor can anybody.
        """
        own = [i for i, f in enumerate(frames) if self.file(f)]
        lines = [self.line(frames[i]) for i in own]
        if not own or any(line and line.starts for line in lines):
            return None
        if frames[own[0]].function.endswith(".<clinit>"):  # Java makes the class ready
            return None
        begin = " ".join(f.function for f in frames[max(0, own[0] - 1) : own[0] + 1])
        if not re.fullmatch(self.roots, begin):
            raise Wrong(f"begins with {begin}")
        for at, to in zip(own, own[1:]):
            self.judge_call(frames[at], frames[to], [f.function for f in frames[at + 1 : to]])
        if not lines[-1] and frames[own[-1]].line == 0:
            return None, "unlined" if frames[own[-1]].function in self.unlined else "no line"
        if not lines[-1]:
            raise Wrong(f"stands at {frames[own[-1]]}")
        spins = [line.calls[0] for line in lines if line.spins]
        return (spins[0], lines[-1].loop) if spins and lines[-1].loop else (None, None)

    def judge_call(self, caller, callee, between):
        line = self.line(caller)
        if not line or not self.is_called(callee, line):
            raise Wrong(f"{caller} calls {callee}")
        marks = [name for name in between if name[0] == "[" and " fn 0x" not in name]
        if marks not in ([], [line.by]) or line.by not in ("library", *(between or [""])):
            raise Wrong(f"{caller} calls {callee} by {between}")


class Calls(Judged):
    """What stacks come to, held against a tree."""

    def __init__(self, profile, tree):
        super().__init__(profile, tree.judge)
        self.loops, self.branches = collections.Counter(), collections.Counter()
        for kind, n in self.counts.items():
            if kind != "wrong" and kind[0]:
                self.branches[kind[0]] += n
                self.loops[kind[1]] += n
        spins = {line.calls[0]: line.spins for line in tree.lines.values() if line.spins}
        self.expected = {name: n / sum(spins.values()) for name, n in spins.items()}
        self.n = max(1, sum(self.loops.values()))

    def __str__(self):
        return (
            f"{self.samples} samples, {self.right:.2%} right, "
            f"{self.whole / max(1, self.samples):.2%} whole, line four of both "
            f"{self.loops['four'] / self.n:.3f}, shares within {self.off():.3f}; "
            f"{self.early} early, {self.beside} beside"
        )

    def off(self):
        """How far the share of a branch is from what it does."""
        return max(abs(self.branches[name] / self.n - part) for name, part in self.expected.items())

    def expect(self, what, **more):
        """A runtime may say that it does not know a line, but not often."""
        assert self.share((None, "no line")) <= 0.02, f"{what}: no line; {self}"
        assert self.share((None, "unlined")) <= 0.04, f"{what}: unlined; {self}"
        return super().expect(what, **more)

    def expect_shares(self, four=0.8):
        """Within 3 points and what chance adds. `four`: the share of the line of that name."""
        chance = 2 / self.n**0.5
        assert abs(self.loops["four"] / self.n - four) <= 0.03 + chance, str(self)
        assert self.off() <= 0.03 + chance, (str(self), self.branches, self.expected)


def inclusive(stacks):
    """{function: its part of the samples, itself or what it calls}, of (names, samples); and the
    sum of these."""
    ret, total = collections.Counter(), 0
    for names, n in stacks:
        total += n
        for name in set(names):
            ret[name] += n
    return {name: n / max(1, total) for name, n in ret.items()}, total


def expect_agreement(what, ours, theirs, count=10):
    """The hottest functions of theirs, of those that are not in all stacks, have the same share in
    ours: the difference is at most four times what chance makes of it, and two points, since what a
    program does comes in stretches, so its samples say less than as many by chance would."""
    (ours, m), (theirs, n) = inclusive(ours), inclusive(theirs)
    names = [name for name in sorted(theirs, key=lambda name: -theirs[name]) if theirs[name] < 0.99]
    worst = 0, ""
    for name in names[:count]:
        p = theirs[name]
        spread = (p * (1 - p) * (1 / n + 1 / m)) ** 0.5
        worst = max(worst, (abs(p - ours.get(name, 0)) / (4 * spread + 0.02), name))
    print(f"# {what}: {m} samples, {n} of its own; {worst[1]} differs most, by {worst[0]:.2f}")
    assert min(m, n) >= 100 and len(names) >= count, (m, n, names)
    assert worst[0] <= 1, [(name, theirs[name], ours.get(name, 0)) for name in names[:count]]
