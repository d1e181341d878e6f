# SPDX-License-Identifier: Apache-2.0
"""What the scenario tests share: TAP, the command under test, waiting.

A test is a function under @case with the promise that it keeps as its
docstring. It gets an empty directory that is the current one. Nothing waits
for time to pass: until() polls a condition and fails at a deadline.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback

import stuck
from waiting import DEADLINE, SANITIZED, until

ANDIRON = os.environ.get("ANDIRON", "andiron")
WORKLOAD = os.environ.get("WORKLOAD", "")
DEPTH = os.environ.get(
    "SCENARIO_DEPTH", "fast"
)  # "full" or "all": also what takes long; ./check sets it

# Seconds for a case, so that one that hangs tells where before Meson ends its whole test.
CASE_LIMIT = 3600 if DEPTH == "all" else 480

# What sampling and the names of all files need, each by the name that setpriv knows.
SIX = ["bpf", "perfmon", "sys_ptrace", "syslog", "checkpoint_restore", "dac_read_search"]

cases = []


class Skip(Exception):
    """Why a test cannot run here, and what would lift it."""


def case(function):
    cases.append(function)
    return function


def case_of_full(function):
    """A case that says the same of one more program or way, and takes its time: ./check --full
    runs it."""
    return function if DEPTH == "fast" else case(function)


def case_unsanitized(function):
    """A case that a sanitizer stands in the way of, or has little to look at in for its time."""
    return function if SANITIZED else case(function)


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root: run it by `sudo ./check`")


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")}
    env.update(more)
    return env


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def expect(self, code, *words):
        """The exit code, and words that stand in the output of either kind."""
        text = self.out + self.err
        if self.code != code:
            raise AssertionError(f"exit code {self.code}, expected {code}\n{text}")
        for word in words:
            if word not in text:
                raise AssertionError(f"no {word!r} in\n{text}")
        for bad in ("AddressSanitizer", "LeakSanitizer", "runtime error:", "check failed"):
            if bad in text:
                raise AssertionError(text)
        return self


def run(*command, env=None, stdin=subprocess.DEVNULL, **options):
    with subprocess.Popen(
        command,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env or environment(),
        errors="replace",
        text=True,
        **options,
    ) as process:
        try:
            out, err = process.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            # A process of its own that holds the pipes would be waited for without end.
            late = {process.pid, *stuck.descendants(process.pid), *stuck.holders(process.stdout)}
            text = stuck.told(late)
            stuck.kill(late)
            raise AssertionError(
                f"{' '.join(map(str, command))} did not end within {DEADLINE} s\n{text}"
            ) from None
    return Result(process.returncode, out, err)


def andiron(*arguments, **options):
    return run(ANDIRON, *arguments, **options)


def need(program, package):
    path = shutil.which(program, path="/usr/bin:/bin:/usr/sbin:/sbin")
    if not path:
        raise Skip(f"needs {program}: apt-get install {package}")
    return path


def with_capabilities(names, *command, **options):
    """Runs as root with these capabilities only."""
    setpriv = need("setpriv", "util-linux")
    sets = "-all" + "".join(f",+{name}" for name in names)
    return run(setpriv, f"--bounding-set={sets}", f"--inh-caps={sets}", *command, **options)


class Background:
    """A program that runs beside the test, its standard error in a file."""

    def __init__(self, *command, env=None, **options):
        self.log = tempfile.NamedTemporaryFile(dir=".", prefix="log-", delete=False)
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env=env or environment(),
            **options,
        )
        self.pid = self.process.pid

    def text(self):
        with open(self.log.name, errors="replace") as f:
            return f.read()

    def until(self, condition, what):
        """until(), and a failure at once when the program has ended."""
        return until(
            condition,
            lambda: (
                what
                if self.process.poll() is None
                else f"{what}, with {self.process.returncode}:\n{self.text()}"
            ),
            alive=lambda: self.process.poll() is None,
        )

    def until_says(self, words):
        self.until(lambda: words in self.text(), f"it said {words!r}")

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        """Waits for it to end by itself."""
        try:
            code = self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            late = [self.pid, *stuck.descendants(self.pid)]
            where = stuck.told(late)
            stuck.kill(late)
            self.process.wait()
            raise AssertionError(f"did not end:\n{self.text()}\n{where}") from None
        return Result(code, self.text(), "")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        self.log.close()


def write(path, text):
    mode = "wb" if isinstance(text, bytes) else "w"
    with open(path, mode) as f:
        f.write(text)
    return path


def read(path):
    with open(path, errors="replace") as f:
        return f.read()


def folded(path):
    """{stack as a tuple, root first: samples}"""
    stacks = {}
    for line in read(path).splitlines():
        frames, _, count = line.rpartition(" ")
        stacks[tuple(frames.split(";"))] = stacks.get(tuple(frames.split(";")), 0) + int(count)
    return stacks


def share(stacks, name):
    """The part of all samples whose stack has a frame of that name."""
    total = sum(stacks.values())
    part = sum(n for frames, n in stacks.items() if any(name in f for f in frames))
    return part / total if total else 0.0


def main(limit=CASE_LIMIT):
    print(f"1..{len(cases)}")
    failed = False
    home = os.getcwd()
    for number, function in enumerate(cases, 1):
        title = f"{number} - {function.__doc__.strip().splitlines()[0]}"
        directory = tempfile.mkdtemp(prefix="scenario-")
        os.chmod(directory, 0o755)
        os.chdir(directory)
        try:
            with stuck.bounded(limit):
                function()
            print(f"ok {title}")
        except Skip as reason:
            print(f"ok {number} - {function.__name__} # SKIP {reason}")
        except Exception as error:  # every failure is a result
            failed = True
            print(f"not ok {title}")
            text = (
                str(error)
                if isinstance(error, AssertionError) and str(error)
                else traceback.format_exc()
            )
            for line in text.splitlines():
                print(f"# {line}")
        finally:
            os.chdir(home)
            shutil.rmtree(directory, ignore_errors=True)
        sys.stdout.flush()
    sys.exit(failed)
