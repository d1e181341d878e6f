#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""unicode-tables.py source | all | category | script | case

Prints the tables of unicode-tables.h as C, from the Unicode Character Database of this machine
(Debian's package unicode-data). `source` prints the version of the database and its folder; `all`
prints a C file; a table's name prints that table alone, as `prometheus-oracle tables` prints Go's.
"""

import os
import re
import sys

END = 0x110000  # one past the last code point
# Where Debian, Fedora, Arch and Gentoo put the database.
FOLDERS = ["unicode", "unicode/ucd", "unicode-character-database", "unicode-data"]


def find():
    for folder in FOLDERS:
        if os.path.exists(f"/usr/share/{folder}/UnicodeData.txt"):
            return f"/usr/share/{folder}"
    sys.exit(
        "The Unicode Character Database is missing (UnicodeData.txt). "
        "Install unicode-data (Debian) or unicode-ucd (Fedora)."
    )


def lines(data, name):
    """The fields of each line of a file of the database, without comments."""
    with open(os.path.join(data, name), encoding="utf-8") as f:
        for line in f:
            fields = [field.strip() for field in line.split("#")[0].split(";")]
            if len(fields) > 1:
                yield fields


def version(data):
    with open(os.path.join(data, "Scripts.txt"), encoding="utf-8") as f:
        return re.match(r"# Scripts-(\d+\.\d+\.\d+)\.txt", f.readline())[1]


def varint(n):
    out = []
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return out + [n]


def runs(member):
    """The runs of a list that holds one byte for each code point."""
    out, first = [], 0
    for c in range(1, END + 1):
        if c == END or member[c] != member[first]:
            out += varint(c - first) + [member[first]]
            first = c
    return out


def c_bytes(name, data):
    text, column = f"const uint8_t {name}[] = {{", 100
    for byte in data:
        word = f"{byte},"
        if column + len(word) > 99:
            text += "\n\t"
            column = 8
        text += word
        column += len(word)
    return f"{text}\n}};\nconst size_t {name}_size = sizeof({name});\n"


def c_names(array, names):
    rows = "".join(f'\t{{"{name}", {names[name]}}},\n' for name in sorted(names))
    return (
        f"\nconst struct unicode_name {array}[] = {{\n{rows}}};\nconst size_t {array}_count = "
        f"{len(names)};\n"
    )


def canonical(name):
    return name.replace("_", "").capitalize()


def category(data):
    """The general category of each code point, and the unions of categories by every name."""
    unions, aliases = {}, {}
    with open(os.path.join(data, "PropertyValueAliases.txt"), encoding="utf-8") as f:
        for line in f:
            if line.startswith("gc ;"):
                text, _, union = line.partition("#")
                short, *others = [field.strip() for field in text.split(";")[1:]]
                unions[short] = union.replace("|", " ").split() or [short]
                aliases.update({canonical(name): short for name in [short, *others]})
    parts = sorted(name for name, union in unions.items() if union == [name])
    number = {part: i for i, part in enumerate(parts)}
    member = [number["Cn"] + 1] * END
    first = None
    for code, name, general, *_ in lines(data, "UnicodeData.txt"):
        code = int(code, 16)
        first = code if not name.endswith(", Last>") else first
        member[first : code + 1] = [number[general] + 1] * (code + 1 - first)
    masks = {
        name: sum(1 << number[part] for part in unions[short]) for name, short in aliases.items()
    }
    return c_bytes("unicode_categories", runs(member)) + c_names(
        "unicode_category_names", {name: f"UINT64_C({mask:#x})" for name, mask in masks.items()}
    )


def script(data):
    ranges = list(lines(data, "Scripts.txt"))
    names = {name: i for i, name in enumerate(sorted({name for _, name in ranges}), 1)}
    member = [0] * END
    for span, name in ranges:
        first, _, last = span.partition("..")
        first, last = int(first, 16), int(last or first, 16)
        member[first : last + 1] = [names[name]] * (last + 1 - first)
    return c_bytes("unicode_scripts", runs(member)) + c_names(
        "unicode_script_names", {canonical(name): i for name, i in names.items()}
    )


def case_changes(data):
    """What each character with a mapping adds for upper case, lower case and its next equal."""
    changes, orbits = {}, {}
    for fields in lines(data, "UnicodeData.txt"):
        code = int(fields[0], 16)
        if fields[12] or fields[13]:
            changes[code] = [int(field, 16) - code if field else 0 for field in fields[12:14]] + [0]
    for code, status, to, *_ in lines(data, "CaseFolding.txt"):
        if status in "CS":
            orbits.setdefault(int(to, 16), [int(to, 16)]).append(int(code, 16))
    for orbit in orbits.values():
        orbit.sort()
        for c, following in zip(orbit, orbit[1:] + orbit[:1]):
            changes.setdefault(c, [0, 0, 0])[2] = following - c
    return changes


def case(data):
    """Runs of characters, every one or every second, that add the same."""
    changes, done, rows = case_changes(data), set(), []
    for c in sorted(changes):
        change = changes[c]
        if c in done:
            continue
        step = 2 if changes.get(c + 1) != change and changes.get(c + 2) == change else 1
        last = c
        # What lies between is of one run, too: then no more than two overlap.
        while changes.get(last + step) == change and (
            step == 1 or changes.get(last + 1) == changes.get(c + 1)
        ):
            last += step
            done.add(last)
        rows.append("\t{" + ",".join(str(n) for n in [c, last, step, *change]) + "},\n")
    return (
        "/* first, last, step, to upper case, to lower case, to the next that folds alike */\n"
        f"const struct unicode_case unicode_cases[] = {{\n{''.join(rows)}}};\n"
        f"const size_t unicode_cases_count = {len(rows)};\n"
    )


def main(what):
    tables = {"category": category, "script": script, "case": case}
    data = find()
    if what == "source":
        print(version(data), data)
    elif what == "all":
        print(
            f'/* Unicode {version(data)}, made by unicode-tables.py. */\n#include '
            f'"regex/unicode-tables.h"\n'
        )
        print("\n".join(table(data) for table in tables.values()))
    else:
        print(tables[what](data), end="")


main(sys.argv[1])
