#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Man pages and shell completions, as the build makes them from the option tables; --help and
--version."""

import glob
import os
import re
import shutil
import subprocess

from tap import ANDIRON, Skip, andiron, case, main, run

MANUAL = os.environ["MANUAL"]
VERBS = re.findall(
    r"^  ([\w-]+) ",
    subprocess.run([ANDIRON, "--help"], capture_output=True, text=True, check=True).stdout,
    re.M,
)


def need(program):
    if not shutil.which(program):
        raise Skip(f"needs {program}: apt-get install {program}")


@case
def help_and_version_in_any_position():
    """--help and --version win in every position before "--", with every verb, on standard
    output."""
    version = andiron("--version").expect(0).out
    for verb in VERBS + ["worker", "tables"]:
        for words in (["--help"], ["-h"], ["x", "--no-such-option", "--help"], ["x", "-h", "--"]):
            r = andiron(verb, *words).expect(0, f"usage: andiron {verb}")
            prose = r.out.split("\nexamples:")[0].splitlines()
            assert not r.err and all(len(line) <= 80 and line == line.rstrip() for line in prose), (
                r.out + r.err
            )
        for words in (["--version"], ["x", "y", "--version"]):
            assert andiron(verb, *words).expect(0).out == version
    for word in ("--help", "-h", "help"):
        andiron(word, "record").expect(0, "usage: andiron record")
    andiron("help", "recrod").expect(2, 'did you mean "record"?')
    andiron("report", "--", "--help").expect(1, "--help")


@case
def pages_list_every_option():
    """The man page of a verb lists every option of its --help, and andiron.1 every verb."""
    need("man")
    pages = {
        os.path.basename(f): run("env", "LC_ALL=C.UTF-8", "MANWIDTH=200", "man", "-l", f).out
        for f in glob.glob(MANUAL + "/*.[15]")
    }
    assert set(pages) == {"andiron.1", "andiron.conf.5"} | {
        f"andiron-{verb}.1" for verb in VERBS
    }, pages.keys()
    for verb in VERBS:
        assert f"andiron-{verb}(1)" in pages["andiron.1"], verb
        options = re.findall(r"^ +(?:-\w, )?(--[\w-]+)", andiron(verb, "--help").out, re.M)
        assert len(options) >= 2
        for option in options:
            assert re.search(rf"^ +(-\w, )?{option}\b", pages[f"andiron-{verb}.1"], re.M), (
                verb,
                option,
            )
    assert "forward_to" in pages["andiron.conf.5"], "components' options"


@case
def pages_are_well_formed():
    """man and mandoc find nothing to complain of in the pages, but that they bear no date."""
    need("man")
    for path in glob.glob(MANUAL + "/*.[15]"):
        r = run("man", "--warnings", "-l", path)
        assert r.code == 0 and not r.err, r.err
        if shutil.which("mandoc"):
            found = [
                line
                for line in run("mandoc", "-T", "lint", "-W", "warning", path).out.splitlines()
                if "missing date" not in line
            ]
            assert not found, found


def bash(line):
    script = (
        'source "$1"; COMP_WORDS=($2); [ "${2: -1}" = " " ] && COMP_WORDS+=(""); '
        'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _andiron; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return run("bash", "-c", script, "bash", MANUAL + "/andiron", line)


def fish(line):
    return run(
        "fish",
        "--no-config",
        "-c",
        'source $argv[1]; complete -C $argv[2]',
        MANUAL + "/andiron.fish",
        line,
    )


# What is typed into a shell on a terminal of its own; the last key lists what could follow. The
# prompt says that the line editor reads.
ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=($1 \\$fpath); autoload -Uz compinit; compinit -u -d $2/dump; \\
zstyle ':completion:*' list-prompt ''; LISTMAX=1000; bindkey '^D' list-choices; PS1='rea''dy> '"
zpty -r shell line '*ready> *'
zpty -w -n shell "$3"$'\\x04'
zpty -w -n shell $'\\x15'"print fini''shed"$'\\n'
zpty -r shell line '*finished*'
print -r -- $line
"""


def zsh(line):
    return run("env", "TERM=xterm", "zsh", "-f", "-c", ZSH, "zsh", MANUAL, os.getcwd(), line)


def completes(shell):
    r = shell("andiron rec")
    assert "record" in r.out and "doctor" not in r.out, r.out + r.err
    r = shell("andiron record --dur")
    assert "--duration" in r.out and "--frequency" not in r.out, r.out + r.err
    r = shell("andiron run --log-level ")
    assert all(word in r.out for word in ("error", "warn", "debug")), r.out + r.err


@case
def bash_completes():
    """bash completes a verb, an option and a choice, behind "=" too, which it makes a word."""
    assert run("bash", "-n", MANUAL + "/andiron").code == 0
    completes(bash)
    assert bash("andiron run --log-level = de").out == "debug\n"
    assert bash("andiron run --log-level =").out == "error\nwarn\ninfo\ndebug\n"


@case
def fish_completes():
    """fish completes a verb, an option and a choice."""
    need("fish")
    assert run("fish", "-n", MANUAL + "/andiron.fish").code == 0
    completes(fish)


@case
def zsh_completes():
    """zsh completes a verb, an option and a choice."""
    need("zsh")
    assert run("zsh", "-n", MANUAL + "/_andiron").code == 0
    completes(zsh)


main()
