#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""runtime_cost.py ANDIRON NATIVE [PART…]: what language runtimes cost, for docs/figures.md.

The loads are programs of managed/ under this machine's CPython, Node.js and JVM. NATIVE is a
program that works as deep in native calls as they are in both. Memory and the price of attaching
are differences of two agents that sample the same processes, one of them without runtimes.
"""

import contextlib
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time

import rods
from agents import EBPF, FILE, PUSH, agent, server
from figures import figure, finish

ANDIRON, NATIVE, *PARTS = sys.argv[1:]
MANAGED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "managed")
CPUS = os.cpu_count() or 1
DEPTH = 35  # 20 managed and 15 native frames
WARM, WINDOW, ROUNDS = (10, 20, 3) if rods.LONG else (1, 3, 1)
BESIDE = [rods.LOADS[name] for name in ("openssl", "gzip", "perl", "gcc")]
# With priority, also where the kernel schedules sessions rather than processes.
FIRST = ["nice", "-n", "-15", "sh", "-c", 'echo -15 >/proc/self/autogroup; exec "$0" "$@"']
NONE = "python_enabled = false\n  hotspot_enabled = false\n  v8_enabled = false"
WORK, REST = "0", "0.02"
CONTAINER = "5e" * 32


def real(name):
    return os.path.realpath(shutil.which(name))


def jvm():
    """The folder of the machine's JVM."""
    return os.path.dirname(os.path.dirname(real("java")))


def commands(folder):
    """{runtime: command without its last argument}, of those that the machine has."""
    found = {"Python": ["/usr/bin/python3", f"{MANAGED}/deep.py"]}
    if shutil.which("node"):
        found["V8"] = ["node", f"{MANAGED}/deep.js"]
    if shutil.which("java") and shutil.which("javac"):
        compiler = ["javac", "--release", "8", "-nowarn", "-d", folder, f"{MANAGED}/Deep.java"]
        subprocess.run(compiler, check=True, stderr=subprocess.DEVNULL)
        found["HotSpot"] = ["java", "-Xmx32m", "-XX:+UseSerialGC", "-cp", folder, "Deep"]
    for name in {"V8", "HotSpot"} - set(found):
        print(f"# this machine has no {name}")
    return found


def to_file(folder, more="", comm="none"):
    text = EBPF.format(to="profile.file.out.receiver", interval="2s", comm=comm, more=more)
    return text + FILE.format(path=f"{folder}/out.folded")


def spent(processes):
    return sum(rods.cpu_seconds(p.pid) for p in processes)


def sample_ns(pid, command):
    """(ns of BPF per sample, share of the samples that are of the command) beside other programs,
    which leave cold caches; they have less priority, so that most samples are the command's."""
    own_command = [*FIRST, *command] if command else None
    with rods.load(BESIDE), rods.load([own_command] * 2 * CPUS if command else []) as own:
        rods.window(WARM)
        before, began, busy = rods.bpf_objects(pid)[0], spent(own), rods.busy_seconds()
        rods.window(WINDOW)
        ns, _ = rods.sampling_ns(before, rods.bpf_objects(pid)[0])
        return ns, (spent(own) - began) / (rods.busy_seconds() - busy)


def walks(loads):
    """The others are measured alone, too, and taken off."""
    subjects = {None: None, "native": [NATIVE, "100000", str(DEPTH)]}
    subjects.update((name, [*command, WORK]) for name, command in loads.items())
    rows = {name: [] for name in subjects}
    with tempfile.TemporaryDirectory() as folder, rods.bpf_stats():
        with agent(ANDIRON, folder, to_file(folder)) as process:
            rods.window(WARM)
            for _ in range(ROUNDS):
                for name, command in subjects.items():
                    rows[name].append(sample_ns(process.pid, command))
    mean = {name: [sum(of) / len(of) for of in zip(*row)] for name, row in rows.items()}
    others, _ = mean.pop(None)
    ns = {name: (all_ns - (1 - share) * others) / share for name, (all_ns, share) in mean.items()}
    figure("97 Hz, other programs' stacks: BPF time per sample", others, "ns")
    figure(f"97 Hz, native stacks of {DEPTH} frames: BPF time per sample", ns["native"], "ns")
    for name in loads:
        figure(f"97 Hz, some 20 frames of {name}, 15 native: BPF time per sample", ns[name], "ns")
        figure("97 Hz: the same ÷ the native stacks'", ns[name] / ns["native"], "×", 1.8)


def cpu_ms(pid):
    """By the process's CPU clock, which counts nanoseconds."""
    return time.clock_gettime(~pid << 3 | 2) * 1e3


def all_ms(pid):
    """With the agent's own processes: its sender, its parser, and those that have ended."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        ended = sum(map(int, file.read().rsplit(")", 1)[1].split()[13:15]))
    return cpu_ms(pid) + sum(map(cpu_ms, rods.children(pid))) + ended * 1e3 / rods.TICK


class Pair:
    """An agent with runtimes and one without."""

    def __init__(self, stack, config=to_file):
        self.pids = []
        self.folders = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(2)]
        for folder, more in zip(self.folders, ("", NONE)):
            self.pids.append(stack.enter_context(agent(ANDIRON, folder, config(folder, more))).pid)

    def more(self, measure):
        with_them, without = map(measure, self.pids)
        return with_them - without

    def samples(self):
        """Those taken since its start, up to the end of the last interval."""
        for line in rods.ask(f"{self.folders[0]}/status", "/metrics").splitlines():
            if line.startswith("andiron_ebpf_samples_taken_total"):
                return float(line.split()[-1])
        return 0

    def cpu_percent(self, seconds):
        """(with runtimes, without), of a core, with all that they have started."""
        began, before = time.monotonic(), list(map(all_ms, self.pids))
        rods.window(seconds)
        took = time.monotonic() - began
        return [(all_ms(pid) - ms) / took / 10 for pid, ms in zip(self.pids, before)]


def eight(loads, config, into, name):
    """Agent CPU over eight programs, four of them managed, with what is pushed each 15 seconds. The
    beginning has the first look at each file and process; what comes then is the steady state."""
    managed = [[*command, WORK] for command in loads.values()]
    with contextlib.ExitStack() as stack:
        push = PUSH.format(url=stack.enter_context(server()))
        to = {"to": "pyroscope.write.server.receiver", "interval": "15s", "comm": "none"}
        programs = [into + command for command in BESIDE + managed + [rods.LOADS["python3"]]]
        stack.enter_context(rods.load(programs))
        pair = Pair(stack, lambda _, more: config.format(**to, more=more) + push)
        first, later = (60, 180) if rods.LONG else (15, 15)
        full = 97 * CPUS * (first + later)
        for when, seconds in (("from its start", first), ("then", later)):
            used, without = pair.cpu_percent(seconds)
            title = f"97 Hz, {name}, pushing, {seconds} s {when}: agent CPU"
            figure(title, used, "% of a core", None if when != "then" else 0.8)
            figure("the same without runtimes", without, "% of a core")
        figure("samples taken since its start", pair.samples(), f"of {full:.0f} at full speed")


def mixed(loads):
    """What else the machine does is sampled, too."""
    eight(loads, EBPF, [], "eight programs, four managed")


def hierarchies():
    """Where cgroups can be made, but for those that share out CPUs: in a group of its own the load
    would get as much as one other program."""
    root = "/sys/fs/cgroup"
    many = [root] if os.path.exists(f"{root}/cgroup.procs") else glob.glob(f"{root}/*")
    kept = [one for one in many if os.access(f"{one}/cgroup.procs", os.W_OK)]
    sharing = {"cpu", "cpuacct", "cpuset"}
    return [one for one in kept if not sharing & set(os.path.basename(one).split(","))]


@contextlib.contextmanager
def container():
    """What begins a command so that it runs in a container of that id."""
    made = [f"{one}/{CONTAINER}" for one in hierarchies()]
    for group in made:
        os.makedirs(group, exist_ok=True)
    enter = "".join(f"echo $$ >{group}/cgroup.procs; " for group in made)
    try:
        yield ["sh", "-c", enter + 'exec "$0" "$@"']
    finally:
        for group in made:
            rods.until(lambda one=group: removed(one))


def removed(group):
    """Once its last process has gone."""
    with contextlib.suppress(OSError):
        os.rmdir(group)
    return not os.path.exists(group)


def alone(loads):
    """They are a container, and the only target."""
    target = f'targets_only = true\n  targets = [{{{{"__container_id__" = "{CONTAINER}"}}}}]'
    with container() as into:
        config = EBPF.replace("targets_only     = false", target)
        eight(loads, config, into, "eight programs, four managed, the only target")


def memory(loads):
    """Ten of each runtime."""
    with contextlib.ExitStack() as stack:
        pair = Pair(stack)
        rods.window(3)
        figure("runtimes, of which Python alone runs: BPF maps more", pair.more(rods.held_mb), "MB")
        many = [[*command, REST] for command in loads.values() for _ in range(10)]
        stack.enter_context(rods.load(many))
        rods.window(60 if rods.LONG else 8)
        maps, pss = pair.more(rods.held_mb), pair.more(rods.own_mb)
        figure("ten of each runtime: BPF maps more", maps, "MB")
        figure("ten of each runtime: PSS and maps more", pss + maps, "MB", 16)


def copied(name, command, folder):
    """The command with a runtime that is another file."""
    os.makedirs(folder)
    if name == "HotSpot":
        subprocess.run(["cp", "-rs", f"{jvm()}/.", folder], check=True)
        for file in ("bin/java", "lib/libjli.so", "lib/server/libjvm.so"):
            os.remove(f"{folder}/{file}")
            shutil.copy(os.path.realpath(f"{jvm()}/{file}"), f"{folder}/{file}")
        return [f"{folder}/bin/java", *command[1:]]
    shutil.copy(real(command[0]), f"{folder}/program")
    told = subprocess.run(["ldd", real(command[0])], capture_output=True, text=True).stdout
    for line in told.splitlines():
        if "libnode" in line:
            shutil.copy(line.split()[2], folder)
    return ["env", f"LD_LIBRARY_PATH={folder}", f"{folder}/program", *command[1:]]


def attached(pair, many):
    """ms of CPU more, for each of these processes, over two seconds."""
    before = pair.more(cpu_ms)
    with rods.load([[*command, REST] for command in many]):
        rods.window(2)
    rods.window(0.5)
    return (pair.more(cpu_ms) - before) / len(many)


def attach(loads):
    """New binaries, and then more processes of one."""
    with contextlib.ExitStack() as stack:
        files = stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp"))
        pair = Pair(stack)
        rods.window(3)
        for name, command in loads.items():
            new = [copied(name, command, f"{files}/{name}{i}") for i in range(2)]
            figure(f"{name}, a new binary: agent CPU", attached(pair, new), "ms", 50)
            figure(f"{name}, a further process: agent CPU", attached(pair, [new[0]] * 8), "ms", 2)


def named(path, process):
    """(samples of the process's that have all frames by name, all of them)"""
    n_named = n_all = 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            stack, _, n = line.rpartition(" ")
            frames = stack.split(";")
            if process in frames[:2]:
                n_all += int(n)
                n_named += 0 if {"[runtime]", "[anon]"} & set(frames) else int(n)
    return n_named, n_all


def crowds(loads):
    """Python's workers, forked from one, and JVMs: memory of the agent, and what has names."""
    if not rods.LONG and "crowds" not in PARTS:
        return
    crowd = {"python3": [[*loads["Python"], "0.3", "2000"]]}
    if "HotSpot" in loads:
        crowd["java"] = [[*loads["HotSpot"], "2"]] * 200
    for process_name, many in crowd.items():
        n = 2000 if process_name == "python3" else len(many)
        with tempfile.TemporaryDirectory() as folder:
            with agent(ANDIRON, folder, to_file(folder, comm="stackframe")) as process:
                with rods.load(many):
                    rods.window(90)
                    pss = rods.own_mb(process.pid) + rods.held_mb(process.pid)
            n_named, n_all = named(f"{folder}/out.folded", process_name)
        figure(f"{n} processes of {process_name}: PSS and maps", pss, "MB")
        figure(f"{n} processes of {process_name}: named", n_named / n_all * 100, f"% of {n_all}")


with tempfile.TemporaryDirectory() as classes:
    found = commands(classes)
    for part in (walks, mixed, alone, memory, attach, crowds):
        if not PARTS or part.__name__ in PARTS:
            part(found)
finish()
