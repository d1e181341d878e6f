# SPDX-License-Identifier: Apache-2.0
"""What is run on each kernel, and what must come of it.

A step is a shell command for the guest and a judge of its outcome. To add a
program whose stacks are tested, build it in meson.build and add it to HARD or RECORDINGS; to
add a test program that speaks TAP, a line to TESTS. Paths are relative to the build folder, and
hold in the guest, too.
"""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "scenario"))
from books import books_hold  # noqa: E402
from packages import Missing  # noqa: E402

PLUGINS = ["process", "relabel", "ebpf", "symbolize", "file", "status-http", "python", "jvm", "v8"]
ANDIRON = "host-abi/cli/andiron"
LOAD = "tests/kernels/load"
VERIFY = "tests/kernels/verify"
UNDER = "/suite"  # in the guest, what lies in a container
OBJECTS = ["bpf/sampler.bpf.o", "bpf/process.bpf.o"]
OF_RUNTIMES = ["python/python", "jvm/jvm", "v8/v8"]
INSTRUCTIONS_MAX = 200_000  # of all programs together
# The sampler loads the first group that the kernel takes, and with it what follows forks.
WALKERS = [["sample", "resume"], ["sample_calls", "resume_calls"], ["sample_alone"]]
FOLLOWERS = ["follow_fork", "follow_exit"]


# What the outermost frame says of a sample that was taken before the process, a mapping of it or
# the mapped file was known; and of one whose stack was copied for the time when they are, where not
# all of it lies in the copy: another stack, or a large frame.
UNSEEN = ("[new process]", "[not mapped]", "[not read yet")
UNCOPIED = (*UNSEEN, "[stack cut off]")


class Program:
    """A program that is recorded.

    `chains` are functions that call each other, caller first: a whole stack holds one of them from
    its first function on, as far as it had come, without a gap. `entries` are the functions of
    which one is outermost. `share` is the part of the samples whose stacks must be whole, `samples`
    how many there must be for that to mean something. Samples without any function of the chain are
    the program's end, or a walk that led nowhere; they may be `strange` of all. The dynamic
    linker's work before the program's is no part of that: emulated, it takes as long as the
    program.
    """

    def __init__(
        self, path, *arguments, chains, entries, share, strange=0.1, samples=100, early=UNSEEN
    ):
        self.path, self.arguments, self.chains, self.entries = (
            path,
            arguments,
            list(map(list, chains)),
            set(entries),
        )
        self.share, self.strange, self.samples, self.early = share, strange, samples, early
        self.name = os.path.basename(path)

    def is_own(self, frames):
        return not set().union(*self.chains).isdisjoint(frames)

    def is_whole(self, frames):
        """Whether the frames of a stack, outermost first, are all there."""
        return frames[0] in self.entries and any(
            self._holds(chain, frames) for chain in self.chains
        )

    def _holds(self, chain, frames):
        if chain[0] not in frames:
            return False
        rest = list(frames[frames.index(chain[0]) :])
        for function in chain:
            if not rest or rest[0] != function:
                break
            del rest[0]
        return not self.is_own(rest)

    def judge(self, stacks):
        """{frames: samples} → (samples of whole stacks, of own ones); fails where promises are not
        kept."""
        stacks = {s: n for s, n in stacks.items() if not s[1].startswith("[ld-linux")}
        own = {s: n for s, n in stacks.items() if self.is_own(s[1:])}
        broken = {s: n for s, n in own.items() if not self.is_whole(s[1:])}
        n_all, n_own = sum(stacks.values()), sum(own.values())
        n_whole = n_own - sum(broken.values())
        listed = "\n".join(
            f"{n} {';'.join(s)}" for s, n in sorted(stacks.items(), key=lambda at: -at[1])[:40]
        )
        assert n_own >= self.samples, f"only {n_own} samples\n{listed}"
        assert (
            n_own >= (1 - self.strange) * n_all
        ), f"{n_all - n_own} of {n_all} samples are not of the chain\n{listed}"
        assert n_whole >= self.share * n_own, f"{n_whole} of {n_own} stacks are whole\n{listed}"
        return n_whole, n_own


CHAIN = Program(
    "tests/kernels/chain",
    "3",
    entries=["_start"],
    share=0.99,
    chains=[["_start", *(f"chain_{i}" for i in range(9)), "chain_end"]],
)


# Where threads begin, by the names that C libraries have for it.
ENTRIES = ["_start", "__clone", "clone", "__clone3", "clone3", "thread_start"]
# Not deeper than the oldest kernel's walk goes, nor than an emulated one walks in a sample's time.
DEPTH = 200


def hard(name, *chains, more=(), early=UNSEEN):
    """One of tests/unwind/programs, which takes the seconds that it works; emulated, the dynamic
    linker works for long, too."""
    return Program(
        f"tests/kernels/{name}",
        "1.5",
        *more,
        chains=chains,
        entries=ENTRIES,
        share=0.97,
        strange=0.25,
        samples=40,
        early=early,
    )


class Recording:
    """A program, or several one after the other, under one `andiron record`; `arch` is the only one
    that has them.

    Samples that say that they were taken before the process or a mapping of it was known are left
    aside (a program's `early`); they may be `early` of all.
    """

    def __init__(self, name, rate, programs, early=0, arch=None):
        self.name, self.rate, self.programs, self.early, self.arch = (
            name,
            rate,
            programs,
            early,
            arch,
        )

    def settled(self, stacks):
        """{program: its stacks without early ones}"""
        theirs = {p: {s: n for s, n in stacks.items() if s[0] == p.name} for p in self.programs}
        if not self.early:
            return theirs
        late = {
            p: {s: n for s, n in of.items() if not s[1].startswith(p.early)}
            for p, of in theirs.items()
        }
        n_all, n_late = (sum(sum(of.values()) for of in them.values()) for them in (theirs, late))
        assert (
            n_late >= (1 - self.early) * n_all
        ), f"{n_all - n_late} of {n_all} samples were taken before something was seen"
        return late

    def command(self):
        runs = [" ".join([f"{{build}}/{p.path}", *p.arguments]) for p in self.programs]
        if len(runs) == 1:
            return runs[0]
        # A program's file is read before: emulated, that takes seconds. It is done when, of the
        # recorder, the shell's parent, the thread that reads is at rest while the program works by
        # another name, and all of it is not at work all the time. Twice each, since a program may
        # live within the end of an interval.
        rested = [
            f"ln -s {{build}}/{p.path} _{p.name} && rest ./_{p.name} && {run} && {run}"
            for p, run in zip(self.programs, runs)
        ]
        return "sh -c '" + AT_REST + " && ".join(rested) + "'"


AT_REST = """of_reader() {{ grep -h "(unwind-reader)" /proc/$PPID/task/*/stat; }}
	used() {{ cut -d" " -f14,15 | tr " " +; }}
	uptime() {{ cut -d" " -f1 /proc/uptime | tr -d .; }}
	rest() {{
		until of_reader >/dev/null; do $1 .3; done
		quiet=0 tries=0
		while [ $quiet -lt 2 ] && [ $tries -lt 50 ]; do turn $1; done
	}}
	turn() {{
		reader=$(($(of_reader | used))) all=$(($(used </proc/$PPID/stat))) from=$(uptime)
		$1 .3
		reader=$(($(of_reader | used) - reader)) all=$(($(used </proc/$PPID/stat) - all))
		quiet=$((reader <= 2 && 4 * all < 3 * ($(uptime) - from) ? quiet + 1 : 0))
		tries=$((tries + 1))
		echo "reader $reader, all $all of $(($(uptime) - from))" >&2
	}}
	"""
HARD = [
    hard("recurse", ["main", *["deeper"] * (DEPTH + 1), "burn"], more=[str(DEPTH)]),
    hard("realign", ["main", *["aligned", "many", "growing"] * 5, "burn"]),
    hard("plt", ["main", "calls"]),
    hard(
        "threads",
        ["main"],
        ["long_thread", *["work"] * 9, "burn"],
        ["short_thread", *["work"] * 5, "burn"],
    ),
    hard("altstack", ["main", *["work"] * 7], early=UNCOPIED),
]
RECORDINGS = [
    Recording("chain", 97, [CHAIN]),
    Recording("hard", 199, HARD, early=0.3, arch="arm64"),
    Recording(
        "hard",
        199,
        [
            *HARD,
            # arm64's return address lies too far away for a row.
            hard("big-frame", ["main", "big", "under", "burn"], early=UNCOPIED),
            hard("cfi", ["main"]),
            hard("sorts", ["main", "cfa_r12", "over_rbx", "cfa_rbx", "sort"]),
        ],
        early=0.3,
        arch="x86_64",
    ),
]

# Tests of the suite `bpf`: (program, what it runs, tests that do not count). What counts shares of
# time needs a processor whose instructions take the time that they take; an emulator's do not.
TESTS = [
    ("plugins/process/test-process-events", [], []),
    ("tests/bpf/test-sampling", ["tests/bpf/workload"], ["shares_of_known_cost_come_back"]),
    ("tests/bpf/test-off-cpu-bpf", ["tests/bpf/workload"], []),
    ("lib/proc/test-proc-syscall-filter", [], []),
    ("lib/proc/test-proc-client-files", [], []),
    (
        "plugins/self/test-self-session",
        [],
        ["samples_are_cpu_time_of_all_threads", "another_rate_loses_nothing"],
    ),
]

STEPS = []


class Step:
    def __init__(self, name, command, judge, programs, arch):
        self.name, self.command, self.judge, self.programs, self.arch = (
            name,
            command,
            judge,
            programs,
            arch,
        )


def steps(arch):
    """Those that are run on the architecture."""
    return [one for one in STEPS if one.arch in (None, arch)]


def step(name, command, *programs, arch=None):
    """Declares a step. The judge gets its outcome and the facts of this kernel, which it adds
    to."""

    def declare(judge):
        STEPS.append(Step(name, command, judge, programs, arch))
        return judge

    return declare


@step("btf", "cat /proc/version; wc -c </sys/kernel/btf/vmlinux")
def btf(outcome, facts):
    """The kernel describes its types."""
    assert outcome.code == 0 and int(outcome.text.split()[-1]) > 100000, outcome.text


@step("doctor", f"{{build}}/{ANDIRON} doctor --json", ANDIRON)
def doctor(outcome, facts):
    """`andiron doctor` finds all well, and names the walker."""
    found = json.loads(outcome.text)
    points = {p["name"]: p for p in found["points"]}
    facts["walker"] = points["walker"]["text"] if "walker" in points else "frame pointers"
    assert outcome.code == 0 and found["can_sample"], outcome.text
    assert points["btf"]["state"] == points["bpf"]["state"] == "ok", outcome.text


@step("load", f"{{build}}/{LOAD}", LOAD)
def load(outcome, facts):
    """All programs pass this kernel's verifier and are attached."""
    facts["loaded"] = outcome.code == 0
    assert outcome.code == 0, outcome.text
    told = json.loads(outcome.text.splitlines()[-1])
    facts["load_seconds"], facts["verified"], facts["map_bytes"] = (
        told["seconds"],
        told["verified"],
        told["map_bytes"],
    )
    assert told["cpus"] == facts["cpus"], told


@step("verify", f"cd {{build}} && {VERIFY} {' '.join(OBJECTS)}", VERIFY, *OBJECTS)
def verify(outcome, facts):
    """The verifier's verdict on each program is known."""
    found = re.findall(r"^(\w+) (verified|refused) (\d+)", outcome.text, re.M)
    assert outcome.code == 0 and found, outcome.text
    facts["programs"] = {name: f"{n} {word}" for name, word, n in found}
    facts["refused"] = [name for name, word, _ in found if word == "refused"]
    if not facts.get("loaded"):
        raise AssertionError("what the verifier says:\n" + outcome.text)
    counts = {name: int(n) for name, word, n in found if word == "verified"}
    walker = next(group for group in WALKERS if set(group) <= set(counts))
    if not facts["verified"]:  # this kernel does not tell it of loaded programs
        facts["verified"] = sum(counts[name] for name in walker + FOLLOWERS)


@step(
    "verify-runtimes",
    "cd {build} && for name in "
    + " ".join(OF_RUNTIMES)
    + f"; do echo of $name; {VERIFY} plugins/$name.bpf.o || exit; done",
    VERIFY,
    *(f"plugins/{name}.bpf.o" for name in OF_RUNTIMES),
)
def verify_runtimes(outcome, facts):
    """The verifier takes each runtime's program, all with the sampler's in 200,000 instructions."""
    assert outcome.code == 0, outcome.text
    found = dict(re.findall(r"^of \w+/(\S+)\n\w+ (verified \d+|refused)", outcome.text, re.M))
    counts = {name: int(said.split()[1]) for name, said in found.items() if said != "refused"}
    facts["runtimes"] = counts
    facts["verified_all"] = facts["verified"] + sum(counts.values())
    assert facts["verified_all"] <= INSTRUCTIONS_MAX, counts
    if not has_calls(facts):
        return
    missing = set(found) - set(counts)
    assert not missing, f"{missing} refused, the verifier says:\n{outcome.text}"


def has_calls(facts):
    """Whether a program with functions can call another program: arm64 learned it in Linux 6.0."""
    return (facts["kernel"], facts["arch"]) != ("5.10", "arm64")


def folded(text):
    """{frames: samples}, the process first."""
    stacks = {}
    for line in text.splitlines():
        frames, _, n = line.rpartition(" ")
        frames = tuple(frames.split(";"))
        stacks[frames] = stacks.get(frames, 0) + int(n)
    return stacks


def declare_recording(recording):
    command = (
        f"{{build}}/{ANDIRON} record -F {recording.rate} -o /keep/stacks.folded --ledger "
        f"/keep/ledger -- " + recording.command()
    )

    @step(
        "stacks-" + recording.name,
        command,
        ANDIRON,
        *(p.path for p in recording.programs),
        arch=recording.arch,
    )
    def judge(outcome, facts):
        assert outcome.code == 0, outcome.text
        taken = books_hold(json.loads(outcome.files["ledger"]))
        facts["closed"] = facts.get("closed", 0) + 1
        stacks = folded(outcome.files["stacks.folded"].decode())
        cost = re.search(r"(\d+) ns of BPF per sample", outcome.text)
        if cost:  # said only where idle ticks are few
            facts.setdefault("bpf_ns", int(cost.group(1)))
        assert taken == sum(
            stacks.values()
        ), f"{taken} samples were taken, {sum(stacks.values())} written"
        wrong = []
        for program, own in recording.settled(stacks).items():
            try:
                facts.setdefault("whole", {})[program.name] = "%d/%d" % program.judge(own)
            except AssertionError as why:
                wrong.append(f"{program.name}: {why}")
        assert not wrong, "\n".join(wrong)

    names = ", ".join(p.name for p in recording.programs)
    judge.__doc__ = f"Stacks of {names} are whole, and the ledger closes."


class Script:
    """A program of a runtime, whose functions call each other. The runtime starts for as long as it
    likes; samples of the chain are judged."""

    CHAIN = ["main", "outer", "middle", "inner"]

    def __init__(self, runtime, command, chain=tuple(CHAIN), process=None):
        self.runtime, self.command, self.chain = runtime, command, list(chain)
        self.process = process or runtime

    def judge(self, stacks):
        """(samples of whole chains, of all chains)"""
        n_own = n_whole = 0
        for frames, n in stacks.items():
            own = [f for f in frames[1:] if f in self.chain]
            if frames[0] == self.process and own:
                n_own += n
                n_whole += n if own == self.chain[: len(own)] else 0
        listed = "\n".join(
            f"{n} {';'.join(s)}" for s, n in sorted(stacks.items(), key=lambda at: -at[1])[:20]
        )
        assert n_own >= 30, f"only {n_own} samples have a function of the program\n{listed}"
        assert n_whole >= 0.97 * n_own, f"{n_whole} of {n_own} are whole\n{listed}"
        return n_whole, n_own


SCRIPTS = [
    Script("python", "/usr/bin/python3 -S /chain.py 4", process="python3"),
    Script("v8", "/usr/bin/node /chain.js 4", process="node"),
    Script(
        "jvm",
        "/java/bin/java -Xmx64m -cp /java Chain 6",
        ["Chain." + name for name in Script.CHAIN],
        "java",
    ),
]
lacking = {}  # architecture → why there are no runtimes for it
MOUNTED = f"""cd {UNDER}
[ -d proc/self ] || {{{{ mount -t proc proc proc && mount -o bind /dev dev; }}}} || exit 1
"""


def declare_script(script):
    command = (
        f"{MOUNTED}{{build}}/{ANDIRON} record -F 199 -o /keep/stacks.folded "
        f"-- chroot {UNDER} {script.command}"
    )

    @step("runtime-" + script.runtime, command, ANDIRON)
    def judge(outcome, facts):
        if facts["arch"] in lacking:
            raise Missing(lacking[facts["arch"]])
        unused = re.search(f'the runtime "{script.runtime}" is not used.*', outcome.text)
        if not has_calls(facts):
            assert unused, outcome.text
            raise Missing(unused.group())
        assert outcome.code == 0 and not unused, outcome.text
        stacks = folded(outcome.files["stacks.folded"].decode())
        if (script.runtime, facts["arch"]) == ("jvm", "arm64"):
            marks = {f for s in stacks for f in s if f.startswith("[HotSpot")}
            assert len(marks) == 1, marks
            raise Missing(marks.pop())
        facts.setdefault("whole", {})[script.process] = "%d/%d" % script.judge(stacks)

    judge.__doc__ = f"Functions of a program of {script.runtime} come back by name and in order."


def declare_test(path, programs, apart):
    @step(os.path.basename(path), f"{{build}}/{path}", path, *programs)
    def judge(outcome, facts):
        points = re.findall(r"^(ok|not ok) \d+ (\w+)(.*)", outcome.text, re.M)
        planned = re.search(r"^1\.\.(\d+)$", outcome.text, re.M)
        failed = [name for verdict, name, _ in points if verdict == "not ok" and name not in apart]
        passed = [name for verdict, name, rest in points if verdict == "ok" and "SKIP" not in rest]
        facts.setdefault("tests", {})[os.path.basename(path)] = passed
        assert planned and int(planned.group(1)) == len(points), "it did not end:\n" + outcome.text
        assert passed and not failed, f"{' '.join(failed)}:\n{outcome.text}"

    judge.__doc__ = f"{os.path.basename(path)} passes."


for one in RECORDINGS:
    declare_recording(one)
for one in SCRIPTS:
    declare_script(one)
for one in TESTS:
    declare_test(*one)


# Comes last: an old kernel may never give up a hierarchy of version 1 that it once had, mounted or
# not. On a machine of its own nothing else was mounted before.
V1 = "tests/kernels/containers-v1.sh"


@step(
    "containers-v1",
    f"sh {{build}}/{V1} {{build}}",
    V1,
    ANDIRON,
    "tests/kernels/chain",
    "tests/bpf/test-sampling",
    "tests/bpf/workload",
)
def containers_v1(outcome, facts):
    """Where all cgroups are of version 1, containers are found, and what runs in them."""
    text = outcome.text
    assert outcome.code == 0 and "agent ended 0" in text, text
    assert re.search(r"^[1-9]\d*:(memory|pids):", text, re.M) and " cgroup2 " not in text, text
    assert re.search('^ +__container_id__ = "0123456789abcdef', text, re.M), text
    n_all, inside = (re.search(f"^samples{of}: (\\d+)$", text, re.M) for of in ("", " of inside"))
    assert n_all and inside and n_all[1] == inside[1] and int(inside[1]) >= 50, text
    assert "containers are not recognised" not in text, text
    assert re.search(r"^# a \d+, b \d+, unselected \d+$", text, re.M), text
