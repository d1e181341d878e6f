#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Node.js with many threads, of a version that is not known, in regular expressions and in Wasm."""

import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, ".."), os.path.join(HERE, "../../scenario")]
import profiles  # noqa: E402
import runtimes  # noqa: E402
from tap import case, main  # noqa: E402

OWN = {"inside", "burn", "[runtime]", "[v8js]", "[anon]"}
CONSTANT = b"v8dbg_class_JSFunction__shared__SharedFunctionInfo"


def stacks_of(command, file, samples=1000, says=""):
    """Lists of functions with their samples, and what the status said."""
    shutil.copy(os.path.join(HERE, file), ".")  # a root of its own has the current folder alone
    profile = profiles.of_program(*command, file, samples=samples, says=says)
    found = [([f.function for f in frames], frames, n) for frames, n, _ in profile.stacks]
    return found, profile


def share(stacks, is_right, early):
    """The part of the samples that are right, without those from before the process was known."""
    right = sum(n for names, frames, n in stacks if is_right(names, frames))
    wrong = sum(n for names, frames, n in stacks if not is_right(names, frames))
    return right / max(1, right + wrong - min(wrong, early))


@case
def threads():
    """Code of sixteen worker threads, each with a V8 of its own, has its functions."""
    for node in runtimes.nodes():
        # Sixteen isolates take a while to begin. The code of one is claimed when mappings are read
        # again, at the latest when the interval of a second ends: three of them are sampled.
        stacks, profile = stacks_of(node.command, "workers.js", 6000, "all at work")
        # A thread's beginning is native, or JavaScript of Node.js.
        own = [one for one in stacks if OWN.intersection(one[0])]
        part = share(own, lambda names, _: "inside" in names, profile.early)
        right = sum(n for names, _, n in own if "inside" in names)
        print(f"# {node}: {part:.2%} of samples in the threads' function ({right})", flush=True)
        assert right >= 300, [names for names, _, _ in stacks][:5]
        assert part >= 0.4, [names for names, _, _ in own][:5]


@case
def not_known():
    """Without one of its constants a V8 has whole native frames and one that says what is not
    there."""
    for node in runtimes.nodes():
        path = node.command[0]
        if not os.path.isfile(path) or len(node.command) > 1:
            continue  # its V8 is in a library
        with open(path, "rb") as f:
            data = f.read()
        assert CONSTANT in data, node
        with open("node", "wb") as f:
            f.write(data.replace(CONSTANT, CONSTANT[:-1] + b"x"))
        os.chmod("node", 0o755)
        stacks, profile = stacks_of([os.path.abspath("node")], "known.js")
        assert "not known, no class_JSFunction__shared" in profile.runtime, profile.runtime
        mark = f"[{profile.runtime}]"
        part = share(
            stacks,
            lambda names, frames: names.count(mark) == 1 and profiles.is_whole(frames),
            profile.early,
        )
        print(f"# {node}: {part:.2%} of samples whole with one {mark}", flush=True)
        assert part >= 0.99, [names for names, _, _ in stacks][:5]


@case
def regular_expressions():
    """Code of a regular expression says that it is."""
    for node in runtimes.nodes():
        stacks, _ = stacks_of(node.command, "regular.js", 2000)
        own = [(names[-1], n) for names, _, n in stacks if "search" in names]
        said = sum(n for name, n in own if name == "[regular expression]")
        code = sum(n for name, n in own if name == "[code]")
        print(f"# {node}: {said} samples in regular expressions, {code} in other code", flush=True)
        # Until its code is read, which a busy machine delays, a few samples say less.
        assert said > 20 and code <= said / 4, own[:10]


@case
def wasm():
    """A function of Wasm has its name, that of its export, or its number."""
    for node in runtimes.nodes():
        stacks, _ = stacks_of(node.command, "wasm.js")
        own = [(names, n) for names, _, n in stacks if names[-1] in ("spin", "[wasm]")]
        right = sum(n for names, n in own if names[-3:] == ["enter", "wasm-function[2]", "spin"])
        part = right / max(1, sum(n for _, n in own))
        print(f"# {node}: {part:.2%} of samples in Wasm have all names ({right})", flush=True)
        # As above: those before it is read.
        assert right >= 300 and part >= 0.9, own[:5]


case(runtimes.expect_all)
main()
