#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""new-plugin.py BUILD_ROOT PAGE KIND…

andiron is installed into a folder of its own. There each kind of project is built, conforms and
runs: `discovery` by the commands of docs/plugins.md, typed as they stand.
"""

import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

BUILD, PAGE, *KINDS = sys.argv[1:]
LINES = 150


def sh(command, cwd, env, **keywords):
    ran = subprocess.run(
        command,
        shell=isinstance(command, str),
        cwd=cwd,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=100,
        check=False,
        **keywords,
    )
    if ran.returncode == 1:
        for line in [str(command)] + ran.stdout.splitlines():
            print(f"# {line}")
    return ran


def install(root):
    """What a package would bring, below `root`; the environment in which it is found."""
    sh(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", f"--destdir={root}"], "/", None)
    (config,) = pathlib.Path(root).rglob("andiron.pc")
    text = config.read_text()
    prefix = re.search(r"^prefix=(.*)$", text, re.M)[1]
    config.write_text(text.replace(f"prefix={prefix}", f"prefix={root}{prefix}", 1))
    (relabel,) = pathlib.Path(root).rglob("andiron-relabel.so")
    return dict(
        os.environ,
        PATH=f"{root}{prefix}/bin:{os.environ['PATH']}",
        PKG_CONFIG_PATH=str(config.parent),
        ANDIRON_PLUGIN_PATH=str(relabel.parent),
        CFLAGS="-Werror",
    )


def is_short(project):
    """Counts what stands there beside the build's folder."""
    files = [f for f in pathlib.Path(project).iterdir() if f.is_file()]
    lines = sum(len(f.read_text(encoding="utf-8").splitlines()) for f in files)
    print(f"# {os.path.basename(project)}: {lines} lines")
    return lines < LINES


def the_page(folder, env):
    """Word by word, in one shell after the other: `cd` moves the next ones. It is about a project
    that finds targets."""
    commands = re.findall(r"^\$ (.*)$", pathlib.Path(PAGE).read_text(encoding="utf-8"), re.M)
    found = ""
    for command in commands:
        if command.startswith("cd "):
            folder = os.path.join(folder, command[3:])
            continue
        ran = sh(command, folder, env)
        if ran.returncode != 0:
            return False
        found += ran.stdout
    expected = ("web", "db", "32 subtests passed", "32 ok, 0 failed")
    missing = [text for text in expected if text not in found]
    print(f"# {len(commands)} commands; not shown: {missing}")
    return len(commands) == 6 and not missing and is_short(folder)


def shows_frames(project, env):
    """The machine's functions stand on those of C, in most stacks: the first samples of a process
    are taken before it is known."""
    name = os.path.basename(project)
    command = f"andiron record --plugin-dir build -o out.folded -- build/{name}-machine"
    if sh(command, project, env).returncode != 0:
        return False
    n = {True: 0, False: 0}
    for line in pathlib.Path(project, "out.folded").read_text(encoding="utf-8").splitlines():
        stack, samples = line.rsplit(" ", 1)
        n[";main;start;work" in stack] += int(samples)
    print(f"# {n[True]} samples in the machine, {n[False]} elsewhere")
    return n[True] > n[False]


def runs(kind, project, env):
    """What the project is for happens."""
    if kind == "relabel":
        ran = sh("andiron targets --plugin-dir build example.alloy", project, env)
        return ran.returncode == 0 and "web" in ran.stdout and "__process_pid__" not in ran.stdout
    if kind == "runtime":
        return shows_frames(project, env)
    if kind == "writer":
        return sh("andiron validate --plugin-dir build example.alloy", project, env).returncode == 0
    with subprocess.Popen(
        ["andiron", "run", "--plugin-dir", "build", "example.alloy"],
        cwd=project,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as agent:
        deadline = time.monotonic() + 60
        out = pathlib.Path(project, "example.folded")
        while not out.exists() and agent.poll() is None and time.monotonic() < deadline:
            try:
                agent.wait(0.1)
            except subprocess.TimeoutExpired:
                pass
        agent.terminate()
        agent.wait(30)
    return out.exists() and "tick" in out.read_text(encoding="utf-8")


def project(kind, folder, env):
    name = f"my{kind}" if kind == "runtime" else f"my_{kind}"
    path = os.path.join(folder, name)
    if sh(f"andiron new-plugin {name} --kind {kind}", folder, env).returncode != 0:
        return False
    again = sh(f"andiron new-plugin {name} --kind {kind}", folder, env)
    return (
        is_short(path)
        and again.returncode == 1
        and sh("meson setup build", path, env).returncode == 0
        and sh("meson test -C build", path, env).returncode == 0
        and runs(kind, path, env)
    )


def refused(folder, env):
    """Names that are no identifiers, and kinds that do not exist."""
    wrong = ["--kind writer", "../x --kind writer", "Upper --kind writer", "x", "x --kind tea"]
    wrong += ["x_y --kind runtime"]
    codes = [sh(f"andiron new-plugin {w}", folder, env).returncode for w in wrong]
    return codes == [2] * len(wrong) and not os.listdir(folder)


def main():
    if "runtime" in KINDS and os.geteuid() != 0:
        print("1..0 # SKIP needs root: run it by `sudo ./check`")
        return
    with tempfile.TemporaryDirectory() as folder:
        env = install(os.path.join(folder, "root"))
        empty = os.path.join(folder, "empty")
        os.mkdir(empty)
        checks = [("refused", lambda: refused(empty, env))]
        for kind in KINDS:
            make = the_page if kind == "discovery" else functools.partial(project, kind)
            checks.append((kind, functools.partial(make, folder, env)))
        failed = False
        print(f"1..{len(checks)}")
        for number, (name, check) in enumerate(checks, 1):
            ok = check()
            failed |= not ok
            print(f"{'ok' if ok else 'not ok'} {number} - {name}", flush=True)
    sys.exit(failed)


main()
