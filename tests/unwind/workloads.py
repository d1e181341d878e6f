#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole stacks: the programs of this machine and of programs/ under `andiron record`, judged by addresses.

A stack is whole when its outermost frame lies in a function where threads begin (entries.py) and no marker
frame follows. All programs run at once, each for so many CPU seconds, in one recording; beside it
perf walks the same programs by frame pointers and, where there is time, by DWARF over copied stacks.

UNWIND_DEPTH: fast (default), full or all (at least 10,000 stacks a program).
UNWIND_WALKER: tables, or frame-pointers, under which the walker is shown to be judged as it must be.
"""
import collections
import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

import entries
from stacks import Profile, perf_stacks
from tap import ANDIRON, DEADLINE, environment, until

PROGRAMS = os.environ["PROGRAMS"]
ROOT = os.environ["SOURCE_ROOT"]
DEPTH = os.environ.get("UNWIND_DEPTH", "fast")
WALKER = os.environ.get("UNWIND_WALKER", "tables")
SECONDS = {"fast": 0.3, "full": 3, "all": 12}[DEPTH]
ENOUGH = {"fast": 100, "full": 1000, "all": 10000}[DEPTH]
RATE, DWARF_RATE = 999, {"full": 49, "all": 19}.get(DEPTH)
ALL_BAR, PROGRAM_BAR = 99.9, 99.0

PYTHON = """
import json, re, sys, time
def deep(n): return work() if n == 0 else deep(n - 1) + 1
def work():
    d = {str(i): [i, str(i) * 3] for i in range(300)}
    return len(json.dumps(json.loads(json.dumps(d)))) + len(re.findall(r"(\\d+)x?", "12x345" * 99)) + sorted(range(999), key=lambda x: -x)[0]
while time.process_time() < float(sys.argv[1]): deep(20)
"""
PERL = """
sub deep { my $n = shift; return $n ? deep($n - 1) + 1 : work() }
sub work { my %h; $h{$_ % 97} .= join ',', map { $_ * 2 } 1..30 for 1..99; my $t = join '', sort values %h; $t =~ s/(\\d+),/<$1>/g; length $t }
deep(20) while (times)[0] < $ARGV[0];
"""
NODE = """
const deep = n => n ? deep(n - 1) + 1 : work();
const work = () => { const a = []; for (let i = 0; i < 3000; i++) a.push({k: 'n' + i % 97, v: i}); a.sort((x, y) => x.k < y.k ? -1 : 1);
  return JSON.stringify(JSON.parse(JSON.stringify(a))).replace(/n(\\d+)/g, '<$1>').length };
while (process.cpuUsage().user < +process.argv[1] * 1e6) deep(20);
"""
SQL = ("with recursive n(i) as (select 1 union all select i + 1 from n where i < 30000) select sum(length(g)) from "
       "(select group_concat(hex(i * 7919 % 1009)) g, i % 97 k from n group by k order by upper(g) desc);")


def system_programs():
    """process name: command; %s is the CPU seconds, those without are run until they have used them."""
    yield "openssl", ["openssl", "speed", "-seconds", "1", "-bytes", "8192"] + \
        (["sha256", "aes-256-cbc"] if DEPTH == "fast" else ["sha256", "sha1", "aes-256-cbc", "rsa2048", "ecdsap256", "ed25519"])
    yield "python3", ["python3", "-c", PYTHON, "%s"]
    yield "perl", ["perl", "-e", PERL, "%s"]
    yield "node", ["node", "-e", NODE, "%s"]
    yield "git", ["git", "-C", "/usr/include", "grep", "--no-index", "-cE", "(st[a-z]+uct|un[io]+n) [a-z_]+ *[{]"]
    yield "cc1", ["gcc", "-O2", "-S", "-o", "/dev/null", "-D_GNU_SOURCE", f"-I{ROOT}/lib", f"{ROOT}/lib/pprof/encode.c"]
    yield "sqlite3", ["sqlite3", ":memory:", SQL]
    if DEPTH != "fast":
        yield "cc1plus", ["g++", "-O2", "-S", "-o", "/dev/null", f"{ROOT}/tests/unwind/programs/throws.cc"]
        yield "rustc", ["rustc", "-O", "--emit", "obj", "-o", "/dev/null", f"{ROOT}/tests/unwind/programs/work.rs"]
        yield "compile", ["go", "build", "-a", "-p", "1", "-o", "/dev/null", f"{ROOT}/tests/unwind/programs/work.go"]


def commands():
    """{process name: command that uses SECONDS}"""
    found = {}
    for name, command in system_programs():
        if shutil.which(command[0]):
            found[name] = ([w.replace("%s", str(SECONDS)) if w == "%s" else w for w in command] if "%s" in command
                           else [f"{PROGRAMS}/repeat", str(SECONDS)] + command)
    for name in sorted(os.listdir(PROGRAMS)):
        path = f"{PROGRAMS}/{name}"
        if os.path.isfile(path) and os.access(path, os.X_OK) and "." not in name and name != "repeat":
            found[name[:15]] = [path, str(SECONDS)]
    found["plt-opened"] = ["sh", "-c", 'ln -sf "$0" plt-opened; ln -sf "$1" libplt.so; exec ./plt-opened "$2" "$1"',
                           f"{PROGRAMS}/plt", f"{PROGRAMS}/libplt.so", str(SECONDS)]
    return found


@contextlib.contextmanager
def perf(name, rate, *how):
    """perf over the whole machine while the block runs; it has begun when the block does."""
    os.mkfifo(f"{name}.ctl")
    os.mkfifo(f"{name}.ack")
    control = os.open(f"{name}.ctl", os.O_RDWR)
    answer = os.open(f"{name}.ack", os.O_RDWR | os.O_NONBLOCK)
    with open(f"{name}.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(["perf", "record", "-a", "-e", "cpu-clock", "-F", str(rate), "-D", "-1", "-o", f"{name}.data",
                                    "--control", f"fifo:{name}.ctl,{name}.ack", *how], stdout=log, stderr=log)

    def acknowledged():
        with contextlib.suppress(BlockingIOError):
            return b"ack" in os.read(answer, 64)

    try:
        os.write(control, b"enable\n")
        until(acknowledged, "perf's start")
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(DEADLINE)
        os.close(control)
        os.close(answer)


def record(programs):
    """Runs all of them at once under the recorder; its own stacks by process name."""
    with open("all.sh", "w", encoding="utf-8") as script:
        for i, command in enumerate(programs.values()):
            script.write(f"{shlex.join(command)} >/dev/null 2>&1 </dev/null || echo {i} >>failed &\n")
        script.write("wait\n")
    done = subprocess.run([ANDIRON, "record", "-F", str(RATE), "-o", "all.pb.gz", "--ledger", "ledger.json", "--", "sh", "all.sh"],
                          capture_output=True, text=True, env=environment(), timeout=1500)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    failed = []
    if os.path.exists("failed"):
        with open("failed", encoding="utf-8") as listed:
            failed = [list(programs)[int(i)] for i in listed.read().split()]
    return Profile("all.pb.gz"), failed


class Tally:
    """What is counted of one program by one walker."""

    def __init__(self):
        self.n = self.whole = self.lies = 0
        self.depths, self.why = collections.Counter(), collections.Counter()

    def add(self, stack):
        self.n += stack.weight
        self.depths[len(stack.frames)] += stack.weight
        if entries.whole(stack):
            self.whole += stack.weight
        elif stack.marker:
            self.why[stack.marker] += stack.weight
        else:
            self.lies += stack.weight
            file, address = stack.frames[-1]
            self.why[f"looks whole at {os.path.basename(file) or '?'}+{address:#x}"] += stack.weight

    def percent(self):
        return 100 * self.whole / self.n if self.n else 0.0

    def depth(self, part):
        seen = 0
        for depth in sorted(self.depths):
            seen += self.depths[depth]
            if seen >= part * self.n:
                return depth
        return 0


def tally(stacks, names):
    tallies = collections.defaultdict(Tally)
    for stack in stacks:
        if stack.comm in names:
            tallies[stack.comm].add(stack)
    return tallies


def print_table(names, ours, beside):
    print(f"# {'program':16}{'stacks':>8}{'whole %':>9}{'p50':>5}{'p90':>5}{'max':>6}" +
          "".join(f"{name + ' n, %':>18}" for name in beside) + "  commonest other ends")
    for name in names:
        t = ours[name]
        print(f"# {name:16}{t.n:8}{t.percent():9.2f}{t.depth(.5):5}{t.depth(.9):5}{t.depth(1):6}" +
              "".join(f"{b[name].n:9}{b[name].percent():9.1f}" for b in beside.values()) +
              "  " + ", ".join(f"{n} {why}" for why, n in t.why.most_common(3)))
        print("# " + json.dumps({"program": name, "stacks": t.n, "whole_percent": round(t.percent(), 3), "lies": t.lies,
                                 **{f"{b}_percent": round(beside[b][name].percent(), 1) for b in beside}}))


def verdicts(names, ours, failed):
    """(passed, title, why) for each program and for all."""
    total, whole = sum(ours[n].n for n in names), sum(ours[n].whole for n in names)
    for name in names:
        t = ours[name]
        enough = t.n >= ENOUGH and name not in failed
        if WALKER == "frame-pointers":
            yield enough, f"{name} is sampled", f"{t.n} stacks, {'failed' if name in failed else 'ended well'}"
        else:
            yield enough and t.percent() >= PROGRAM_BAR, f"{name}: whole stacks", f"{t.percent():.2f} % of {t.n}"
    overall = 100 * whole / max(total, 1)
    if WALKER == "frame-pointers":
        blind = [n for n in ("openssl", "python3", "sqlite3") if n in names]
        yield all(ours[n].percent() < 5 for n in blind), "without frame pointers, walks by them are told to be short", \
            str({n: ours[n].percent() for n in blind})
        yield "go-work" not in names or ours["go-work"].percent() > 95, "with frame pointers they are told to be whole", \
            f"{ours['go-work'].percent():.1f} %"
    else:
        yield overall >= ALL_BAR, "all programs: whole stacks", f"{overall:.3f} % of {total}"
        lies = sum(ours[n].lies for n in names)
        yield lies <= total / 1000, "a short stack never looks whole", f"{lies} of {total} do"


def main():
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root: run it by `sudo ./check`")
        return 0
    programs = commands()
    with tempfile.TemporaryDirectory(prefix="unwind-") as folder, contextlib.ExitStack() as stack:
        os.chdir(folder)
        stack.callback(os.chdir, "/")
        beside = {}
        with contextlib.ExitStack() as perfs:
            if shutil.which("perf"):
                beside["fp"] = perfs.enter_context(perf("fp", 97, "--call-graph", "fp"))
                if DWARF_RATE:
                    beside["dwarf"] = perfs.enter_context(perf("dwarf", DWARF_RATE, "--call-graph", "dwarf,16384"))
            profile, failed = record(programs)
        ours = tally(profile.stacks(), programs)
        beside = {name: tally(perf_stacks(f"{name}.data"), programs) for name in beside}
        with open("ledger.json", encoding="utf-8") as ledger:
            print("# ledger", json.dumps(json.load(ledger)))
        print_table(programs, ours, beside)
    found = list(verdicts(list(programs), ours, failed))
    print(f"1..{len(found)}")
    for number, (passed, title, why) in enumerate(found, 1):
        print(f"{'ok' if passed else 'not ok'} {number} - {title}")
        if not passed:
            print(f"# {why}")
    return not all(passed for passed, _, _ in found)


sys.exit(main())
