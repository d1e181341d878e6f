# SPDX-License-Identifier: Apache-2.0
"""The programs whose stacks are judged: those of this machine, and those of programs/."""

import os
import shutil
import subprocess

PROGRAMS = os.environ["PROGRAMS"]
ROOT = os.environ["SOURCE_ROOT"]

PYTHON = """
import json, re, sys, time
def deep(n): return work() if n == 0 else deep(n - 1) + 1
def work():
    d = {str(i): [i, str(i) * 3] for i in range(300)}
    found = len(re.findall(r"(\\d+)x?", "12x345" * 99))
    text = json.dumps(json.loads(json.dumps(d)))
    return len(text) + found + sorted(range(999), key=lambda x: -x)[0]
while time.process_time() < float(sys.argv[1]): deep(20)
"""
PERL = """
sub deep { my $n = shift; return $n ? deep($n - 1) + 1 : work() }
sub work { my %h; $h{$_ % 97} .= join ',', map { $_ * 2 } 1..30 for 1..99;
  my $t = join '', sort values %h; $t =~ s/(\\d+),/<$1>/g; length $t }
deep(20) while (times)[0] < $ARGV[0];
"""
NODE = """
const deep = n => n ? deep(n - 1) + 1 : work();
const work = () => { const a = []; for (let i = 0; i < 3000; i++) a.push({k: 'n' + i % 97, v: i});
  a.sort((x, y) => x.k < y.k ? -1 : 1);
  return JSON.stringify(JSON.parse(JSON.stringify(a))).replace(/n(\\d+)/g, '<$1>').length };
while (process.cpuUsage().user < +process.argv[1] * 1e6) deep(20);
"""
SQL = (
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < %d) select "
    "sum(length(g)) from "
    "(select group_concat(hex(i * 7919 %% 1009)) g, i %% 97 k from n group by k order by "
    "upper(g) desc);"
)


def sql(rows):
    return ["sqlite3", ":memory:", SQL % rows]


def system(fast):
    """process name: command; "%s" stands for the CPU seconds, a command without has to be
    repeated."""
    yield "openssl", ["openssl", "speed", "-seconds", "1", "-bytes", "8192"] + (
        ["sha256", "aes-256-cbc"]
        if fast
        else ["sha256", "sha1", "aes-256-cbc", "rsa2048", "ecdsap256", "ed25519"]
    )
    yield "python3", ["/usr/bin/python3", "-c", PYTHON, "%s"]
    yield "perl", ["perl", "-e", PERL, "%s"]
    yield "node", ["node", "-e", NODE, "%s"]
    yield "git", [
        "git",
        "-C",
        "/usr/include",
        "grep",
        "--no-index",
        "-cE",
        "(st[a-z]+uct|un[io]+n) [a-z_]+ *[{]",
    ]
    yield "cc1", [
        "gcc",
        "-O2",
        "-S",
        "-o",
        "/dev/null",
        "-D_GNU_SOURCE",
        f"-I{ROOT}/lib",
        f"{ROOT}/lib/pprof/encode.c",
    ]
    yield "sqlite3", sql(30000)
    if not fast:
        yield "cc1plus", [
            "g++",
            "-O2",
            "-S",
            "-o",
            "/dev/null",
            f"{ROOT}/tests/unwind/programs/throws.cc",
        ]
        yield "rustc", [
            "rustc",
            "-O",
            "--emit",
            "obj",
            "-o",
            "/dev/null",
            f"{ROOT}/tests/unwind/programs/work.rs",
        ]
        yield "compile", [
            "go",
            "build",
            "-a",
            "-p",
            "1",
            "-o",
            "/dev/null",
            f"{ROOT}/tests/unwind/programs/work.go",
        ]


TOOLS = ("repeat", "brief", "stamp", "storm", "sorts", "forged", "execs", "maps-code")


def built():
    """name: path of all that programs/ holds."""
    for name in sorted(os.listdir(PROGRAMS)):
        path = f"{PROGRAMS}/{name}"
        if os.path.isfile(path) and os.access(path, os.X_OK) and "." not in name:
            yield name, path


def own():
    """Those of them that are judged here: each takes CPU seconds."""
    return ((name, path) for name, path in built() if name not in TOOLS)


def all_for(seconds, fast):
    """{process name: command that uses so many CPU seconds}"""
    found = {}
    for name, command in system(fast):
        if shutil.which(command[0]):
            found[name] = (
                [str(seconds) if w == "%s" else w for w in command]
                if "%s" in command
                else [f"{PROGRAMS}/repeat", str(seconds)] + command
            )
    found.update((name[:15], [path, str(seconds)]) for name, path in own())
    found["plt-opened"] = [
        "sh",
        "-c",
        'ln -sf "$0" plt-opened; exec ./plt-opened "$2" "$1"',
        f"{PROGRAMS}/plt",
        f"{PROGRAMS}/libplt.so",
        str(seconds),
    ]
    return found


def cc1(language):
    """A compiler proper, without the driver that would start it."""
    driver, name, source, more = {
        "c": ("gcc", "cc1", "lib/pprof/encode.c", [f"-I{ROOT}/lib"]),
        "c++": ("g++", "cc1plus", "tests/unwind/programs/throws.cc", []),
    }[language]
    path = subprocess.run(
        [driver, f"-print-prog-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    multiarch = subprocess.run(
        [driver, "-print-multiarch"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return [
        path,
        "-quiet",
        "-imultiarch",
        multiarch,
        "-O2",
        "-D_GNU_SOURCE",
        *more,
        "-o",
        "/dev/null",
        f"{ROOT}/{source}",
    ]


def beforehand(folder, names):
    """Commands that bring the files of these programs into use for a moment, under names of their
    own."""
    short = {name: command for name, command in system(True) if name != "cc1"}
    short |= {name[:15]: [path, "%s"] for name, path in own()}
    if shutil.which("gcc"):
        short["cc1"] = cc1("c")
    os.makedirs(folder)
    for name in sorted(short.keys() & names):
        path = shutil.which(short[name][0])
        if path:
            os.symlink(os.path.realpath(path), f"{folder}/_{name}")
            yield [f"{folder}/_{name}"] + ["0.15" if w == "%s" else w for w in short[name][1:]]
