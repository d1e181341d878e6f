#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python, Java and JavaScript at once: in one tree of processes, with one switched off, and with a
plugin that is not there."""

import os

import profiles
import runtimes
from tap import case, main, write

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
SAMPLES = 500
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


def samples_of(stacks):
    """{language: samples with its function}, all with samples for None."""
    ret = {None: sum(n for _, n, _ in stacks)}
    for language, function in LANGUAGES.items():
        ret[language] = sum(
            n for frames, n, _ in stacks if any(f.function == function for f in frames)
        )
    return ret


def expect(what, stacks, named):
    """Of these languages the functions have names, of the others none has."""
    found = samples_of(stacks)
    told = ", ".join(f"{name} {n}" for name, n in found.items() if name)
    print(f"# {what}: {found[None]} samples: {told}", flush=True)
    for language in LANGUAGES:
        if language in named:
            assert found[language] >= 0.1 * found[None], (what, language, found)
        else:
            assert found[language] == 0, (what, language, found)


def each_at_once(what, named, option=""):
    """All three as targets of their own; those in `named` have a runtime in their status."""
    commands = programs()
    wanted = [language in named for language in commands]

    def ready(found, pids):
        return all(pid in found for pid in pids) and profiles.each_named(
            found, [pid for pid, is_wanted in zip(pids, wanted) if is_wanted]
        )

    found = profiles.of_programs(
        list(commands.values()), samples=SAMPLES, option=option, ready=ready
    )
    for language, profile, is_wanted in zip(commands, found, wanted):
        assert bool(profile.runtime) == is_wanted, (what, language, profile.runtime)
    expect(what, [one for profile in found for one in profile.stacks], named)
    return found


@case
def one_tree():
    """A Python program that starts Java and JavaScript: each process has its own language."""
    commands = programs()
    command = [*commands["Python"], *commands["Java"], "--", *commands["JavaScript"]]

    def ready(found, _):
        return len(set(filter(None, found.values()))) == 3

    profile = profiles.of_program(
        *command, option="follow = true", samples=2 * SAMPLES, ready=ready
    )
    expect("one tree", profile.stacks, LANGUAGES)


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
