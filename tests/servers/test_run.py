#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent, sampling for real and pushing to a Pyroscope server.

The equation of every test: what SelectMergeProfile gives back is, to the
sample, what the ledger says was delivered.

ANDIRON and WORKLOAD are the command and something to sample.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import uuid

from agent import ANDIRON, Agent, status
from parca import Parca
from pyroscope import Pyroscope, Skip, free_ports, run

RATE = 100  # its period is a whole number of nanoseconds
PERIOD = 10**9 // RATE

CONFIG = """
pyroscope.ebpf "node" {{
  forward_to       = [pyroscope.write.server.receiver]
  targets_only     = false
  default_target   = {{"service_name" = "{name}"}}
  sample_rate      = {rate}
  collect_interval = "1s"
}}

pyroscope.write "server" {{
  endpoint {{
    url                = "{url}"
    min_backoff_period = "100ms"
    max_backoff_period = "500ms"
  }}
  external_labels = {{"node" = "test"}}
}}
"""


def samples(server, name):
    return server.total(f'{{service_name="{name}"}}')


def to_the_sample():
    """A run's total at the server is the ledger's, and nothing that was taken is missing."""
    name = f"e{uuid.uuid4().hex}"
    with tempfile.TemporaryDirectory() as folder, Pyroscope() as server:
        config = f"{folder}/config.alloy"
        pathlib.Path(config).write_text(
            CONFIG.format(name=name, rate=RATE, url=server.url), encoding="utf-8"
        )
        with Agent(folder, config) as agent:
            agent.until(lambda: samples(server, name) >= 300 * PERIOD, "300 samples at the server")
            ledger = agent.stop()
        writer = ledger["writers"]["pyroscope.write.server"]
        assert samples(server, name) == writer["delivered"] * PERIOD, (
            samples(server, name),
            ledger,
        )
        assert writer["delivered"] == ledger["taken"] and not writer["dropped"], ledger
        labels = server.series(f'{{service_name="{name}"}}')
        assert [one["node"] for one in labels] == ["test"], labels


def parca_example():
    """packaging/examples/host-parca.alloy, with another URL and folder: Parca's total is the
    ledger's."""
    text = (pathlib.Path(__file__).parents[2] / "packaging/examples/host-parca.alloy").read_text(
        encoding="utf-8"
    )
    name = f"e{uuid.uuid4().hex}"
    with tempfile.TemporaryDirectory() as folder, Parca() as server:
        for old, new in (
            ("http://parca:7070", server.url),
            ("/var/lib/andiron/parca", f"{folder}/spool"),
            ('"host"}', f'"{name}"}}'),
            ("= 97 ", f"= {RATE} "),
        ):
            assert old in text, old
            text = text.replace(old, new)
        pathlib.Path(f"{folder}/config.alloy").write_text(
            text.replace("sample_rate ", 'collect_interval = "1s"\n  sample_rate '),
            encoding="utf-8",
        )
        with Agent(folder, f"{folder}/config.alloy") as agent:
            agent.until(lambda: samples(server, name) >= 300 * PERIOD, "300 samples at the server")
            ledger = agent.stop()
        writer = ledger["writers"]["parca.write.server"]
        assert samples(server, name) == writer["delivered"] * PERIOD, (
            samples(server, name),
            ledger,
        )
        assert writer["delivered"] == ledger["taken"] and not writer["dropped"], ledger


# What a process without root's id keeps over exec, and what it can never have more than.
KINDS = ("inh-caps", "ambient-caps", "bounding-set")
# In tenths, of ten, by systemd's own weights.
EXPOSURE = {"andiron.service": 25, "andiron-gateway.service": 15}


def service_unit():
    """packaging/systemd/andiron.service: its commands run, as a user without a name, with its
    capabilities alone and the example's spool."""
    if not shutil.which("setpriv"):
        raise Skip("setpriv is missing; install util-linux")
    root = pathlib.Path(__file__).parents[2]
    unit = [
        line.split("=", 1)
        for line in (root / "packaging/systemd/andiron.service")
        .read_text(encoding="utf-8")
        .splitlines()
        if "=" in line and not line.startswith("#")
    ]
    name = f"e{uuid.uuid4().hex}"
    with tempfile.TemporaryDirectory() as folder, Pyroscope() as server:
        config = f"{folder}/config.alloy"
        text = (root / "packaging/examples/host-pyroscope.alloy").read_text(encoding="utf-8")
        for old, new in (
            ("http://pyroscope:4040", server.url),
            ("/var/lib/andiron/pyroscope", f"{folder}/spool"),
            ('"host"}', f'"{name}"}}'),
            ("= 97 ", f"= {RATE} "),
        ):
            assert old in text, old
            text = text.replace(old, new)
        pathlib.Path(config).write_text(
            text.replace("sample_rate ", 'collect_interval = "1s"\n  sample_rate '),
            encoding="utf-8",
        )

        def command(key):
            line = next(value for k, value in unit if k == key)
            for old, new in (
                ("/usr/bin/andiron", ANDIRON),
                ("/etc/andiron/config.alloy", config),
                ("/run/andiron", folder),
            ):
                line = line.replace(old, new)
            return line.split()

        wanted = (
            next(value for k, value in unit if k == "CapabilityBoundingSet")
            .lower()
            .replace("cap_", "+")
            .split()
        )
        assert ["DynamicUser", "yes"] in unit
        user = 61184  # the first that systemd gives to such services
        os.chown(folder, user, user)
        limits = ["setpriv", "--no-new-privs", f"--reuid={user}", f"--regid={user}"]
        limits += ["--clear-groups", *(f"--{kind}=-all,{','.join(wanted)}" for kind in KINDS)]
        subprocess.run([*limits, *command("ExecStartPre")], check=True, capture_output=True)
        with Agent(
            folder, config, [*limits, *command("ExecStart")[:-1], "--ledger", f"{folder}/ledger"]
        ) as agent:
            agent.until(lambda: samples(server, name) >= 100 * PERIOD, "100 samples at the server")
            ledger = agent.stop()
        assert (
            samples(server, name)
            == ledger["writers"]["pyroscope.write.server"]["delivered"] * PERIOD
        ), ledger


def units():
    """(name, text) of each unit."""
    if not shutil.which("systemd-analyze"):
        raise Skip("systemd-analyze is missing; install systemd")
    folder = pathlib.Path(__file__).parents[2] / "packaging/systemd"
    found = [(unit.name, unit.read_text(encoding="utf-8")) for unit in folder.iterdir()]
    assert {name for name, _ in found} == set(EXPOSURE), found
    return found


def judged(name, text, *words):
    """What systemd-analyze makes of a unit of this text."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, name)
        path.write_text(text.replace("/usr/bin/andiron", ANDIRON), encoding="utf-8")
        return subprocess.run(
            ["systemd-analyze", *words, path], capture_output=True, text=True, check=False
        )


def unit_is_valid():
    """systemd itself finds nothing to say against the units of packaging/systemd."""
    for name, unit in units():
        assert "/usr/bin/andiron" in unit
        done = judged(name, unit, "verify", "--man=no")
        assert done.returncode == 0 and name not in done.stderr, done.stderr
        # It does judge: what it does not know it says.
        wrong = unit.replace("ProtectClock=yes", "ProtectClocks=yes")
        assert "ProtectClocks" in judged(name, wrong, "verify", "--man=no").stderr, name


def unit_exposure():
    """What systemd finds exposed is at most 2.5 of 10 where processes are sampled, and 1.5 where
    profiles are passed on."""
    for name, unit in units():
        words = ["security", "--offline=true", f"--threshold={EXPOSURE[name]}"]
        done = judged(name, unit, *words)
        print("#", next(line for line in done.stdout.splitlines() if "Overall" in line).strip("→ "))
        assert done.returncode == 0, done.stdout
        looser = re.sub("^(Private|Protect).*\n", "", unit, flags=re.M)
        assert judged(name, looser, *words).returncode != 0, "it judges nothing"


def late_server():
    """A server that comes up late gets all; meanwhile the writer is unhealthy and says why."""
    if os.environ.get("ANDIRON_PYROSCOPE"):
        raise Skip("a server that is there cannot come up late; unset ANDIRON_PYROSCOPE")
    name, port = f"e{uuid.uuid4().hex}", free_ports(1)[0]
    cause = f"connection refused by 127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        config = f"{folder}/config.alloy"
        url = f"http://127.0.0.1:{port}"
        pathlib.Path(config).write_text(
            CONFIG.format(name=name, rate=RATE, url=url), encoding="utf-8"
        )
        with Agent(folder, config) as agent:
            agent.until(lambda: cause in status(folder, "/health"), "cause in the health")
            with Pyroscope("--listen", f"127.0.0.1:{port}") as server:
                agent.until(
                    lambda: samples(server, name) >= 300 * PERIOD, "300 samples at the server"
                )
                ledger = agent.stop()
                assert samples(server, name) == ledger["taken"] * PERIOD, ledger


BOTH = """
pyroscope.ebpf "node" {{
  forward_to       = [pyroscope.write.server.receiver, parca.write.server.receiver]
  targets          = [{{"__process_pid__" = "{pid}", "service_name" = "{name}"}}]
  sample_rate      = 199
  collect_interval = "1s"
}}

pyroscope.write "server" {{
  endpoint {{ url = "{pyroscope}" }}
}}

parca.write "server" {{
  endpoint {{ url = "{parca}" }}
}}
"""

SPIN = """
static volatile unsigned long sink;
__attribute__((noipa)) unsigned long spin(unsigned long n)
{
	unsigned long x = n;
	while (n--)
		x = x * 2654435761u ^ x >> 7;
	return x;
}
int main(void)
{
	for (;;)
		sink += spin(100000);
}
"""


def build_spinner(folder):
    """A program without symbols, its debug file beside it: its build id, and where its hot
    function begins."""
    program = f"{folder}/spinner"
    pathlib.Path(f"{folder}/spin.c").write_text(SPIN, encoding="utf-8")
    for command in (
        ["gcc", "-O2", "-g", "-Wl,--build-id", "-o", program, f"{folder}/spin.c"],
        ["objcopy", "--only-keep-debug", program, f"{folder}/debug"],
        ["strip", program],
    ):
        subprocess.run(command, check=True)
    symbols = subprocess.run(
        ["nm", f"{folder}/debug"], check=True, capture_output=True, text=True
    ).stdout
    notes = subprocess.run(
        ["readelf", "-n", program], check=True, capture_output=True, text=True
    ).stdout
    return re.search(r"Build ID: (\w+)", notes)[1], int(
        re.search(r"^(\w+) T spin$", symbols, re.MULTILINE)[1], 16
    )


def unnamed_frames():
    """Of one function without a name Pyroscope shows one box; Parca gets build id and addresses,
    and names them once it has the debug file."""
    name = f"e{uuid.uuid4().hex}"
    selector = f'{{service_name="{name}"}}'
    with tempfile.TemporaryDirectory() as folder, Pyroscope() as pyroscope, Parca() as parca:
        build_id, start = build_spinner(folder)
        spinner = subprocess.Popen([f"{folder}/spinner"])
        text = BOTH.format(name=name, pid=spinner.pid, pyroscope=pyroscope.url, parca=parca.url)
        try:
            pathlib.Path(f"{folder}/config").write_text(text, encoding="utf-8")
            with Agent(folder, f"{folder}/config") as agent:
                agent.until(
                    lambda: min(samples(pyroscope, name), samples(parca, name)) > 0
                    and spots(parca, selector, build_id, start) > 3,
                    "several places in the hot function at both servers",
                )
                agent.stop()
        finally:
            spinner.kill()
            spinner.wait()
        own = [names for file, _, names in pyroscope.frames(selector) if file.endswith("/spinner")]
        assert [f"[spinner fn {start:#x}]"] in own and all(len(names) == 1 for names in own), own
        assert sum("fn" not in names[0] for names in own) == 0, own
        before = {
            address: names
            for (_, found, address), names in parca.frames(selector).items()
            if found == build_id
        }
        assert not any(before.values()), before
        parca.give_debug_file(build_id, f"{folder}/debug")
        after = {
            address: names
            for (_, found, address), names in parca.frames(selector).items()
            if found == build_id
        }
        hot = [address for address in before if start <= address < start + 64]
        assert hot and all(after[address][-1:] == ["spin"] for address in hot), (start, after)


def spots(parca, selector, build_id, start):
    return sum(
        found == build_id and start <= address < start + 64 and not names
        for (_, found, address), names in parca.frames(selector).items()
    )


sys.exit(
    run(
        [
            to_the_sample,
            parca_example,
            service_unit,
            unit_is_valid,
            unit_exposure,
            late_server,
            unnamed_frames,
        ]
    )
)
