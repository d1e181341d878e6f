#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python, Java and JavaScript at once: in one tree of processes, with one switched off, and with a
plugin that is not there."""

import os

import profiles
import runtimes
from running import cpu_seconds
from tap import case, main, until, write

PYTHON = """import ctypes, subprocess, sys
def ends_with_parent():
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG
for command in " ".join(sys.argv[1:]).split(" -- "):
    command and subprocess.Popen(command.split(), preexec_fn=ends_with_parent)
def burn_python():
    while True:
        for i in range(1000):
            pass
burn_python()
"""
NODE = """'use strict';
function burnNode() {
  let s = 0;
  for (;;) for (let i = 0; i < 1000000; i++) s = (s * 31 + i) | 0;
}
burnNode();
"""
JAVA = """public class Burn {
    static volatile long sink;
    static int burnJava(int s) {
        for (int i = 0; i < 1000000; i++) s = s * 31 + i;
        return s;
    }
    public static void main(String[] arguments) {
        for (;;) sink = burnJava((int) sink);
    }
}
"""
RATE = 997
WORK = 0.3  # seconds of CPU for each process, at the least
LANGUAGES = {"Python": "burn_python", "Java": "Burn.burnJava", "JavaScript": "burnNode"}


def programs():
    """The newest of each: {language: command}."""
    java, node = runtimes.javas()[-1], runtimes.nodes()
    node = [one for one in node if len(one.command) == 1][-1]
    classes = runtimes.compiled_java(write("Burn.java", JAVA))
    return {
        "Python": [*runtimes.system_python().command, write("burn.py", PYTHON)],
        "Java": [*java.command, "-Xmx64m", "-cp", classes, "Burn"],
        "JavaScript": [*node.command, write("burn.js", NODE)],
    }


def work(pids):
    """Until each has worked for a while, however little a busy machine leaves one of them."""
    first = {pid: cpu_seconds(pid) for pid in pids}
    until(
        lambda: all(cpu_seconds(pid) - before >= WORK for pid, before in first.items()),
        "each process works",
    )


def expect(what, processes, named):
    """`processes` is {language: stacks}. Of these languages the functions have names, of the others
    none has. How much of the machine a process gets is not ours to say, nor how long it lasts until
    its runtime is known, so each is judged by what its own work makes, of which half is there and a
    quarter in its function: its compilers and its collector come beside that."""
    told = {}
    for language, stacks in processes.items():
        function = LANGUAGES[language]
        has = [n for frames, n, _ in stacks if any(f.function == function for f in frames)]
        told[language] = (sum(has), sum(n for _, n, _ in stacks))
    print(f"# {what}: {', '.join(f'{name} {n} of {m}' for name, (n, m) in told.items())}")
    for language, (n, samples) in told.items():
        assert samples >= WORK * RATE / 2, (what, language, told)
        if language in named:
            assert n >= WORK * RATE / 4, (what, language, told)
        else:
            assert n == 0, (what, language, told)


def each_at_once(what, named, option=""):
    """All three as targets of their own; those in `named` have a runtime in their status."""
    commands = programs()
    wanted = [language in named for language in commands]

    def ready(found, pids):
        return all(pid in found for pid in pids) and profiles.each_named(
            found, [pid for pid, is_wanted in zip(pids, wanted) if is_wanted]
        )

    found = profiles.of_programs(
        list(commands.values()), samples=0, rate=RATE, option=option, ready=ready, beside=work
    )
    for language, profile, is_wanted in zip(commands, found, wanted):
        assert bool(profile.runtime) == is_wanted, (what, language, profile.runtime)
    expect(what, {name: profile.stacks for name, profile in zip(commands, found)}, named)
    return found


@case
def one_tree():
    """A Python program that starts Java and JavaScript: each process has its own runtime, and the
    functions of all three have names."""
    commands = programs()
    command = [*commands["Python"], *commands["Java"], "--", *commands["JavaScript"]]

    seen = {}

    def ready(found, _):
        seen.clear()
        seen.update({runtime: pid for pid, runtime in found.items() if runtime})
        return len(seen) == 3

    profile = profiles.of_program(
        *command,
        option="follow = true",
        samples=0,
        rate=RATE,
        ready=ready,
        beside=lambda _: work(list(seen.values())),
    )
    processes = dict.fromkeys(LANGUAGES, profile.stacks)
    expect("one tree", processes, LANGUAGES)


@case
def switched_off():
    """Alloy's switches turn languages off and leave the others alone."""
    for switches, named in (["python"], {"Java", "JavaScript"}), (["hotspot", "v8"], {"Python"}):
        option = "\n  ".join(f"{switch}_enabled = false" for switch in switches)
        each_at_once(f"{'+'.join(switches)} switched off", named, option)


@case
def removed():
    """Without its plugin a language has no names, which costs the others nothing and needs no word
    in the configuration."""
    path = os.environ["ANDIRON_PLUGIN_PATH"]
    folders = {os.path.basename(folder): folder for folder in path.split(":")}
    assert {"python", "jvm", "v8"} <= set(folders), path
    for plugins, named in (["jvm"], {"Python", "JavaScript"}), (["python", "v8"], {"Java"}):
        kept = [folder for name, folder in folders.items() if name not in plugins]
        os.environ["ANDIRON_PLUGIN_PATH"] = ":".join(kept)
        try:
            said = each_at_once(f"without {'+'.join(plugins)}", named)[0].said
        finally:
            os.environ["ANDIRON_PLUGIN_PATH"] = path
        assert "error" not in said, said


main()
