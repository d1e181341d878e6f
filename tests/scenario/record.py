#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`record` on this kernel, with real BPF."""

import gzip
import json
import os
import pty
import pwd
import signal
import subprocess

from books import delivered, ledger_holds
from running import cpu_seconds
from tap import (
    ANDIRON,
    WORKLOAD,
    Background,
    Skip,
    andiron,
    case,
    environment,
    folded,
    main,
    need_root,
    read,
    share,
    until,
    write,
)


def child_named(parent, name):
    """The process id of a child whose program has that name."""
    for pid in read(f"/proc/{parent}/task/{parent}/children").split():
        if name in read(f"/proc/{pid}/comm"):
            return int(pid)
    return None


def blocks(pid, number):
    """Whether the process has the signal blocked, to read it from a descriptor."""
    try:
        mask = next(
            line for line in read(f"/proc/{pid}/status").splitlines() if line.startswith("SigBlk:")
        )
    except FileNotFoundError:
        return False
    return int(mask.split()[1], 16) >> (number - 1) & 1


@case
def shares_are_true():
    """A workload's functions come back with their shares, every sample in the books."""
    need_root()
    andiron(
        "record", "-F", "997", "-o", "w.folded", "--ledger", "l.json", "--", WORKLOAD, "9"
    ).expect(0, "wrote w.folded")
    stacks = folded("w.folded")
    taken = ledger_holds("l.json")
    assert sum(stacks.values()) == taken, (sum(stacks.values()), taken)
    for name, part in (("workload_70", 0.7), ("workload_20", 0.2), ("workload_10", 0.1)):
        found = share(stacks, name)  # chance alone moves the largest by .005
        assert abs(found - part) < 0.03, f"{name} has {found:.3f}, expected {part}"
    assert all("workload" in frames[0] for frames in stacks), list(stacks)[:5]


@case
def exit_codes_are_kept():
    """The command's exit code is ours; what cannot run is 127 or 126."""
    need_root()
    for script, code in (("exit 0", 0), ("exit 42", 42), ("kill -KILL $$", 137)):
        andiron("record", "-o", "x.folded", "--", "sh", "-c", script).expect(code)
    os.remove("x.folded")
    andiron("record", "-o", "x.folded", "--", "no-such-command").expect(127, "No such file")
    andiron("record", "-o", "x.folded", "--", "/etc/passwd").expect(126, "Permission denied")
    assert not os.path.exists("x.folded")


@case
def own_failures_run_nothing():
    """When recording cannot start, the command is not run, and the code is 125."""
    need_root()
    andiron(
        "record",
        "-o",
        "x.folded",
        "--",
        "touch",
        "ran",
        env=environment(ANDIRON_PLUGIN_PATH="/nowhere"),
    ).expect(125)
    andiron("record", "-o", "/nowhere/x.folded", "--", "touch", "ran").expect(125, "/nowhere")
    assert not os.path.exists("ran")


@case
def descendants_are_followed():
    """Descendants belong to the command, also when their parent has exited."""
    need_root()
    andiron(
        "record", "-F", "499", "-o", "w.folded", "--", "sh", "-c", f"true; {WORKLOAD} 6 fork"
    ).expect(0)
    assert share(folded("w.folded"), "workload_70") > 0.5, read("w.folded")[:2000]


@case
def others_are_left_out():
    """Beside the command nobody is recorded."""
    need_root()
    with Background(WORKLOAD, "30"):
        andiron(
            "record",
            "-F",
            "499",
            "-o",
            "w.folded",
            "--",
            "sh",
            "-c",
            "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done",
        ).expect(0)
    stacks = folded("w.folded")
    assert stacks and share(stacks, "workload") == 0, list(stacks)[:5]


@case
def one_process():
    """-p records this process only, and its end ends the recording."""
    need_root()
    with Background(WORKLOAD, "4") as worker, Background(WORKLOAD, "60") as other:
        worker.signal(signal.SIGSTOP)  # it ends when it has worked, and is to be recorded before
        with Background(
            ANDIRON,
            "record",
            "-p",
            str(worker.pid),
            "-d",
            "600s",
            "-F",
            "499",
            "-o",
            "w.folded",
            "--group-by",
            "pid",
        ) as recorder:
            recorder.until_says("recording")
            worker.signal(signal.SIGCONT)
            recorder.end().expect(0)
        assert other.process.poll() is None
    stacks = folded("w.folded")
    assert share(stacks, "workload_70") > 0.5
    assert all(str(worker.pid) in frames[0] for frames in stacks), list(stacks)[:5]


@case
def everything_keeps_processes_apart():
    """-a has all processes; by process and pid each has a root of its own; all files say the
    same."""
    need_root()
    with Background(WORKLOAD, "60") as a, Background(WORKLOAD, "60") as b:
        andiron(
            "record",
            "-a",
            "-d",
            "2s",
            "-F",
            "499",
            "-o",
            "w.folded",
            "-o",
            "w.html",
            "-o",
            "w.pb.gz",
            "--group-by",
            "process,pid",
            "--ledger",
            "l.json",
        ).expect(0, "wrote w.html", "wrote w.pb.gz")
    stacks = folded("w.folded")
    for worker in (a, b):
        roots = [frames for frames in stacks if frames[1] == f"pid {worker.pid}"]
        assert roots, {frames[0] for frames in stacks}
    assert sum(stacks.values()) == delivered("l.json"), (sum(stacks.values()), read("l.json"))
    assert b"workload_70" in gzip.decompress(open("w.pb.gz", "rb").read())
    html = read("w.html")
    assert (
        "<html" in html
        and "http://" not in html.replace("http://www.w3.org", "")
        and "https://" not in html
    )


@case
def a_program_is_one_box():
    """Short processes of one program are one root of the folded text, and labels of the pprof
    file."""
    need_root()
    loop = "for i in 1 2 3 4 5 6 7 8; do sort -R /usr/bin/env -o /dev/null; done; "
    andiron(
        "record", "-F", "499", "-o", "w.folded", "-o", "w.pb.gz", "--", "sh", "-c", loop * 3
    ).expect(0)
    roots = [frames[0] for frames in folded("w.folded")]
    assert "sort" in roots and not any("pid" in root for root in roots), set(roots)
    pids = json.loads(andiron("report", "--json", "--group-by", "pid", "w.pb.gz").expect(0).out)[
        "by_label"
    ]
    threads = json.loads(
        andiron("report", "--json", "--group-by", "comm", "w.pb.gz").expect(0).out
    )["by_label"]
    assert len(pids) > 1 and "sort" in {t["label"] for t in threads}, (pids, threads)


@case
def pprof_to_a_pipe():
    """-o - writes pprof to standard output, and all words and the command's own to standard
    error."""
    need_root()
    with open("out", "wb") as out, open("err", "wb") as err:
        code = subprocess.run(
            [
                ANDIRON,
                "record",
                "-F",
                "499",
                "-o",
                "-",
                "--",
                "sh",
                "-c",
                f"echo hello; {WORKLOAD} 1; exit 3",
            ],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=environment(),
            check=False,
        ).returncode
    assert code == 3 and "hello" in read("err") and "samples:" in read("err"), read("err")
    andiron("report", "out").expect(0, "workload_70")
    left = [
        name
        for name in os.listdir("/tmp")
        if name.startswith("andiron-") and os.path.exists(f"/tmp/{name}/aside.pb.gz")
    ]
    assert not left, left


@case
def pprof_to_a_terminal_is_refused():
    """-o - on a terminal, and into a pipe that nobody reads, says what is wrong."""
    need_root()
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [ANDIRON, "record", "-o", "-", "--", "touch", "ran"],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=environment(),
        check=False,
        text=True,
    )
    os.close(theirs)
    os.close(ours)
    assert (
        done.returncode == 125 and "is a terminal" in done.stderr and not os.path.exists("ran")
    ), done.stderr
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [ANDIRON, "record", "-d", "100ms", "-o", "-"],
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        env=environment(),
        check=False,
        text=True,
    )
    os.close(writer)
    assert done.returncode == 1 and "standard output: Broken pipe" in done.stderr, done.stderr


@case
def defaults():
    """Without arguments: flame.html and profile.pb.gz of the whole machine."""
    need_root()
    with Background(WORKLOAD, "60"):
        andiron("record", "-d", "1s").expect(
            0, "wrote flame.html", "wrote profile.pb.gz", "next: andiron report profile.pb.gz"
        )
    assert {"flame.html", "profile.pb.gz"} <= set(os.listdir())
    andiron("report", "profile.pb.gz").expect(0, "workload_70")
    named = andiron("record", "-d", "100ms", "-o", "n.pb.gz").expect(0, "wrote n.pb.gz")
    assert "next:" not in named.err, named.err


@case
def interrupt_writes():
    """Ctrl-C writes what was taken."""
    need_root()
    with Background(WORKLOAD, "60") as worker, Background(
        ANDIRON, "record", "-d", "600s", "-F", "499", "-o", "w.folded"
    ) as recorder:
        recorder.until_says("recording")
        before = cpu_seconds(worker.pid)
        recorder.until(lambda: cpu_seconds(worker.pid) > before + 0.2, "work of the worker")
        recorder.signal(signal.SIGINT)
        recorder.end().expect(0, "wrote w.folded", "samples")
    assert os.path.exists("w.folded")


@case
def interrupt_reaches_the_command():
    """Ctrl-C in a terminal ends the command, too; what was taken is written."""
    need_root()
    with Background(
        ANDIRON,
        "record",
        "-F",
        "499",
        "-o",
        "w.folded",
        "--",
        WORKLOAD,
        "600",
        start_new_session=True,
    ) as recorder:
        recorder.until_says("recording")
        worker = recorder.until(
            lambda: child_named(recorder.pid, "workload"), "the command's start"
        )
        recorder.until(lambda: cpu_seconds(worker) > 0.2, "work of the command")
        os.killpg(recorder.pid, signal.SIGINT)
        recorder.end().expect(128 + signal.SIGINT, "wrote w.folded")
    assert share(folded("w.folded"), "workload_70") > 0.5


@case
def termination_is_passed_on():
    """SIGTERM to the recorder alone ends the command, too."""
    need_root()
    with Background(ANDIRON, "record", "-o", "w.folded", "--", WORKLOAD, "600") as recorder:
        recorder.until_says("recording")
        worker = recorder.until(
            lambda: child_named(recorder.pid, "workload"), "the command's start"
        )
        recorder.signal(signal.SIGTERM)
        recorder.end().expect(128 + signal.SIGTERM, "wrote w.folded")
    assert not os.path.exists(f"/proc/{worker}")


@case
def early_interrupts_run_nothing():
    """Interrupted before sampling began: it ends, and nothing of the command was run."""
    need_root()
    for _ in range(5):
        with Background(ANDIRON, "record", "-o", "w.folded", "--", "touch", "ran") as recorder:
            recorder.until(lambda: blocks(recorder.pid, signal.SIGTERM), "it takes signals itself")
            recorder.signal(signal.SIGTERM)
            r = recorder.end()
        if r.code == 125:
            r.expect(125, "nothing is written")
            assert not os.path.exists("ran")
        else:  # it was live already
            assert r.code in (0, 128 + signal.SIGTERM), r.out
            if os.path.exists("ran"):
                os.remove("ran")


@case
def terminals_get_a_bar():
    """On a terminal a bar shows how far it is; without one there is a line."""
    need_root()
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [ANDIRON, "record", "-d", "500ms", "-o", "w.folded"],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=environment(),
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # how a pty says that its other end is closed
            break
        shown += part
    os.close(ours)
    assert done.wait() == 0, shown
    assert b"recording [####" in shown and b"\x1b[K" in shown, shown
    r = andiron("record", "-d", "500ms", "-o", "w.folded").expect(
        0, "recording the whole machine for 0.5 s"
    )
    assert "[#" not in r.err and "\x1b" not in r.err, r.err


@case
def duration_leaves_the_command():
    """-d ends the sampling and leaves the command running to its end."""
    need_root()
    andiron(
        "record",
        "-d",
        "500ms",
        "-o",
        "w.folded",
        "--",
        "sh",
        "-c",
        f"{WORKLOAD} 2; touch finished; exit 7",
    ).expect(7, "waiting for sh to end")
    assert os.path.exists("finished")


@case
def few_samples_are_explained():
    """Under 200 samples: how busy the machine was, and what to do; no cost that idle ticks have
    made."""
    need_root()
    andiron("record", "-F", "11", "-o", "w.folded", "--", "sh", "-c", "true").expect(
        0, "samples:", "% busy", "for more:"
    )
    idle = andiron("record", "-d", "200ms", "-F", "11", "-o", "w.folded").expect(
        0, "samples:", "own cost:"
    )
    assert "of BPF per sample" not in idle.err, idle.err


@case
def files_belong_to_the_caller():
    """Under sudo the command runs as the caller, with their HOME, and files are theirs."""
    need_root()
    user = pwd.getpwnam("nobody")
    os.chmod(".", 0o777)
    env = environment(SUDO_UID=str(user.pw_uid), SUDO_GID=str(user.pw_gid), SUDO_USER="nobody")
    andiron(
        "record",
        "-o",
        "w.folded",
        "--ledger",
        "l.json",
        "--",
        "sh",
        "-c",
        "id -u >who; echo $HOME $USER >>who",
        env=env,
    ).expect(0)
    assert read("who").split() == [str(user.pw_uid), user.pw_dir, "nobody"], read("who")
    for name in ("w.folded", "l.json"):
        assert os.stat(name).st_uid == user.pw_uid, name


@case
def links_are_not_given_away():
    """A link in the place of an output does not give its goal to the caller."""
    need_root()
    write("roots", "root's")
    os.symlink("roots", "w.folded")
    env = environment(SUDO_UID="65534", SUDO_GID="65534")
    os.chmod(".", 0o777)
    andiron("record", "-o", "w.folded", "--", "true", env=env)
    assert os.stat("roots").st_uid == 0 and read("roots") == "root's"


@case
def nothing_stays():
    """After a recording no program, map or child of ours is left."""
    need_root()
    bpftool = "/usr/sbin/bpftool"
    if not os.path.exists(bpftool):
        raise Skip("needs bpftool: apt-get install bpftool")
    before = {p["id"] for p in json.loads(subprocess.check_output([bpftool, "-j", "prog", "list"]))}
    andiron("record", "-o", "w.folded", "--", "true").expect(0)
    after = lambda: {
        p["id"]
        for p in json.loads(subprocess.check_output([bpftool, "-j", "prog", "list"]))
        if "andiron" in json.dumps(p.get("pids", []))
    }
    until(lambda: not after() - before, "the end of our programs")


main()
