#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""andiron.so in Debian's collectd: the real daemon, with a configuration of its own.

MODULE: andiron.so; empty where it was not built
TEST_PLUGINS: the folders of andiron's plugins
ANDIRON: the command, which parses files
WORKLOAD: a program that takes CPU time
"""

import glob
import os
import re
import signal

from tap import ANDIRON, WORKLOAD, Background, Skip, case, main, need, need_root, read, run, write
from waiting import until

MODULE = os.environ["MODULE"]
INTERVAL = 1
# collectd looks for each module where PluginDir was last.
DAEMON = """Hostname "here"
FQDNLookup false
Interval {interval}
BaseDir "{folder}"
PIDFile "{folder}/pid"
TypesDB "/usr/share/collectd/types.db"
LoadPlugin logfile
<Plugin logfile>
  File STDERR
  LogLevel info
</Plugin>
LoadPlugin csv
<Plugin csv>
  DataDir "{folder}/csv"
</Plugin>
PluginDir "{modules}"
LoadPlugin andiron
<Plugin andiron>
{plugin_dirs}
{options}
</Plugin>
"""
OWN = """discovery.relabel "work" {{
  targets = [{{"__process_pid__" = "{pid}"}}]
  rule {{
    target_label = "service_name"
    replacement  = "our/work"
  }}
  rule {{
    target_label = "pod"
    replacement  = "p1"
  }}
}}
pyroscope.ebpf "work" {{
  targets          = discovery.relabel.work.output
  targets_only     = true
  forward_to       = [embed.profiles.collectd.receiver, profile.file.beside.receiver]
  collect_interval = "1s"
}}
embed.profiles "collectd" {{}}
profile.file "beside" {{
  paths = ["{folder}/beside.pb.gz"]
}}
"""


def configure(options=""):
    """The daemon's configuration as a file."""
    if not MODULE:
        raise Skip("andiron.so was not built: apt-get install collectd-dev, and build again")
    need("collectd", "collectd-core")
    dirs = "\n".join(f'  PluginDir "{d}"' for d in os.environ["TEST_PLUGINS"].split(":"))
    text = DAEMON.format(
        interval=INTERVAL,
        folder=os.getcwd(),
        modules=os.path.dirname(MODULE),
        plugin_dirs=dirs,
        options=options,
    )
    return write("collectd.conf", text)


def collectd(*arguments, **options):
    return Background("collectd", "-f", "-C", configure(*arguments), **options)


def own(pid):
    """A configuration that samples one program, as an option of the block."""
    write("own.alloy", OWN.format(pid=pid, folder=os.getcwd()))
    return f'  Config "{os.getcwd()}/own.alloy"\n  Worker "{ANDIRON}"\n'


def values(identifier):
    """[(time, value)] of all days, without those that collectd could not tell yet."""
    rows = []
    for path in sorted(glob.glob(f"csv/here/{identifier}-20*")):
        rows += [line.split(",") for line in read(path).splitlines()[1:]]
    return [(float(t), float(v)) for t, v in rows if v != "nan"]


def last(identifier):
    found = values(identifier)
    return found[-1][1] if found else None


def service_of(pid):
    """Its unit of systemd, by the path of its cgroup, or its name."""
    unit = re.search(r"/([^/\n]+\.(?:service|scope))(?:/|$)", read(f"/proc/{pid}/cgroup"), re.M)
    return unit[1] if unit else "workload"


@case
def services():
    """without a configuration of andiron's: CPU time of this machine's services, and own cost"""
    need_root()
    with Background(WORKLOAD, "600") as work, collectd() as daemon:
        service = service_of(work.pid)
        daemon.until(lambda: last(f"andiron-{service}/total_time_in_ms"), f"CPU time of {service}")
        daemon.until(lambda: last("andiron/derive-samples_taken"), "a count of samples")
        daemon.until(lambda: last("andiron/total_time_in_ms-own_threads"), "own cost")
        daemon.until(
            lambda: last("andiron/gauge-component_healthy-pyroscope.ebpf.all") == 1, "health"
        )
        assert last("andiron/gauge-ledger_balanced") == 1
        daemon.signal(signal.SIGTERM)
        ended = daemon.end().expect(0, "Exiting normally")
    assert "error" not in ended.out.lower(), ended.out


@case
def one_program():
    """a configuration of one's own: CPU time of one program to service and target, and its profile
    to a writer beside"""
    need_root()
    with Background(WORKLOAD, "600") as work:
        options = own(work.pid) + '  TargetLabel "pod"\n  Metric "andiron_process_*"\n'
        with collectd(options) as daemon:
            service = "andiron-our_work/total_time_in_ms"
            daemon.until(lambda: len(values(service)) >= 6, "six sums of the program")
            sums = values(service)
            assert values(service + "-p1")[0][1] > 0
            daemon.until(
                lambda: last("andiron/total_time_in_ms-process_cpu"), "a metric that was chosen"
            )
            daemon.signal(signal.SIGTERM)
            daemon.end().expect(0)
    times, ms = zip(*sums)
    assert list(times) == sorted(set(times)) and list(ms) == sorted(ms), sums
    # It takes what it gets of one CPU.
    assert 0.05 < (ms[-1] - ms[0]) / 1000 / (times[-1] - times[0]) < 1.1, sums
    run(ANDIRON, "report", "beside.pb.gz").expect(0, "workload_70")
    assert glob.glob("csv/here/andiron-*") == ["csv/here/andiron-our_work"]


@case
def mistakes():
    """a wrong configuration keeps collectd from starting; its line says where and what"""
    folder = os.getcwd()
    write("wrong.alloy", 'discovery.proces "all" {}\npyroscope.ebpf "x" {\n  sample_rat = 9\n}\n')
    for options, words in {
        "  Colour 3": ["andiron: there is no option Colour"],
        "  Workers 1.5": ["andiron: Workers takes a whole number from 1 to 16"],
        f'  Config "{folder}/none.alloy"': ["none.alloy", "No such file"],
        f'  Config "{folder}/wrong.alloy"': ["wrong.alloy:1", "discovery.process", "wrong.alloy:3"],
    }.items():
        run("collectd", "-f", "-C", configure(options)).expect(1, *words)


@case
def unprivileged():
    """without its privileges the sampler says what it lacks; collectd and its other plugins run"""
    need_root()
    setpriv = need("setpriv", "util-linux")
    config = configure(own(os.getpid()))
    os.chown(".", 65534, 65534)
    drop = [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]
    with Background(*drop, "--inh-caps=-all", "collectd", "-f", "-C", config) as daemon:
        daemon.until_says("CAP_BPF")
        daemon.until(
            lambda: last("andiron/gauge-component_healthy-pyroscope.ebpf.work") == 0,
            "the sampler's health, 0",
        )
        daemon.signal(signal.SIGTERM)
        daemon.end().expect(0, "pyroscope.ebpf.work")


@case
def background():
    """collectd as a daemon, which forks after it has read its configuration, and its end"""
    need_root()
    with Background(WORKLOAD, "600") as work:
        config = configure(own(work.pid))
        run("collectd", "-C", config).expect(0)
        pid = int(until(lambda: os.path.exists("pid") and read("pid").strip(), "the daemon's pid"))
        try:
            until(lambda: last("andiron-our_work/total_time_in_ms"), "CPU time of the program")
            names = {read(path).strip() for path in glob.glob(f"/proc/{pid}/task/*/comm")}
            assert {"andiron", "andiron-worker"} <= names, names
            os.kill(pid, signal.SIGTERM)
            until(lambda: not os.path.exists(f"/proc/{pid}"), "the daemon's end")
        finally:
            if os.path.exists(f"/proc/{pid}"):
                os.kill(pid, signal.SIGKILL)


@case
def exports():
    """the module exports collectd's one function, and needs libandiron, zlib and the C library"""
    if not MODULE:
        raise Skip("andiron.so was not built: apt-get install collectd-dev, and build again")
    symbols = run("nm", "-D", "--defined-only", MODULE).expect(0).out
    assert [line.split()[-1] for line in symbols.splitlines()] == ["module_register"], symbols
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", MODULE).expect(0).out)
    assert set(needed) <= {"libandiron.so.1", "libc.so.6"}, needed


main()
