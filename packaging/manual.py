#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manual.py ANDIRON FOLDER: man pages and shell completions, from the command's own option tables.

The tables come from `andiron tables`, so a page cannot list an option that does not exist. The
components that ANDIRON_PLUGIN_PATH leads to are described in andiron.conf(5).
"""

import json
import os
import subprocess
import sys
import time

SECTIONS = {
    "FILES": "Plugins are searched in the directories of --plugin-dir, of the environment "
    "variable ANDIRON_PLUGIN_PATH, "
    "and in the directory of the installation.",
    "EXIT STATUS": "0 after success, 1 if the work could not be done, 2 if the command line "
    "makes no sense.",
}


def roff(text):
    """Text as roff takes it: nothing in it is a request or an escape."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return "\n".join(
        "\\&" + line if line[:1] in (".", "\\(aq") else line for line in text.split("\n")
    )


def page(name, section, brief, version):
    epoch = os.environ.get("SOURCE_DATE_EPOCH")  # none: no date, so that a build can be repeated
    date = time.strftime("%Y-%m-%d", time.gmtime(int(epoch))) if epoch else ""
    return [
        f'.TH {name.upper()} {section} "{date}" "andiron {version}"',
        ".SH NAME",
        f"{roff(name)} \\- {roff(brief)}",
    ]


def option(flag):
    word = f" \\fI{roff(flag['word'])}\\fR" if flag["word"] else ""
    letter = f"\\fB\\-{flag['letter']}\\fR, " if flag["letter"] else ""
    return [".TP", f"{letter}\\fB{roff('--' + flag['name'])}\\fR{word}", roff(flag["help"])]


def verb_page(verb, version):
    out = page("andiron-" + verb["verb"], 1, verb["brief"], version)
    out += [".SH SYNOPSIS", f".B andiron {verb['verb']}", roff(verb["usage"]), ".SH DESCRIPTION"]
    out += "\n.PP\n".join(roff(line) for line in verb["summary"].split("\n")).split("\n")
    out += [".SH OPTIONS"] + [line for flag in verb["flags"] for line in option(flag)]
    if verb["examples"]:
        out += [".SH EXAMPLES", ".nf", roff(verb["examples"].rstrip("\n")), ".fi"]
    return out + [".SH SEE ALSO", ".BR andiron (1),", ".BR andiron.conf (5)"]


def main_page(tables):
    out = page("andiron", 1, "continuous profiling from parts", tables["version"])
    out += [
        ".SH SYNOPSIS",
        ".B andiron",
        ".I VERB",
        "[\\fIOPTIONS\\fR]",
        ".SH DESCRIPTION",
        "andiron records where programs spend their time, for a moment into files or always to "
        "a server.",
        ".SH VERBS",
    ]
    for verb in tables["verbs"]:
        out += [".TP", f".BR andiron\\-{verb['verb']} (1)", roff(verb["brief"])]
    for title, text in SECTIONS.items():
        out += [f".SH {title}", roff(text)]
    return out + [".SH SEE ALSO", ".BR andiron.conf (5)"]


def conf_page(andiron, version):
    def ask(*arguments):
        return subprocess.run(
            [andiron, "plugins", *arguments], stdout=subprocess.PIPE, text=True, check=True
        ).stdout

    out = page("andiron.conf", 5, "configuration of andiron", version)
    out += [
        ".SH DESCRIPTION",
        "A configuration is written in the syntax of Grafana Alloy. Each block is a component; "
        "these are the components and their options.",
    ]
    names = sorted(c["name"] for plugin in json.loads(ask("--json")) for c in plugin["components"])
    for name in names:
        lines = ask(name).split("\n", 2)[2].rstrip("\n")
        out += [f".SS {roff(name)}", ".nf", roff(lines), ".fi"]
    return out + [".SH SEE ALSO", ".BR andiron (1),", ".BR andiron\\-validate (1)"]


# --- Completions ---


def takes(flag):
    """What an option's value is: "" for none, else a kind of word."""
    word = flag["word"] or ""
    if flag["choices"]:
        return "choice"
    return (
        "file"
        if word.endswith("FILE") or word in ("PATH", "DIR")
        else "pid" if word.startswith("PID") else word and "word"
    )


def operands(verb):
    return {
        "record": "command",
        "plugins": "component",
        "doctor": "none",
        "wait": "none",
        "debuginfo": "upload",
    }.get(verb["verb"], "file")


COMPONENTS = "andiron plugins 2>/dev/null | awk '/^[a-z]/ {print $1}'"

BASH = """# bash completion for andiron
_andiron()
{
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} i
	COMPREPLY=()
	# bash splits "--option=value" at the sign, which is a word of its own.
	[ "$before" = = ] && before=${COMP_WORDS[COMP_CWORD-2]}
	[ "$word" = = ] && word=
	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W "%s" -- "$word"))
		return
	fi
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = -- ]; then
			COMPREPLY=($(compgen -c -f -- "$word"))
			return
		fi
	done
	case ${COMP_WORDS[1]} in
%s
	esac
}
complete -o filenames -o bashdefault -F _andiron andiron
"""
BASH_WORDS = {
    "file": 'COMPREPLY=($(compgen -f -- "$word"))',
    "command": "COMPREPLY=(--)",
    "component": f'COMPREPLY=($(compgen -W "$({COMPONENTS})" -- "$word"))',
    "pid": 'COMPREPLY=($(compgen -W "$(ps -eo pid=)" -- "$word"))',
    "upload": '[ "$COMP_CWORD" -eq 2 ] && COMPREPLY=(upload) || COMPREPLY=($(compgen -f -- '
    '"$word"))',
    "none": ":",
    "word": ":",
}


def bash(verbs):
    cases = []
    for verb in verbs:
        cases.append(f"\t{verb['verb']})\n\t\tcase $before in")
        for flag in verb["flags"]:
            kind = takes(flag)
            action = (
                BASH_WORDS.get(kind)
                or f'COMPREPLY=($(compgen -W "{" ".join(flag["choices"])}" -- "$word"))'
            )
            if kind:
                names = f"--{flag['name']}" + (f"|-{flag['letter']}" if flag["letter"] else "")
                cases.append(f"\t\t{names}) {action}; return ;;")
        flags = " ".join("--" + flag["name"] for flag in verb["flags"])
        cases.append(
            "\t\tesac\n\t\tcase $word in\n"
            f'\t\t-*) COMPREPLY=($(compgen -W "{flags}" -- "$word")) ;;\n'
            f"\t\t*) {BASH_WORDS[operands(verb)]} ;;\n\t\tesac ;;"
        )
    return BASH % (" ".join(verb["verb"] for verb in verbs), "\n".join(cases))


def quoted(text, also=""):
    """A word of the shell; characters of `also` get a backslash."""
    for character in also:
        text = text.replace(character, "\\" + character)
    return "'" + text.replace("'", "'\\''") + "'"


ZSH_WORDS = {"file": "_files", "pid": "_pids", "word": " "}


def zsh(verbs):
    out = [
        "#compdef andiron",
        "local context state state_desc line",
        "typeset -A opt_args",
        "local -a verbs=(",
    ]
    out += [f"  {quoted(verb['verb'] + ':' + verb['brief'])}" for verb in verbs]
    out += [
        ")",
        "if (( CURRENT == 2 )); then",
        "  _describe verb verbs",
        "  return",
        "fi",
        "local verb=$words[2]",
        "shift words",
        "(( CURRENT-- ))",
        "case $verb in",
    ]
    for verb in verbs:
        out.append(f"{verb['verb']})\n  _arguments -s \\")
        for flag in verb["flags"]:
            kind, name = takes(flag), "--" + flag["name"]
            value = (
                f"({' '.join(flag['choices'])})" if kind == "choice" else ZSH_WORDS.get(kind, "")
            )
            text = (
                "["
                + quoted(flag["help"], "[]:")[1:-1]
                + "]"
                + (f":{flag['word'].replace(':', '')}:{value}" if kind else "")
            )
            repeated = "*" if "may be repeated" in flag["help"] else ""
            out.append(f"    '{repeated}{name}{text}' \\")
            if flag["letter"]:
                out.append(f"    '{repeated}-{flag['letter']}{text}' \\")
        kind = operands(verb)
        if kind == "upload":
            out.append("    '1:what:(upload)' \\")
        rest = {
            "none": "",
            "command": "*::command:_normal",
            "component": f"*:component:{{compadd -- $({COMPONENTS})}}",
        }
        rest = rest.get(kind, "*:file:_files")
        out.append(f"    {quoted(rest) if rest else ''}\n  ;;")
    return "\n".join(out + ["esac"]) + "\n"


def fish(verbs):
    out = ["# fish completion for andiron", "complete -c andiron -f"]
    for verb in verbs:
        on = f"-n '__fish_seen_subcommand_from {verb['verb']}'"
        out.append(
            f"complete -c andiron -n __fish_use_subcommand -a {verb['verb']} -d "
            f"{quoted(verb['brief'])}"
        )
        for flag in verb["flags"]:
            letter = f" -s {flag['letter']}" if flag["letter"] else ""
            value = {
                "": "",
                "word": " -x",
                "file": " -r -F",
                "pid": " -x -a '(__fish_complete_pids)'",
                "choice": " -x -a " + quoted(" ".join(flag["choices"])),
            }[takes(flag)]
            out.append(
                f"complete -c andiron {on} -l {flag['name']}{letter}{value} -d "
                f"{quoted(flag['help'])}"
            )
        what = {
            "file": "-F",
            "none": "",
            "command": "-a '(__fish_complete_subcommand)'",
            "upload": "-F -a upload",
            "component": f"-a \"({COMPONENTS.replace('$', chr(92) + '$')})\"",
        }[operands(verb)]
        if what:
            out.append(f"complete -c andiron {on} {what}")
    return "\n".join(out) + "\n"


def main(andiron, folder):
    tables = json.loads(
        subprocess.run([andiron, "tables"], stdout=subprocess.PIPE, check=True).stdout
    )
    verbs = tables["verbs"]
    files = {
        "andiron.1": main_page(tables),
        "andiron.conf.5": conf_page(andiron, tables["version"]),
    }
    files |= {f"andiron-{verb['verb']}.1": verb_page(verb, tables["version"]) for verb in verbs}
    files = {name: "\n".join(lines) + "\n" for name, lines in files.items()}
    files |= {"andiron": bash(verbs), "_andiron": zsh(verbs), "andiron.fish": fish(verbs)}
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
