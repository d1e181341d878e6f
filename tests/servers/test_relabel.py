#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_relabel.py RELABEL-ANSWERS [--golden FILE]: andiron's relabeling against
Prometheus's own library, and its regular expressions against Go's.

Random cases (and the published tables, re-expressed in tests/golden) go to both;
where the answers differ, a class of CLASSES must say why. --golden writes a small
part of the cases with Prometheus's answers, for the unit tests.
"""

import os
import random
import re
import subprocess
import sys
import tempfile

from pyroscope import Skip, get, run

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OURS = sys.argv[1]
RULE_CASES = int(os.environ.get("ANDIRON_RELABEL_CASES", "200000"))
REGEX_CASES = int(os.environ.get("ANDIRON_REGEX_CASES", "60000"))


def unicode_tables(what):
    """What lib/regex/unicode-tables.py prints: the tables that the build compiles."""
    command = [sys.executable, f"{ROOT}/lib/regex/unicode-tables.py", what]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


SCRIPTS = set(re.findall(r'\{"(\w+)", \d+\}', unicode_tables("script")))


def lost_script(theirs):
    """Whether what Go refuses is the name of a script."""
    refused = re.search(r"invalid character class range: `\\[pP]\{\^?([\w -]+)\}`", theirs)
    return refused and re.sub("[_ -]", "", refused[1]).capitalize() in SCRIPTS


# Why an answer of ours may be another one. Each: a name, the reason, and what tells
# the class from (the case's lines that set it up, the line that asked, our answer, theirs).
CLASSES = [
    (
        "brackets",
        "a) | (b is refused: it is no expression of its own, only the anchors around it make it "
        "one",
        lambda setup, ours, theirs: re.match(r"error .*unexpected \)", ours)
        and not theirs.startswith("error"),
    ),
    (
        "size",
        "what needs more than 32,768 steps, 65,536 bytes or 262,144 ranges, or tells too many "
        "characters apart, is refused; Go allows 128 MiB",
        lambda setup, ours, theirs: re.match(
            r"error .*(is too large|is longer than|characters apart)", ours
        ),
    ),
    (
        "scripts",
        "scripts of two words (\\p{Old_Italic}) are known; Go 1.25 and later lost them by a "
        "mistake in spelling",
        lambda setup, ours, theirs: not ours.startswith("error") and lost_script(theirs),
    ),
    (
        "growth",
        "a target that rules make larger than 1,024 labels or 1 MiB is left out",
        lambda setup, ours, theirs: ours == "failed -7",
    ),
]


def quote(data):
    out = ['"']
    for byte in data:
        if byte in b'"\\':
            out.append("\\" + chr(byte))
        elif 0x20 <= byte <= 0x7E:
            out.append(chr(byte))
        else:
            out.append(f"\\x{byte:02x}")
    return "".join(out) + '"'


# --- Regular expressions ---

ATOMS = [
    "a",
    "b",
    "c",
    "é",
    "ж",
    "K",
    "k",
    "ſ",
    "S",
    "Σ",
    "1",
    "-",
    "_",
    " ",
    ".",
    ".",
    "[ab]",
    "[^a]",
    "[a-z]",
    "[^-a\\d]",
    "\\.",
    "\\d",
    "\\w",
    "\\W",
    "\\s",
    "\\S",
    "\\D",
    "[[:alpha:]]",
    "[[:^digit:]_]",
    "\\pL",
    "\\PL",
    "\\p{Greek}",
    "\\P{^Lu}",
    "[\\p{Ll}\\d]",
    "\\x41",
    "\\x{e9}",
    "\\101",
    "\\n",
    "\\t",
    "\\Q.*\\E",
    "[]a]",
    "[^]a]",
    "[a\\]]",
    "é",
    "😀",
    "�",
    "\\x{10FFFF}",
    "\\p{Any}",
    "\\p{Nd}",
    "\\p{letter}",
    "\\p{Uppercase_Letter}",
    "\\p{ASCII}",
    "\\p{Assigned}",
    "\\pZ",
    "\\p{Old_Italic}",
]
EDGES = ["^", "$", "\\A", "\\z", "\\b", "\\B"]
REPEATS = [
    "*",
    "+",
    "?",
    "*?",
    "+?",
    "??",
    "{2}",
    "{0,2}",
    "{1,}",
    "{2,3}?",
    "{,2}",
    "{0}",
    "{1}",
    "{0,1}",
    "{3,}?",
]
FLAGS = ["(?i)", "(?m)", "(?s)", "(?U)", "(?-s)", "(?i-s)", "(?im)"]
WRONG = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "*",
    "\\",
    "\\C",
    "\\1",
    "(?=a)",
    "(?<!a)",
    "(?P<x",
    "(?P=a)",
    "[z-a]",
    "\\p{Nope}",
    "a**",
    "x{1001}",
    "(a{40}){40}",
    "\\xg",
    "\\x{110000}",
    "[[:nope:]]",
    "(?z)",
    "\\8",
    "[a",
    "a)|(b",
    "\\Qab",
    "(?i",
    "++",
    "|",
    "(?:",
    "\\E",
    "(?P<é>a)",
]
TEXT = [
    "a",
    "b",
    "c",
    "A",
    "B",
    "é",
    "É",
    "ж",
    "Ж",
    "K",
    "k",
    "K",
    "s",
    "S",
    "ſ",
    "σ",
    "ς",
    "1",
    "-",
    "_",
    " ",
    ".",
    "\n",
    "😀",
    "�",
    "𐌀",
]
BYTES = [
    b"\xff",
    b"\x80",
    b"\xe2\x82",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xc0\x80",
    b"\x00",
]


def expression(r, depth):
    out = []
    for _ in range(r.randint(1, 3)):
        what = r.random()
        if what < 0.08:
            out.append(r.choice(EDGES))
        elif what < 0.12:
            out.append(r.choice(FLAGS))
        elif what < 0.45 and depth:
            inner = expression(r, depth - 1)
            if r.random() < 0.5:
                inner += "|" + expression(r, depth - 1)
            out.append(
                r.choice(["(", "(", "(?:", "(?P<n>", "(?<m>", "(?i:", "(?s-m:"]) + inner + ")"
            )
        else:
            out.append(r.choice(ATOMS[:20] if r.random() < 0.7 else ATOMS))
        if r.random() < 0.35:
            out.append(r.choice(REPEATS))
    return "".join(out)


def damaged(r, text):
    """The expression with a piece put in, taken out or doubled somewhere."""
    at = r.randint(0, len(text))
    how = r.random()
    if how < 0.6:
        return text[:at] + r.choice(WRONG) + text[at:]
    if how < 0.8:
        return text[:at] + text[at + 1 :]
    return text[:at] + text[max(0, at - 3) :]


def matched(r, pattern):
    """A text near to what the expression is about: its own letters, shuffled a little."""
    letters = [c for c in pattern if c.isalnum() or c in "-_ ."]
    out = "".join(c.swapcase() if r.random() < 0.2 else c for c in letters if r.random() < 0.8)
    return out * r.choice([1, 1, 1, 2, 3])


def some_text(r, pattern=""):
    out = b""
    if pattern and r.random() < 0.4:
        out = matched(r, pattern).encode()
    for _ in range(r.randint(0, 7)):
        piece = (
            r.choice(BYTES)
            if r.random() < 0.06
            else r.choice(TEXT if r.random() < 0.5 else TEXT[:3]).encode()
        )
        at = r.randint(0, len(out))
        out = out[:at] + piece + out[at:]
    return out


def regex_case(r, number):
    pattern = expression(r, 3)
    if r.random() < 0.15:
        pattern = damaged(r, pattern)
    lines = [f"== expression {number}", f"regex {quote(pattern.encode())}"]
    lines += [f"text {quote(some_text(r, pattern))}" for _ in range(4)]
    return lines


# --- Rules ---

NAMES = [
    "a",
    "b",
    "c",
    "__address__",
    "__meta_kubernetes_namespace",
    "__meta_kubernetes_pod_name",
    "__meta_kubernetes_pod_label_app",
    "__meta_kubernetes_pod_label_team",
    "job",
    "näme",
    "with.dot",
    "x y",
    "A",
    "__tmp",
]
VALUES = [
    "",
    "a",
    "b",
    "foo",
    "foobar",
    "foo\nbar",
    "FOO",
    "Straße",
    "ΑΣ",
    "İı",
    "10.0.0.1:8080",
    "true",
    "false",
    "prod/eu",
    "a;b",
    "ǆ",
]
REGEXES = [
    "(.*)",
    "(.+)",
    "foo",
    "foo(.*)",
    "(.*)bar",
    "f(.)o(.*)",
    "([^:]+)(?::\\d+)?",
    "(.*);(.*)",
    "__meta_kubernetes_pod_label_(.+)",
    "__meta_(.*)",
    "a|b",
    "(a)|(b)",
    "(?i)FOO.*",
    "",
    "true",
    "[a-z]+",
    "(?P<first>[^.]*)\\.?(?P<rest>.*)",
    ".*",
    ".+",
    "^foo$",
    "b",
    "(.*?)o(.*)",
    "\\w+",
    "([a-z_]+)",
    "(__)?(.*)",
]
TEMPLATES = [
    "$1",
    "${1}",
    "$2-$1",
    "x",
    "",
    "$1a",
    "${1}a",
    "$$",
    "$",
    "${",
    "${first}_${rest}",
    "$first",
    "$3",
    "$0",
    "pre_$1",
    "$é",
    "$1$2$1",
    "a$",
    "${1",
    "$1.x",
    "-$1",
    "$01",
    "label_$1",
]
TARGETS = [
    "a",
    "b",
    "new",
    "$1",
    "${1}_x",
    "näme",
    "x-y",
    "__tmp",
    "job",
    "${2}",
    "1x",
    "label_$1",
    "A",
]
ACTIONS = ["replace"] * 6 + [
    "keep",
    "drop",
    "hashmod",
    "labelmap",
    "labelmap",
    "labeldrop",
    "labelkeep",
    "lowercase",
    "uppercase",
    "keepequal",
    "dropequal",
]


def rule(r):
    """One rule that is mostly valid; now and then an option that its action does not take."""
    action = r.choice(ACTIONS)
    options = {"action": action}
    stray = r.random() < 0.004
    if action not in ("labelmap", "labeldrop", "labelkeep") or stray:
        if r.random() < 0.9:
            options["source_labels"] = ",".join(r.choice(NAMES) for _ in range(r.randint(1, 3)))
    if action not in ("keep", "drop", "labelmap", "labeldrop", "labelkeep") or stray:
        options["target_label"] = r.choice(
            TARGETS if action == "replace" or stray else TARGETS[:1] + NAMES
        )
    if action not in ("keepequal", "dropequal", "lowercase", "uppercase", "hashmod") or stray:
        if r.random() < 0.85:
            options["regex"] = r.choice(REGEXES) if r.random() < 0.8 else expression(r, 2)
    if (action in ("replace", "labelmap") and r.random() < 0.8) or stray:
        options["replacement"] = r.choice(TEMPLATES)
    if action == "hashmod" and r.random() < 0.995 or stray:
        options["modulus"] = str(r.choice([1, 2, 8, 1000, 2**63 - 1, 2**64 - 1]))
    if action in ("replace", "hashmod", "keep", "drop") and r.random() < 0.15:
        options["separator"] = r.choice([",", "", "--", "é"])
    if action in ("keep", "drop") and r.random() < 0.6:
        options["regex"] = r.choice([".*", "(.+)", ".*o.*", "[^x]*"])
    return "rule " + " ".join(f"{name}={quote(value.encode())}" for name, value in options.items())


def rule_case(r, number):
    lines = [f"== rules {number}"]
    lines += [rule(r) for _ in range(r.choice([1, 1, 2, 3, 5]))]
    labels = {
        name: r.choice(VALUES).encode() if r.random() < 0.9 else some_text(r)
        for name in r.sample(NAMES, r.randint(1, 8))
    }
    lines.append(
        "in " + " ".join(f"{quote(name.encode())}={quote(value)}" for name, value in labels.items())
    )
    return lines


# --- Comparing ---


def answers(command, path):
    with open(path, "rb") as cases:
        made = subprocess.run(command, stdin=cases, stdout=subprocess.PIPE, check=False)
    assert made.returncode == 0, f"{command[0]} ended with {made.returncode}"
    return made.stdout.decode(errors="replace").split("\n")[:-1]


def ours_and_theirs(path):
    """(The lines that set the case up, the line that asks, our answer, theirs), for each line that
    asks."""
    ours, theirs = answers([OURS], path), answers([get("prometheus-oracle"), "answers"], path)
    assert len(ours) == len(theirs), (len(ours), len(theirs))
    setup, at = [], 0
    with open(path, encoding="utf-8") as cases:
        for line in map(str.rstrip, cases):
            if line.startswith("== "):
                setup = []
            elif line.startswith(("rule ", "regex ")):
                setup.append(line)
            elif line.startswith(("in ", "text ")):
                yield "\n".join(setup), line, ours[at], theirs[at]
                at += 1
    assert at == len(ours), (at, len(ours))


def equal(ours, theirs):
    return ours == theirs or (ours.startswith("error") and theirs.startswith("error"))


def compare(path):
    """Prints what differs by class; fails for what has none."""
    counts, n, unknown, refused = {}, 0, [], 0
    for setup, asked, ours, theirs in ours_and_theirs(path):
        n += 1
        refused += theirs.startswith("error")
        if equal(ours, theirs):
            continue
        name = next((c[0] for c in CLASSES if c[2](setup, ours, theirs)), None)
        if name:
            counts[name] = counts.get(name, 0) + 1
        else:
            unknown.append(f"{setup}\n{asked}\n  ours:   {ours}\n  theirs: {theirs}")
    print(
        f"# {n} answers, {refused} of them refusals; {sum(counts.values())} differ for a known "
        f"reason, {len(unknown)} for none"
    )
    for name, reason, _ in CLASSES:
        if name in counts:
            print(f"# {counts[name]:6} {name}: {reason}")
    assert not unknown, "\n" + "\n".join(unknown[:8])
    return n


def write(path, lines):
    with open(path, "w", encoding="utf-8") as out:
        for case in lines:
            out.write("\n".join(case) + "\n")


def check_random(make, seed, n):
    r = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/cases"
        write(path, (make(r, i) for i in range(n)))
        return compare(path)


def expressions():
    """Random expressions: the same ones are refused, and the others match the same, group by
    group."""
    assert check_random(regex_case, 1, REGEX_CASES) >= REGEX_CASES


def rules():
    """Random rules over random labels give what Prometheus gives."""
    assert check_random(rule_case, 2, RULE_CASES) >= RULE_CASES


def tables():
    """The published cases, re-expressed: what the table says is right is what Prometheus says."""
    assert compare(f"{ROOT}/tests/golden/relabel.txt") > 60


def golden():
    """The recorded part is still what Prometheus answers."""
    path = f"{ROOT}/tests/golden/relabel-prometheus.txt"
    with open(path, encoding="utf-8") as recorded:
        want = [
            line.rstrip("\n")
            for line in recorded
            if line.startswith(("out", "dropped", "error", "groups", "none"))
        ]
    got = answers([get("prometheus-oracle"), "answers"], path)
    assert [w.split(" ")[0] if w.startswith("error") else w for w in want] == [
        g.split(" ")[0] if g.startswith("error") else g for g in got
    ]


def unicode_data():
    """The character tables that the build makes are Go's."""
    oracle = get("prometheus-oracle")
    version = subprocess.run(
        [oracle, "unicode-version"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    found, folder = unicode_tables("source").split()
    if version != found:
        raise Skip(f"Unicode {found} in {folder}, while Go has {version}; install that version")
    for name in ("category", "script", "case"):
        theirs = subprocess.run(
            [oracle, "tables", name], stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        assert theirs == unicode_tables(
            name
        ), f"unicode-tables.py {name} differs from `prometheus-oracle tables {name}`"


def write_golden(target):
    r = random.Random(3)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/cases"
        write(path, [regex_case(r, i) for i in range(600)] + [rule_case(r, i) for i in range(600)])
        known = {}
        for setup, asked, ours, theirs in ours_and_theirs(path):
            if equal(ours, theirs):
                known.setdefault(setup, []).append(
                    (asked, "error" if theirs.startswith("error") else theirs)
                )
    with open(target, "w", encoding="utf-8") as out:
        out.write(
            "# SPDX-License-Identifier: Apache-2.0\n# Random cases with the answers of "
            "Prometheus 3 and Go, made by\n"
            "# `tests/servers/test_relabel.py RELABEL-ANSWERS --golden FILE`. For the form see "
            "relabel.txt.\n"
        )
        for number, (setup, asked) in enumerate(known.items(), 1):
            out.write(
                f"== {number}\n{setup}\n" + "".join(f"{line}\n{answer}\n" for line, answer in asked)
            )


if sys.argv[2:3] == ["--golden"]:
    write_golden(sys.argv[3])
else:
    sys.exit(run([tables, golden, unicode_data, expressions, rules]))
