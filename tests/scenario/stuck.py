# SPDX-License-Identifier: Apache-2.0
"""Where the processes of a test stand that does not end. A hang says so within minutes, and with
its cause, since it may not come again for days.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import traceback


def read(path):
    with contextlib.suppress(OSError), open(path, errors="replace") as f:
        return f.read()
    return ""


def parents():
    """{pid: its parent} of all processes."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        if fields:
            found[int(pid)] = int(fields[1])
    return found


def descendants(pid):
    """Of a process, itself left out, children before their own children."""
    found, known = [pid], parents()
    for one in found:
        found += [child for child, parent in known.items() if parent == one]
    return found[1:]


def by_debugger(pid):
    gdb = shutil.which("gdb")
    if gdb:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return subprocess.run(
                [gdb, "-nx", "-batch", "-p", str(pid), "-ex", "thread apply all bt 24"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=60,
                text=True,
                errors="replace",
            ).stdout
    return ""


def chosen(status, *names):
    return " ".join(line for line in status.splitlines() if line.startswith(names))


def stacks(pid):
    """Of the program's threads; where a debugger sees none, what the kernel says of each: one that
    is traced, or does not end, keeps its process from being waited for."""
    text = by_debugger(pid)
    if "#0" in text:
        return text
    return "".join(
        f"thread {tid}: {chosen(read(f'/proc/{pid}/task/{tid}/status'), 'State:', 'TracerPid:')} "
        f"{read(f'/proc/{pid}/task/{tid}/wchan')}\n"
        for tid in os.listdir(f"/proc/{pid}/task")
    )


def told(pids):
    """What each of these processes is, and where it stands."""
    text = ""
    for pid in pids:
        command = read(f"/proc/{pid}/cmdline").replace("\0", " ")
        status = chosen(read(f"/proc/{pid}/status"), "State:", "SigPnd:", "ShdPnd:", "SigBlk:")
        if not status:
            continue
        text += f"process {pid}: {command}\n{status}\n"
        with contextlib.suppress(OSError):  # it has ended
            text += stacks(pid)
    return text


def kill(pids):
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            os.kill(pid, signal.SIGKILL)


def holders(pipe):
    """Who else has an end of it open."""
    inode = os.fstat(pipe.fileno()).st_ino
    for pid in set(parents()) - {os.getpid()}:
        with contextlib.suppress(OSError):
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            if f"pipe:[{inode}]" in links:
                yield pid


@contextlib.contextmanager
def bounded(seconds):
    """Fails if what is done inside takes longer, and says where all processes below stand. By a
    signal, not a thread: tests fork. What still does not end a minute later ends the whole test.
    """
    fired = []

    def late(number, frame):
        below = descendants(os.getpid())
        if fired:
            kill(below)
            os._exit(1)
        fired.append(number)
        signal.setitimer(signal.ITIMER_REAL, 0)
        at = "".join(traceback.format_stack(frame))
        text = f"did not end within {seconds} s\n{at}{told(below)}"
        signal.setitimer(signal.ITIMER_REAL, 60)
        raise AssertionError(text)

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
