#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""debian.py: the packages of packaging/debian, built of this tree, in a fresh Debian.

One machine goes through the life of an installation, so the tests are one after another: an older
version is installed, used, stripped of its plugins, upgraded, removed and purged. The older one
has the same files; its version alone is lower.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scenario"))
from machine import PATIENCE, Machine, call
from ports import free_port
from running import ask
from tap import WORKLOAD, Background, Skip, case, folded, main, need_root, read, share, until, write

TOOLS = {
    "lintian": "lintian",
    "debootstrap": "debootstrap",
    "dh": "debhelper",
    "systemd-nspawn": "systemd-container",
    "dpkg-buildpackage": "dpkg-dev",
}
TREE = HERE.parent.parent
CONFIG = "/etc/andiron/config.alloy"
OLDER = "0.0.9"
SIX = ("bpf", "perfmon", "sys_ptrace", "syslog", "checkpoint_restore", "dac_read_search")
KEPT = sum(1 << n for n in (39, 38, 19, 40, 2))  # all but syslog, which opens a list at start
READS = 1 << 2
# An agent that samples nothing: the machine's processes are not the kernel's.
WRITER = """pyroscope.write "server" {
  endpoint {
    url = "http://127.0.0.1:9"
  }

  spool {
    directory = "/var/lib/andiron/pyroscope"
  }
}
"""
SAMPLER = """pyroscope.ebpf "host" {{
  forward_to       = [profile.file.out.receiver]
  targets_only     = false
  default_target   = {{"service_name" = "host"}}
  sample_rate      = 97
  collect_interval = "1s"
}}

profile.file "out" {{
  paths = ["{folder}/out.folded"]
}}
"""
# Its values as files.
COLLECTD = """BaseDir "/root"
FQDNLookup false
PIDFile "/root/collectd.pid"
Interval 1
LoadPlugin logfile
<Plugin logfile>
  File "/root/collectd.log"
</Plugin>
LoadPlugin csv
<Plugin csv>
  DataDir "/root/csv"
</Plugin>
"""


class World:
    """What the tests hand on to each other."""

    folder = machine = empty = version = None
    packages = {}  # name: its file


def built():
    if not World.packages:
        raise AssertionError("there are no packages: see the first test")
    return World.packages


def installed():
    if not World.empty:
        raise AssertionError("there is no machine with packages: see the test that installs them")
    return World.machine


def field(package, name):
    return call("dpkg-deb", "-f", package, name).strip()


def service(machine, what):
    return machine.ask("systemctl", "show", "--property", what, "--value", "andiron.service")


def running(machine):
    until(lambda: service(machine, "SubState") == "running", "the service's start")
    return service(machine, "MainPID")


def older(package, folder):
    """The same package under a lower version."""
    parts = tempfile.mkdtemp(dir=folder)
    call("dpkg-deb", "-R", package, parts)
    control = pathlib.Path(parts, "DEBIAN/control")
    control.write_text(
        control.read_text(encoding="utf-8").replace(World.version, OLDER), encoding="utf-8"
    )
    made = f"{folder}/{package.name.replace(World.version, OLDER)}"
    call("dpkg-deb", "--root-owner-group", "-b", parts, made)
    shutil.rmtree(parts)


@case
def needs_what_the_tree_needs():
    """What the packages are built with is what packaging/packages says."""
    listed = re.findall("^build: (.*)$", (TREE / "packaging/packages").read_text("utf-8"), re.M)
    control = (TREE / "packaging/debian/control").read_text("utf-8")
    (wanted,) = re.findall(r"^Build-Depends:\n((?: .*\n)+)", control, re.M)
    wanted = set(re.sub(r"\([^)]*\)|,", " ", wanted).split())
    # A compiler is there wherever packages are built, and Python is where meson is. collectd's
    # module is built where collectd's headers are.
    needs = {name for line in listed for name in line.split()}
    more = {"collectd-dev", "debhelper-compat", "python3"}
    assert wanted - more == needs - {"gcc"}, wanted ^ needs


@case
def lintian_is_content():
    """The packages are built, and lintian finds nothing to say against them."""
    need_root()
    for tool, package in TOOLS.items():
        if not shutil.which(tool):
            raise Skip(f"{tool} is missing; install {package}")
    out = f"{World.folder}/packages"
    call(TREE / "packaging/debian/build", out, env={**os.environ, "JOBS": str(os.cpu_count())})
    (changes,) = pathlib.Path(out).glob("*.changes")
    said = call(
        "lintian", "--allow-root", "--display-info", "--fail-on", "error,warning,info", changes
    )
    assert not re.search(r"^[EWI]: ", said, re.M), said
    World.packages = {p.name.split("_")[0]: p for p in pathlib.Path(out).glob("*.deb")}
    World.version = field(World.packages["andiron"], "Version")


@case
def fresh_machine_takes_them():
    """In a fresh Debian the packages install, and nothing runs before there is a configuration."""
    needs = set()
    for package in built().values():
        for one in field(package, "Depends").split(","):
            needs.add(re.split(r"[ :(|]", one.strip())[0])
    needs = sorted(n for n in needs if n and n not in World.packages)
    machine = Machine(f"{World.folder}/root", ["systemd-sysv", *needs])
    os.makedirs(f"{machine.root}/root/older")
    for package in World.packages.values():
        shutil.copy(package, f"{machine.root}/root")
        older(package, f"{machine.root}/root/older")
    World.machine = machine
    machine.boot()
    World.empty = machine.files()
    machine.run("sh", "-c", "dpkg -i /root/older/*.deb")
    assert machine.run("andiron", "--version").startswith("andiron "), "no version"
    for example in ("host-pyroscope", "kubernetes-parca"):
        path = f"/usr/share/doc/andiron/examples/{example}.alloy"
        assert "valid" in machine.run("env", "POD_IP=127.0.0.1", "andiron", "validate", path)
    for path in (
        "/usr/share/man/man1/andiron-run.1.gz",
        "/usr/share/man/man5/andiron.conf.5.gz",
        "/usr/share/bash-completion/completions/andiron",
        "/usr/share/zsh/vendor-completions/_andiron",
        "/usr/share/fish/vendor_completions.d/andiron.fish",
        "/usr/include/andiron/plugin.h",
    ):
        machine.run("test", "-s", path)
    assert machine.ask("systemctl", "is-enabled", "andiron") == "enabled"
    assert service(machine, "ActiveState") == "inactive", "it runs without a configuration"


@case
def programs_load_it():
    """Python has the binding, Fluent Bit's plugins find their libraries, and collectd reads the
    example's options and gets values."""
    machine = installed()
    said = machine.run("python3", "-c", "import andiron; print(andiron.version())")
    assert World.version.startswith(said.strip()), said
    machine.run(
        "python3", "-c",
        "import ctypes, glob\n"
        "for name in 'in', 'out':\n"
        "    (path,) = glob.glob(f'/usr/lib/*/fluent-bit/{name}_andiron.so')\n"
        "    ctypes.CDLL(path).FLBPluginRegister",
    )  # fmt: skip
    example = read(f"{machine.root}/usr/share/doc/andiron-collectd/examples/collectd.conf")
    options = re.sub(r"^#(<|\t)", r"\1", example, flags=re.M).replace("/etc/andiron", "/root")
    assert options.count("\n\tConfig ") == 1, options
    files = {"alloy": 'embed.profiles "collectd" {}\n', "conf": COLLECTD + options}
    for name, text in files.items():
        pathlib.Path(f"{machine.root}/root/collectd.{name}").write_text(text, encoding="utf-8")
    machine.run("collectd", "-C", "/root/collectd.conf")
    values = "cat /root/csv/*/andiron/total_time_in_ms-own_threads-*"
    try:
        until(
            lambda: machine.ask("sh", "-c", values),
            lambda: "values in collectd: " + machine.ask("cat", "/root/collectd.log"),
        )
    finally:
        machine.run("sh", "-c", "kill $(cat /root/collectd.pid)")


@case
def service_is_nobody():
    """systemd runs the agent as a user without a name, with at most six capabilities and filters,
    and finds little to say against both services.

    This one only delivers, so it keeps but what a reload needs to read a file of root's alone."""
    machine = installed()
    path = pathlib.Path(f"{machine.root}{CONFIG}")
    path.write_text(WRITER, encoding="utf-8")
    path.chmod(0o600)  # root's alone, as a file with credentials is
    machine.run("systemctl", "start", "andiron")
    pid = running(machine)
    for unit, tenths in (("andiron", 25), ("andiron-gateway", 15)):
        machine.run("systemd-analyze", "security", f"--threshold={tenths}", f"{unit}.service")
    for limit in ("CapabilityBoundingSet", "AmbientCapabilities"):
        assert set(service(machine, limit).split()) == {f"cap_{name}" for name in SIX}, limit
    socket = f"/proc/{machine.first}/root/run/andiron/status"
    until(lambda: os.path.exists(socket), "its socket")
    status = dict(
        line.split(":\t", 1) for line in machine.run("cat", f"/proc/{pid}/status").splitlines()
    )
    users = set(status["Uid"].split())
    assert len(users) == 1 and 61184 <= int(users.pop()) <= 65519, status["Uid"]
    for kind, kept in (("CapEff", READS), ("CapPrm", READS), ("CapAmb", 0)):
        assert int(status[kind], 16) == kept, (kind, status[kind])
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), status
    assert '"healthy": true' in ask(socket, "/health")[1]
    machine.run("test", "-d", "/var/lib/private/andiron/pyroscope")


@case
def reload_is_checked():
    """A configuration with an error is refused before a reload and a start; a good one is taken.
    A reload fails, too, where only the agent that runs can refuse."""
    machine = installed()
    path, pid = pathlib.Path(f"{machine.root}{CONFIG}"), running(machine)
    path.write_text(WRITER + "broken\n", encoding="utf-8")
    machine.refused("systemctl", "reload", "andiron")
    assert running(machine) == pid, "the agent that ran is gone"
    path.write_text(WRITER.replace(":9", ":10"), encoding="utf-8")
    machine.run("systemctl", "reload", "andiron")
    until(
        lambda: "andiron: reloaded" in machine.ask("journalctl", "-u", "andiron", "-o", "cat"),
        "the reload",
    )
    assert running(machine) == pid, "a reload began another agent"
    path.write_text(WRITER + SAMPLER.format(folder="/var/lib/andiron"), encoding="utf-8")
    machine.refused("systemctl", "reload", "andiron")
    said = machine.ask("journalctl", "-u", "andiron", "-o", "cat")
    assert "given up at start" in said and "andiron reload: not reloaded" in said, said
    assert running(machine) == pid, "the agent that ran is gone"
    path.write_text(WRITER + "broken\n", encoding="utf-8")
    machine.run("systemctl", "stop", "andiron")
    machine.refused("systemctl", "start", "andiron")
    assert "config.alloy:10:7" in machine.ask("journalctl", "-u", "andiron", "-o", "cat")
    path.write_text(WRITER, encoding="utf-8")
    machine.run("systemctl", "restart", "andiron")
    running(machine)


@case
def gateway_passes_on():
    """The gateway's service has no capability, and takes profiles, which wait for the server. A
    file of root's alone it may not read, and says so; a secret that systemd hands it it reads, also
    at a reload, where the configuration names it by the service's own environment."""
    machine, unit, port = installed(), "andiron-gateway", free_port()
    path, secret = (
        pathlib.Path(f"{machine.root}/etc/andiron/{n}") for n in ("gateway.alloy", "key")
    )
    assert machine.ask("systemctl", "is-active", unit) == "inactive"
    example = read(f"{machine.root}/usr/share/doc/andiron/examples/gateway-pyroscope.alloy")
    for old, new in (
        ("0.0.0.0", "127.0.0.1"),
        ("= 4041", f"= {port}"),
        ("pyroscope:4040", "127.0.0.1:9"),
    ):
        assert old in example, old
        example = example.replace(old, new)
    secretive = re.sub("// bearer_token_file = .*", "bearer_token = local.file.t.content", example)
    secretive += """local.file "t" {
  filename  = sys.env("CREDENTIALS_DIRECTORY") + "/token"
  is_secret = true
}
"""
    path.write_text(secretive, encoding="utf-8")
    for one in (path, secret):
        one.touch()
        one.chmod(0o600)
    secret.write_text("secret", encoding="utf-8")
    machine.refused("systemctl", "start", unit)
    assert "Permission denied" in machine.ask("journalctl", "-u", unit, "-o", "cat")
    path.chmod(0o644)
    dropin = f"/run/systemd/system/{unit}.service.d"
    machine.run("mkdir", dropin)
    more = "[Service]\nLoadCredential=token:/etc/andiron/key\n"
    machine.run("sh", "-c", f"printf '{more}' >{dropin}/key.conf; systemctl daemon-reload")
    machine.run("systemctl", "restart", unit)
    machine.run("systemctl", "reload", unit)
    path.write_text(secretive + "broken\n", encoding="utf-8")
    machine.refused("systemctl", "reload", unit)
    assert f"gateway.alloy:{secretive.count(chr(10)) + 1}:" in machine.ask(
        "journalctl", "-u", unit, "-o", "cat"
    )
    path.write_text(secretive, encoding="utf-8")
    pid = machine.ask("systemctl", "show", "--property", "MainPID", "--value", unit)
    status = dict(
        line.split(":\t", 1) for line in machine.run("cat", f"/proc/{pid}/status").splitlines()
    )
    assert not any(int(status[kind], 16) for kind in ("CapEff", "CapPrm", "CapBnd")), status
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), status
    # The machine has this one's network.
    pushed = urllib.request.Request(f"http://127.0.0.1:{port}/ingest?name=shop&format=folded")
    assert urllib.request.urlopen(pushed, b"main;work 7\n").status == 200
    socket = f"/proc/{machine.first}/root/run/{unit}/status"
    waits = "connection refused by 127.0.0.1:9"  # and not: there is no token
    until(lambda: waits in ask(socket, "/health")[1], "that it has tried to send")
    assert machine.run("ls", f"/var/lib/private/{unit}/pyroscope"), "nothing waits for the server"
    machine.run("systemctl", "stop", unit)
    machine.run("sh", "-c", f"rm -r {dropin}; systemctl daemon-reload")
    secret.unlink()
    path.write_text(example, encoding="utf-8")


def cpu_seconds(pid):
    """That a process has taken of a processor."""
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@case
def samples_behind_filters():
    """Behind the filters that systemd made of the unit, without root's id, the agent samples, and
    keeps five of its capabilities."""
    machine = installed()
    inside = running(machine)
    outside = next(
        status.parent.name
        for status in pathlib.Path("/proc").glob("[0-9]*/status")
        if re.search(rf"^NSpid:\t\d+\t{inside}$", status.read_text(errors="replace"), re.M)
        and os.readlink(status.parent / "ns/pid") == os.readlink(f"/proc/{machine.first}/ns/pid")
    )
    folder = os.getcwd()
    shutil.copy(HERE / "filters.py", folder)
    n = int(call("python3", "filters.py", "take", outside, "filters"))
    assert n > 5, f"{n} filters"
    write("config.alloy", SAMPLER.format(folder=folder))
    user, names = "61184", ",".join(f"+{name}" for name in SIX)
    os.chown(folder, int(user), int(user))
    plugins = next(pathlib.Path(f"{machine.root}/usr/lib").glob("*/andiron"))
    caps = [f"--{kind}=-all,{names}" for kind in ("inh-caps", "ambient-caps", "bounding-set")]
    wrapped = ["setpriv", "--no-new-privs", f"--reuid={user}", f"--regid={user}"]
    wrapped += ["--clear-groups", *caps, "python3", "filters.py", "wear", "filters"]
    hidden = "for d in /tmp /home /root; do mount -t tmpfs tmpfs $d; done; "
    hidden += "mount -t proc -o hidepid=ptraceable proc /proc; exec \"$@\""
    with Background(WORKLOAD, "300") as work, Background(
        "unshare", "-m", "sh", "-ec", hidden, "sh", *wrapped,
        f"{machine.root}/usr/bin/andiron", "run", "--plugin-dir", str(plugins),
        "--status", "status", "config.alloy",
    ) as agent:  # fmt: skip
        agent.until_says("sampling has begun")
        kept = re.search(r"^CapPrm:\t(\w+)", read(f"/proc/{agent.pid}/status"), re.M)
        assert int(kept[1], 16) == KEPT, kept[1]
        before = cpu_seconds(work.pid)
        agent.until(lambda: cpu_seconds(work.pid) >= before + 2, "194 samples of the workload")
        agent.signal(15)
        text = agent.end().expect(0).out
    for bad in (" warn ", " error ", "andiron worker:"):
        assert bad not in text, text
    stacks = folded("out.folded")
    own = {frames: n for frames, n in stacks.items() if "work_for" in frames}
    assert sum(own.values()) > 100, stacks
    assert share(own, "workload_70") > 0.5, own  # of the workload's time, whatever else runs here
    assert share(stacks, "do_syscall_64") or share(stacks, "[k]"), "no name of the kernel's"


@case
def plugin_can_be_left_out():
    """Each plugin's package can be removed alone; the command then says what is not there."""
    machine = installed()
    before = running(machine)
    machine.run("dpkg", "-r", "andiron-plugin-v8")
    until(lambda: running(machine) != before, "a restart without the plugin")
    machine.run("sh", "-c", "dpkg -i /root/older/andiron-plugin-v8_*.deb")
    machine.run("systemctl", "stop", "andiron")
    components = {}
    for plugin in json.loads(machine.run("andiron", "plugins", "--json")):
        owner = machine.run("dpkg", "-S", plugin["path"]).split(":")[0]
        components[owner] = [c["name"] for c in plugin["components"]]
    assert set(components) == {p for p in World.packages if "-plugin-" in p}, components
    for package, names in components.items():
        machine.run("dpkg", "-r", package)
        for name in names:
            assert f'"{name}"' in machine.refused("andiron", "plugins", name), name
        machine.run("sh", "-c", f"dpkg -i /root/older/{package}_*.deb")
    machine.run("dpkg", "-r", "andiron-plugin-pyroscope")
    said = machine.refused("andiron", "validate", CONFIG)
    assert 'there is no component "pyroscope.write"' in said, said
    machine.run("sh", "-c", "dpkg -i /root/older/andiron-plugin-pyroscope_*.deb")
    machine.run("systemctl", "reset-failed", "andiron")  # and how often it was started
    machine.run("systemctl", "start", "andiron")
    running(machine)


@case
def program_is_linked():
    """A program is built by what andiron-dev has alone, and runs with libandiron1."""
    root = installed().root
    write(
        "agent.c",
        """#include <andiron/embed.h>
#include <stdio.h>
int main(void) { return puts(andiron_version()) < 0; }
""",
    )
    (folder,) = pathlib.Path(f"{root}/usr/lib").glob("*/pkgconfig")
    words = call(
        "pkg-config", "--cflags", "--libs", "andiron",
        env={**os.environ, "PKG_CONFIG_LIBDIR": str(folder), "PKG_CONFIG_SYSROOT_DIR": str(root),
             "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1", "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1"},
    )  # fmt: skip
    call("gcc", "agent.c", "-o", f"{root}/root/agent", *words.split())
    assert World.version.startswith(World.machine.run("/root/agent").strip())


@case
def upgrade_goes_on():
    """An upgrade takes the place of the lower version, and the service goes on with its own."""
    machine = installed()
    before = running(machine)
    machine.run("sh", "-c", "dpkg -i /root/*.deb")
    shown = machine.run("dpkg-query", "-W", "-f", "${Version}\n", "andiron*").split()
    assert set(shown) == {World.version}, shown
    until(lambda: running(machine) != before, "a restart")
    assert read(f"{machine.root}{CONFIG}") == WRITER
    machine.run("test", "-d", "/var/lib/private/andiron/pyroscope")


@case
def purge_leaves_nothing():
    """Removed, the service has ended and its data stay; purged, nothing is left, also of what its
    variables may have that is secret."""
    machine = installed()
    names = sorted(World.packages)
    machine.run("touch", "/etc/default/andiron", "/etc/default/andiron-gateway")
    machine.run("dpkg", "-r", *names)
    until(lambda: service(machine, "ActiveState") in ("inactive", ""), "the service's end")
    machine.run("test", "-s", CONFIG)
    machine.run("test", "-d", "/var/lib/private/andiron/pyroscope")
    machine.run("dpkg", "-P", *names)
    left = machine.files() - World.empty
    assert not left, sorted(left)
    of_it = machine.run("find", "/var", "/run", "-name", "*andiron*").split()
    assert not of_it, of_it


if __name__ == "__main__":
    tempfile.tempdir = "/var/tmp"  # /tmp is hidden from the agent
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that the machine ends
    with tempfile.TemporaryDirectory(prefix="packages-") as World.folder:
        os.chmod(World.folder, 0o755)  # what is installed can be read by all, also by the parser
        try:
            main(PATIENCE)
        finally:
            if World.machine:
                World.machine.end()
