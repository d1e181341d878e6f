#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Machines that are not as they should be: one clear message, nothing left behind."""

import glob
import json
import os
import resource
import shutil
import tempfile

from tap import (
    ANDIRON,
    SIX,
    WORKLOAD,
    Background,
    Skip,
    andiron,
    case,
    environment,
    folded,
    main,
    need,
    need_root,
    read,
    run,
    share,
    with_capabilities,
    write,
)


class OpenToAll:
    """A copy of the command and its plugins: the home that they lie in may be closed to others."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="scenario-copy-")
        plugins = (
            p
            for d in os.environ["ANDIRON_PLUGIN_PATH"].split(":")
            for p in glob.glob(f"{d}/andiron-*.so")
        )
        for path in (ANDIRON, *plugins):
            shutil.copy(path, self.folder)
        os.chmod(self.folder, 0o755)
        return f"{self.folder}/{os.path.basename(ANDIRON)}", environment(
            ANDIRON_PLUGIN_PATH=self.folder
        )

    def __exit__(self, *_):
        shutil.rmtree(self.folder)


@case
def doctor():
    """Where all is well `doctor` says so, for people and as JSON."""
    need_root()
    andiron("doctor").expect(0, "Sampling will work", "capabilities", "kernel")
    found = json.loads(andiron("doctor", "--json").expect(0).out)
    assert found["can_sample"] is True
    assert all(p["state"] in ("ok", "note") for p in found["points"]), found


@case
def doctor_asks_the_kernel():
    """Which walker there is follows from what the kernel has, not from its number: with types that
    tell of no task work there is none."""
    need_root()
    types, name = "/sys/kernel/btf/vmlinux", b"bpf_task_work_schedule_resume"
    with open(types, "rb") as real, open("types", "wb") as other:
        text = real.read()
        other.write(text.replace(name, name.replace(b"bpf", b"not")))

    def says(*command):
        found = json.loads(run(*command, "doctor", "--json").expect(0).out)
        return next(p["text"] for p in found["points"] if p["name"] == "walker")

    assert ("task work" in says(ANDIRON)) == (name in text), says(ANDIRON)
    without = says(
        need("unshare", "util-linux"),
        "-m",
        "sh",
        "-c",
        f'mount --bind types {types} && exec "$0" "$@"',
        ANDIRON,
    )
    assert "frames" in without and "task work" not in without, without


@case
def not_root():
    """Without root: one message with the command to paste; nothing is run."""
    need_root()
    setpriv = need("setpriv", "util-linux")
    os.chmod(".", 0o777)
    with OpenToAll() as (command, env):

        def nobody(*arguments):
            return run(
                setpriv,
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                command,
                *arguments,
                env=env,
            )

        r = nobody("record", "-o", "x.folded", "--", "touch", "it's run").expect(
            125, "not root", "sudo ", "'it'\\''s run'"
        )
        assert r.err.count("cannot sample") == 1 and os.listdir() == [], r.err
        nobody("doctor").expect(1, "CAP_BPF", "to fix:")
        write(
            "c.alloy",
            'pyroscope.ebpf "n" {\n  forward_to = [profile.file.o.receiver]\n}\n'
            'profile.file "o" {\n  paths = ["x.folded"]\n}\n',
        )
        nobody("validate", "c.alloy").expect(0)
        nobody("run", "c.alloy").expect(1, "not root", "sudo ")


@case
def six_capabilities_are_enough():
    """The six capabilities are enough: no CAP_SYS_ADMIN, no CAP_SYS_RESOURCE, 8 MB of locked
    memory."""
    need_root()
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (8 << 20, limit[1]))
    try:
        with_capabilities(
            SIX, ANDIRON, "record", "-F", "199", "-o", "w.folded", "--", WORKLOAD, "6"
        ).expect(0, "wrote")
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, limit)
    assert share(folded("w.folded"), "workload_70") > 0.5


@case
def other_pid_namespace():
    """In another PID namespace: refused, with the cause and the fix."""
    need_root()
    unshare = need("unshare", "util-linux")
    r = run(unshare, "--pid", "--fork", "--mount-proc", ANDIRON, "record", "-o", "x.folded")
    r.expect(1, "host's PID namespace", "--pid=host")
    run(unshare, "--pid", "--fork", "--mount-proc", ANDIRON, "record", "--", "touch", "ran").expect(
        125, "PID namespace"
    )
    assert os.listdir() == []


@case
def hidden_kernel_names():
    """kptr_restrict=2 is noted, and recording goes on without kernel names."""
    need_root()
    path = "/proc/sys/kernel/kptr_restrict"
    before = read(path)
    if not os.access(path, os.W_OK):
        raise Skip("needs a writable /proc/sys/kernel/kptr_restrict")
    try:
        write(path, "2")
        andiron("record", "-F", "499", "-o", "w.folded", "--", WORKLOAD, "4").expect(
            0, "kptr_restrict is 2", "kernel.kptr_restrict=1"
        )
        andiron("doctor").expect(0, "kptr_restrict is 2")
    finally:
        write(path, before)
    assert share(folded("w.folded"), "workload_70") > 0.5


@case
def without_btf():
    """A kernel that does not describe its types is refused by name."""
    need_root()
    unshare = need("unshare", "util-linux")
    if not os.path.exists("/sys/kernel/btf"):
        raise Skip("needs a kernel with BTF to hide")
    hide = f"mount -t tmpfs none /sys/kernel/btf && exec '{ANDIRON}' record -o x.folded"
    run(unshare, "--mount", "sh", "-c", hide).expect(
        1, "/sys/kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF"
    )


@case
def disk_full():
    """A disk that fills up is a failure that names the file, and the old file stays."""
    need_root()
    os.mkdir("small")
    if run("mount", "-t", "tmpfs", "-o", "size=64k", "none", "small").code != 0:
        raise Skip("needs to mount a tmpfs")
    try:
        write("small/w.html", "old")
        write("small/fill", "x" * (40 << 10))
        r = andiron("record", "-a", "-d", "500ms", "-F", "499", "-o", "small/w.html")
        assert r.code == 1 and "w.html" in r.err, (r.code, r.err)
        assert read("small/w.html") == "old"
    finally:
        run("umount", "small")


main()
