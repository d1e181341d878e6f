#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names, lines and inlined calls, of programs as they are: stripped, or with debug information;
and the process that reads them."""

import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys

from ports import free_port
from running import PATIENT, Agent
from tap import (
    ANDIRON,
    SANITIZED,
    WORKLOAD,
    Background,
    Skip,
    andiron,
    case,
    case_of_full,
    environment,
    main,
    need_root,
    read,
    run,
    until,
    write,
)

HERE = os.path.dirname(os.path.abspath(__file__))
# What runtimes tell by themselves is seen where no plugin knows them.
RUNTIMES = os.environ["ANDIRON_PLUGIN_PATH"]
os.environ["ANDIRON_PLUGIN_PATH"] = ":".join(
    path for path in RUNTIMES.split(":") if os.path.basename(path) not in ("jvm", "python", "v8")
)
GO_PROGRAM = os.path.join(HERE, "../elf/go-program")


def build_go():
    if not shutil.which("go"):
        raise Skip("needs Go: install golang")
    subprocess.run(
        ["go", "build", "-ldflags=-s -w", "-o", os.path.join(os.getcwd(), "go-program"), "."],
        cwd=GO_PROGRAM,
        check=True,
        env={**os.environ, "GOFLAGS": "-mod=mod", "GOWORK": "off"},
        capture_output=True,
    )
    return os.path.join(os.getcwd(), "go-program")


@case
def stripped_go():
    """A stripped Go program shows its functions, inlined calls and source lines: `go tool pprof
    -list` prints them."""
    need_root()
    program = build_go()
    andiron("record", "-F", "199", "-o", "go.pb.gz", "-o", "go.folded", "--", program, "4s").expect(
        0, "wrote"
    )
    listed = run("go", "tool", "pprof", "-list", r"main\.", "go.pb.gz").expect(0).out
    assert "r.values[i&63] = next(r, i)" in listed and "return x ^ x>>29" in listed, listed
    # A line with weight: flat and cumulative stand in front of it.
    assert re.search(r"\dm?s .*\d+:.*(x \*= 0x9e3779b97f4a7c15|return x \^ x>>29)", listed), listed
    stacks = read("go.folded")
    assert re.search(
        r"main\.main;main\.spin;main\.\(\*ring\)\.step;main\.next;main\.mix", stacks
    ), stacks[:2000]


C_PROGRAM = """
static volatile unsigned long sink;
static inline __attribute__((always_inline)) unsigned long twist(unsigned long x)
{
	return x * 2654435761u ^ x >> 7;
}
static __attribute__((noinline)) unsigned long turn(unsigned long n)
{
	unsigned long x = n;
	while (n--)
		x = twist(x);
	return x;
}
int main(void)
{
	for (int i = 0; i < 600; i++)
		sink += turn(1000000 + i);
	return 0;
}
"""


def build_c(*options):
    write("twist.c", C_PROGRAM)
    run("gcc", "-O2", *options, "-o", "twist", "twist.c").expect(0)


def record_c(name):
    andiron(
        "record", "-F", "199", "-o", f"{name}.pb.gz", "-o", f"{name}.folded", "--", "./twist"
    ).expect(0, "wrote")
    return read(f"{name}.folded")


@case
def debug_information():
    """A program with debug information shows inlined calls and lines."""
    need_root()
    build_c("-g")
    assert re.search(r"turn;twist ", record_c("with")), read("with.folded")
    listed = (
        run("go", "tool", "pprof", "-list", "turn", "with.pb.gz") if shutil.which("go") else None
    )
    assert listed is None or "x = twist(x);" in listed.expect(0).out, listed.out


@case
def split_units():
    """A program whose debug information lies beside it in .dwo files shows inlined calls, and
    without them its lines."""
    need_root()
    build_c("-g", "-gsplit-dwarf")
    assert os.path.exists("twist.dwo"), os.listdir(".")
    assert re.search(r"turn;twist ", record_c("loose")), read("loose.folded")
    os.rename("twist.dwo", "moved.dwo")
    assert re.search(r"turn \d", record_c("without")), read("without.folded")
    assert "turn;twist" not in read("without.folded")


@case
def debug_link():
    """A stripped program finds its debug file beside it, by its link; one with another CRC does
    not count."""
    need_root()
    build_c("-g", "-Wl,--build-id=none")
    run("objcopy", "--only-keep-debug", "twist", "twist.debug").expect(0)
    run("strip", "twist").expect(0)
    run("objcopy", "--add-gnu-debuglink=twist.debug", "twist").expect(0)
    assert re.search(r"turn;twist ", record_c("linked")), read("linked.folded")
    with open("twist.debug", "ab") as f:
        f.write(b"changed")
    assert "turn" not in record_c("changed"), read("changed.folded")
    # What is missing is named, with what would help.
    andiron("report", "--unresolved", "changed.pb.gz").expect(
        0, "% of samples", "twist", ".symtab: stripped", ".gnu_debuglink: twist.debug", "to fix"
    )
    told = json.loads(andiron("report", "--unresolved", "--json", "changed.pb.gz").expect(0).out)[
        "unresolved"
    ]
    assert any(
        u["file"].endswith("/twist") and u["share"] > 0.5 and "stripped" in u["tried"] for u in told
    ), told


def start_of(function, file):
    """Where a function of a file with symbols begins, as hex without zeros in front."""
    found = re.search(rf"^0*([0-9a-f]+) . {function}$", run("nm", file).expect(0).out, re.MULTILINE)
    return found[1]


@case
def unnamed():
    """A function without a name is one box, by its start; as addresses, every place in it is
    one."""
    need_root()
    build_c("-Wl,--build-id")
    start = start_of("turn", "twist")
    shutil.copy("twist", "twist.debug")
    run("strip", "twist").expect(0)
    boxes = set(re.findall(r"\[twist[^;]*\]", record_c("stripped")))
    assert f"[twist fn 0x{start}]" in boxes and len(boxes) <= 4, boxes
    weight = re.search(rf"\[twist fn 0x{start}\] (\d+)$", read("stripped.folded"), re.MULTILINE)
    assert weight and int(weight[1]) > 50, read("stripped.folded")
    said = andiron("report", "stripped.pb.gz").expect(0).out
    assert re.search(rf"\[twist fn 0x{start}\]$", said, re.MULTILINE), said
    # What would name it is told with its own build id, and works: names come from where it said.
    said = (
        andiron("report", "--unresolved", "stripped.pb.gz")
        .expect(0, "debug file by build id: not installed", "debuginfod: asked only")
        .out
    )
    found = re.search(
        r"as (/usr/lib/debug/\.build-id/../(\w+)\.debug), or get them: debuginfod-find "
        r"debuginfo (\w+)",
        said,
    )
    assert found and found[3].endswith(found[2]), said
    os.makedirs(os.path.dirname(found[1]), exist_ok=True)
    try:
        shutil.copy("twist.debug", found[1])
        andiron("report", "--unresolved", "stripped.pb.gz").expect(
            0, "is here by now, and covers it", "record again"
        )
        assert ";turn " in record_c("installed"), read("installed.folded")
    finally:
        os.unlink(found[1])
    run(
        "gcc",
        "-O2",
        "-s",
        "-o",
        "twist",
        write("twist.c", C_PROGRAM.replace("i < 600", "i < 900000")),
    ).expect(0)
    with Background("./twist") as busy, Agent(
        one_process(busy.pid, "bare.folded", file='unnamed = "address"'), *PATIENT
    ) as agent:
        agent.until_metric("andiron_symbolize_frames_unresolved_total", 20, 'reason="no_symbol"')
        agent.stop()
    bare = set(re.findall(r"\[twist\]\+0x[0-9a-f]+ ", read("bare.folded")))
    assert len(bare) > 1 and "fn 0x" not in "".join(
        line for line in read("bare.folded").splitlines() if "[twist" in line
    ), bare


JAVASCRIPT = """
function inner(n) { let x = 1; for (let i = 0; i < n; i++) x = (x * 31 + i) %% 1000003; return x; }
function outer(n) { let s = 0; for (let i = 0; i < 200; i++) s += inner(n + i); return s; }
const fs = require("fs");
const cpu = () => process.cpuUsage().user / 1e6;
let s = 0;
while (%s) s += outer(2000);
console.log(s);
"""
TOLD_TO_END = 'cpu() < 100 && !fs.existsSync("end")'


def node_script(condition=TOLD_TO_END):
    """a.js, which goes on while that holds."""
    need_root()
    if not shutil.which("node"):
        raise Skip("needs Node.js: install nodejs")
    write("a.js", JAVASCRIPT % condition)


# V8 compiles beside what runs, which takes long where a sanitizer and other tests run, too.
RECORDED = "8s" if SANITIZED else "3s"


def record_alive(output, *command, place="."):
    """Records for some seconds what outlives that, until all is written: a map in a root of its
    own is read while that is there."""
    with Background(
        ANDIRON, "record", "-F", "199", "-d", RECORDED, "-o", output, "--", *command
    ) as recorder:
        recorder.until_says("wrote")
        write(f"{place}/end", "")
        said = recorder.end().expect(0, "wrote").out
    os.unlink(f"{place}/end")
    return said


def shows_compiled(folded):
    """Functions of the script, those that V8 has compiled by then. What it has inlined is not told
    by a map."""
    text = read(folded)
    assert re.search(r"JS:[*^]\w* \S*a\.js", text), [line[-200:] for line in text.splitlines()]


@case
def perf_map():
    """`node --perf-basic-prof` shows the functions that it has compiled."""
    node_script()
    record_alive("node.folded", "node", "--perf-basic-prof", "a.js")
    shows_compiled("node.folded")


@case
def perf_map_inside():
    """A perf map is found in a root and a PID namespace of its own."""
    node_script()
    # The map is named by the pid in there, and lies in its /tmp.
    os.mkdir("t")
    script = "cp a.js t && mount --bind t /tmp && cd /tmp && exec node --perf-basic-prof a.js"
    inside = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "sh", "-c", script]
    record_alive("inside.folded", *inside, place="t")
    shows_compiled("inside.folded")
    assert any(
        name.startswith("perf-") for name in os.listdir("t")
    ), "the map was not written inside"


# Compiles a loop at run time, by hand, and tells of it as Linux's jitdump-specification.txt wants
# it.
JITDUMP_HEAD = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
/* push rbp; mov rbp, rsp; mov ecx, edi; 1: dec ecx; jnz 1b; pop rbp; ret */
static const unsigned char spin[] = {0x55, 0x48, 0x89, 0xe5, 0x89, 0xf9, 0xff, 0xc9, 0x75,
				     0xfc, 0x5d, 0xc3};
struct head { uint32_t magic, version, size, machine, pad, pid; uint64_t time, flags; };
struct load { uint32_t id, size; uint64_t time; uint32_t pid, tid;
	      uint64_t vma, address, code_size, index; };
"""
JITDUMP = JITDUMP_HEAD + r"""
int main(void)
{
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct head head = {0x4a695444, 1, sizeof(head), 62, 0, (uint32_t)getpid(), 0, 0};
	static const char name[] = "compiled_by_hand";
	struct load load = {0, sizeof(load) + sizeof(name) + sizeof(spin), 0, (uint32_t)getpid(),
			    (uint32_t)getpid(), (uintptr_t)code, (uintptr_t)code, sizeof(spin), 1};
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "jit-%d.dump", getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	memcpy(code, spin, sizeof(spin));
	if (write(fd, &head, sizeof(head)) < 0 || write(fd, &load, sizeof(load)) < 0 ||
	    write(fd, name, sizeof(name)) < 0 || write(fd, spin, sizeof(spin)) < 0)
		return 1;
	mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	for (clock_t end = clock() + atoi(getenv("SECONDS")) * CLOCKS_PER_SEC; clock() < end;)
		((int (*)(int))(uintptr_t)code)(1000000);
	return 0;
}
"""


@case
def jitdump():
    """What a runtime tells by a jitdump is shown: a compiler of the test's own, also in a PID
    namespace and after it has exited."""
    need_root()
    if os.uname().machine != "x86_64":
        raise Skip("the test's own compiler knows x86-64 only: run it there")
    write("jit.c", JITDUMP)
    run("gcc", "-O1", "-o", "jit", "jit.c").expect(0)
    environment = {**os.environ, "SECONDS": "2"}
    andiron("record", "-F", "199", "-o", "jit.folded", "--", "./jit", env=environment).expect(
        0, "wrote"
    )
    assert re.search(r"main;compiled_by_hand \d\d", read("jit.folded")), read("jit.folded")
    inside = ["unshare", "--pid", "--fork", "--mount-proc", "./jit"]
    andiron("record", "-F", "199", "-o", "inside.folded", "--", *inside, env=environment).expect(
        0, "wrote"
    )
    assert re.search(r";compiled_by_hand \d\d", read("inside.folded")), read("inside.folded")
    # A file of another's is no word of this process.
    names = [name for name in os.listdir(".") if name.startswith("jit-")]
    assert "jit-1.dump" in names, names


# Compiles as .NET does: code in memory that it maps twice, to write and to run it (W^X), and code
# that was compiled beforehand, in a DLL. Tells of the first in a perf map and, given a word, of
# both in a jitdump (dotnet/runtime, src/coreclr/vm/perfmap.cpp, of version 8).
DOTNET = JITDUMP_HEAD + r"""
static const char *const names[] = {"int32 [App] App.Program::Inner(int32)[OptimizedTier1]",
				    "instance void [CoreLib] System.Collections.Generic.List`1"
				    "[System.__Canon]::Sort(int32)[PreJIT]"};
static void tell(int fd, unsigned i, const void *code)
{
	struct load load = {0, sizeof(load) + strlen(names[i]) + 1 + sizeof(spin), 0,
			    (uint32_t)getpid(), (uint32_t)getpid(),
			    (uintptr_t)code, (uintptr_t)code, sizeof(spin), i};
	struct iovec parts[] = {{&load, sizeof(load)}, {(void *)names[i], strlen(names[i]) + 1},
				{(void *)spin, sizeof(spin)}};

	if (writev(fd, parts, 3) < 0)
		exit(1);
}
int main(int argc, char **argv)
{
	int memory = memfd_create("doublemapper", MFD_CLOEXEC);
	int dll = open("System.Private.CoreLib.dll", O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct head head = {0x4a695444, 1, sizeof(head), 62, 0, (uint32_t)getpid(), 0, 0};
	unsigned char *writable, *code[2], image[8192] = "MZ";
	char path[64];
	FILE *map;

	memcpy(image + 4096 + 64, spin, sizeof(spin));
	if (ftruncate(memory, 65536) != 0 || write(dll, image, sizeof(image)) != sizeof(image))
		return 1;
	writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 4096);
	memcpy(writable + 64, spin, sizeof(spin));
	munmap(writable, 4096);
	code[0] = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, memory, 4096);
	code[1] = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dll, 4096);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	fprintf(map, "%p %x %s\n", (void *)(code[0] + 64), (unsigned)sizeof(spin), names[0]);
	fclose(map);
	if (argc > 1) {
		int fd;

		snprintf(path, sizeof(path), "jit-%d.dump", getpid());
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (write(fd, &head, sizeof(head)) < 0)
			return 1;
		mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
		     0);
		for (unsigned i = 0; i < 2; i++)
			tell(fd, i, code[i] + 64);
	}
	for (time_t end = time(NULL) + 60; time(NULL) < end;)
		for (int i = 0; i < 2; i++)
			((int (*)(int))(uintptr_t)(code[i] + 64))(1000000);
	return 0;
}
"""


@case
def dotnet():
    """Methods as .NET tells of them: by its perf map those that it compiles, by its jitdump also
    those that it finds compiled in a DLL."""
    need_root()
    if os.uname().machine != "x86_64":
        raise Skip("the test's own compiler knows x86-64 only: run it there")
    write("net.c", DOTNET)
    run("gcc", "-O1", "-o", "net", "net.c").expect(0)
    compiled = "int32 [App] App.Program::Inner(int32)[OptimizedTier1]"
    found = (
        "instance void [CoreLib] "
        "System.Collections.Generic.List`1[System.__Canon]::Sort(int32)[PreJIT]"
    )
    for words, names in (
        ([], (compiled, "[System.Private.CoreLib.dll]")),
        (["dump"], (compiled, found)),
    ):
        with Background("./net", *words) as net:
            try:
                andiron(
                    "record", "-F", "199", "-d", "2s", "-p", str(net.pid), "-o", "net.folded"
                ).expect(0, "wrote")
            finally:
                os.unlink(f"/tmp/perf-{net.pid}.map")
        for name in names:
            assert re.search(rf"main;{re.escape(name)} \d", read("net.folded")), (
                words,
                read("net.folded"),
            )


@case_of_full
def jitdump_of_node():
    """Node.js tells of what it compiles by a jitdump."""
    node_script("cpu() < 2")
    # V8 writes its file in pieces of 2 MiB, and the rest as it ends.
    andiron("record", "-F", "199", "-o", "node.folded", "--", "node", "--perf-prof", "a.js").expect(
        0, "wrote"
    )
    shows_compiled("node.folded")


JAVA = """
public class Spin {
    static int inner(int n) {
        int x = 1; for (int i = 0; i < n; i++) x = (x * 31 + i) % 1000003; return x;
    }
    static int outer(int n) {
        int s = 0; for (int i = 0; i < 200; i++) s += inner(n + i); return s;
    }
    public static void main(String[] a) { int s = 0; for (;;) s += outer(2000); }
}
"""


@case
def java():
    """A JVM's methods have no names until it writes its perf map, also for an agent that runs
    already; `record` says how."""
    need_root()
    for tool in ("javac", "java", "jcmd"):
        if not shutil.which(tool):
            raise Skip(f"needs {tool}: install default-jdk-headless")
    write("Spin.java", JAVA)
    run("javac", "Spin.java").expect(0)
    # All is compiled before it runs, and once: what came later would not stand in the map.
    early = [
        "-Xcomp",
        "-XX:TieredStopAtLevel=1",
        "-XX:CompileCommand=quiet",
        "-XX:CompileCommand=compileonly,Spin::*",
    ]
    with Background("java", "-XX:+PreserveFramePointer", *early, "-cp", ".", "Spin") as jvm, Agent(
        one_process(jvm.pid, "agent.folded"), *PATIENT
    ) as agent:

        def record(path):
            return (
                andiron("record", "-F", "199", "-d", "2s", "-p", str(jvm.pid), "-o", path)
                .expect(0, "wrote")
                .err
            )

        jvm.until(lambda: run("jcmd", str(jvm.pid), "VM.uptime").code == 0, "it answers")
        agent.until_metric("andiron_symbolize_frames_unresolved_total", 1, 'reason="no_object"')
        said = record("before.folded")
        assert "jcmd PID Compiler.perfmap" in said and "Spin.outer" not in read(
            "before.folded"
        ), said + read("before.folded")
        run("jcmd", str(jvm.pid), "Compiler.perfmap").expect(0)
        said = record("after.folded")
        assert "perfmap" not in said, said
        assert re.search(r";Spin\.(outer|inner|main)(;Spin\.\w+)* \d", read("after.folded")), read(
            "after.folded"
        )[-3000:]
        agent.until_metric("andiron_symbolize_frames_resolved_total", 1, 'source="jit"')
        agent.stop()
    os.unlink(f"/tmp/perf-{jvm.pid}.map")
    assert "Spin." in read("agent.folded"), read("agent.folded")[-3000:]


ONE = """
pyroscope.ebpf "one" {
  forward_to       = [profile.file.out.receiver]
  collect_interval = "1s"
  sample_rate      = 199
  targets          = [{"__process_pid__" = "%d", "service_name" = "x"%s}]
}
profile.file "out" {
  paths = ["%s"]
  %s
}
"""


def one_process(pid, path, labels="", file=""):
    """A configuration that samples this process; its target may have more labels, the file more
    arguments."""
    return write(f"{pid}.alloy", ONE % (pid, labels, path, file))


PYTHON = """
import time
def inner(n):
    x = 1
    for i in range(n):
        x = (x * 31 + i) % 1000003
    return x
def outer(n):
    return sum([inner(n) for _ in range(20)])
end = time.process_time() + 2
while time.process_time() < end:
    outer(2000)
"""


DEBUGINFOD = """
pyroscope.ebpf "one" {
  forward_to       = [profile.symbolize.s.receiver]
  collect_interval = "1s"
  targets          = [{"__process_pid__" = "%d", "service_name" = "x"}]
}
profile.symbolize "s" {
  forward_to            = [profile.file.out.receiver]
  debuginfod            = true
  debuginfod_cache_path = "%s/%s"
  %s
}
profile.file "out" {
  paths = ["%s.folded", "%s.pb.gz"]
}
"""


def resolved_by_debuginfod(pid, cache, output, url, settings="", fetched=1):
    """An agent comes to name `turn`, which is only in the debug file, with so many files; the
    server is named by the environment. Of a slow machine's few samples the first ones need not have
    the call that is inlined."""
    write("d.alloy", DEBUGINFOD % (pid, os.getcwd(), cache, settings, output, output))
    os.environ["DEBUGINFOD_URLS"] = url
    with Agent("d.alloy", *PATIENT) as agent:
        agent.until_metric("andiron_symbolize_fetched_total", fetched)
        named = agent.metric("andiron_symbolize_frames_resolved_total", 'source="debug"')
        agent.until_metric("andiron_symbolize_frames_resolved_total", named + 20, 'source="debug"')
        agent.stop()
    os.environ["DEBUGINFOD_URLS"] = ""
    return read(f"{output}.folded")


ALONE = ("-O2", "-g", "-Wl,--build-id", "-static", "-nostdlib", "-Wl,--entry=main")


def twist_with_debug_file(folder):
    """A stripped program that runs long, whose debug file lies in `folder`; its build id. It has no
    library, whose debug file could be here: what is named by one is the program's own."""
    write("twist.c", C_PROGRAM.replace("i < 600", "i < 90000"))
    run("gcc", *ALONE, "-o", "twist", "twist.c").expect(0)
    os.mkdir(folder)
    run("objcopy", "--only-keep-debug", "twist", f"{folder}/twist.debug").expect(0)
    run("strip", "twist").expect(0)
    return re.search(r"Build ID: (\w+)", run("readelf", "-n", "twist").out)[1]


def elfutils(url, cache, *what):
    """What elfutils' client makes of it with a cache of that name."""
    return run(
        "debuginfod-find",
        *what,
        env={
            **os.environ,
            "DEBUGINFOD_URLS": url,
            "DEBUGINFOD_CACHE_PATH": f"{os.getcwd()}/{cache}",
        },
    )


@contextlib.contextmanager
def debuginfod_server(prepare=twist_with_debug_file):
    """A real one that has the debug file of a program that runs, by `prepare`: its process, its
    URL, the program's pid and build id."""
    need_root()
    for tool in ("debuginfod", "debuginfod-find"):
        if not shutil.which(tool):
            raise Skip(f"needs {tool}: install debuginfod")
    build_id = prepare("files")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = Background(
        "debuginfod",
        "-p",
        str(port),
        "-d",
        "files/db",
        "-F",
        "files",
        env={**os.environ, "DEBUGINFOD_URLS": ""},
    )
    with server, Background("./twist") as twist:
        # A miss is remembered for ten minutes, so each try has a cache of its own.
        tries = iter(range(10**6))
        server.until(
            lambda: elfutils(url, f"try{next(tries)}", "debuginfo", build_id).code == 0,
            "the server has scanned",
        )
        yield server, url, twist.pid, build_id


@case
def debuginfod():
    """A stripped program's debug file comes from a debuginfod server; when that is stopped, the
    cache answers. elfutils' client takes what we have kept."""
    with debuginfod_server() as (server, url, pid, build_id):
        assert "turn;twist " in resolved_by_debuginfod(pid, "ours", "first", url)
        assert os.path.isfile(f"ours/{build_id}/debuginfo"), os.listdir("ours")
        server.signal(signal.SIGKILL)
        server.process.wait()
        assert "turn;twist " in resolved_by_debuginfod(pid, "ours", "second", url)
        taken_by_elfutils(url, "ours", "debuginfo", build_id)


def taken_by_elfutils(url, cache, *what):
    kept = elfutils(url, cache, *what).expect(0).out.strip()
    assert kept.startswith(f"{os.getcwd()}/{cache}/{what[1]}/") and os.path.getsize(kept) > 0, kept


def twist_with_supplementary(folder):
    """The same, of whose debug file dwz has moved what a second one has too into a third, which
    nothing finds by its name."""
    if not shutil.which("dwz"):
        raise Skip("needs dwz: install dwz")
    build_id = twist_with_debug_file(folder)
    run("gcc", *ALONE, "-o", "other", "twist.c", "-Dsink=drain").expect(0)
    run("objcopy", "--only-keep-debug", "other", f"{folder}/other.debug").expect(0)
    run(
        "dwz",
        "-m",
        f"{folder}/common.debug",
        "-M",
        "/nowhere/common.debug",
        f"{folder}/twist.debug",
        f"{folder}/other.debug",
    ).expect(0)
    return build_id


@case
def debuginfod_of_dwz():
    """Where a debug file says that names are in a supplementary one, that comes from the server,
    too."""
    with debuginfod_server(twist_with_supplementary) as (server, url, pid, build_id):
        supplementary = re.search(
            r"Build ID: (\w+)", run("readelf", "-n", "files/common.debug").out
        )[1]
        server.until(
            lambda: elfutils(url, "tries", "debuginfo", supplementary).code == 0
            or shutil.rmtree("tries"),
            "it has scanned that, too",
        )
        assert "turn;twist " in resolved_by_debuginfod(pid, "ours", "dwz", url, fetched=2), read(
            "dwz.folded"
        )[:3000]
        assert os.path.isfile(f"ours/{build_id}/debuginfo") and os.path.isfile(
            f"ours/{supplementary}/debuginfo"
        ), os.listdir("ours")


@case_of_full
def debuginfod_by_sections():
    """A debug file that is too large comes in sections, which elfutils' client takes; and we take
    what that has kept."""
    with debuginfod_server() as (server, url, pid, build_id):
        elfutils(url, "theirs", "debuginfo", build_id).expect(0)
        assert os.path.getsize("files/twist.debug") > 1024
        # A file that is too large costs its lines and symbols: names and lines, no inlined calls.
        large = resolved_by_debuginfod(pid, "parts", "large", url, "debuginfod_max_bytes = 1024")
        assert re.search(r"turn \d", large) and "turn;twist" not in large, large[:3000]
        assert sorted(os.listdir(f"parts/{build_id}")) == [
            f"section-{n}"
            for n in (".andiron", ".debug_line", ".debug_line_str", ".strtab", ".symtab")
        ]
        if shutil.which("go"):
            listed = run("go", "tool", "pprof", "-list", "turn", "large.pb.gz").expect(0).out
            assert re.search(r"\d[.\d]*m?s .*\d+:.*x \* 2654435761u", listed), listed
        server.signal(signal.SIGKILL)
        server.process.wait()
        assert "turn;twist " in resolved_by_debuginfod(pid, "theirs", "third", url)
        for section in (".debug_line", ".symtab"):
            taken_by_elfutils(url, "parts", "section", build_id, section)


@case
def opted_out():
    """A target that says so keeps its code without names: its files are not read, and nothing is
    said of them but their name."""
    need_root()
    run(
        "gcc", "-O2", "-o", "twist", write("twist.c", C_PROGRAM.replace("i < 600", "i < 900000"))
    ).expect(0)
    for labels, named in (("", True), (', "__symbolize__" = "false"', False)):
        with Background("./twist") as busy, Agent(
            one_process(busy.pid, "out.folded", labels), *PATIENT
        ) as agent:
            agent.until_metric(
                "andiron_symbolize_frames_unresolved_total",
                0 if named else 20,
                'reason="opted_out"',
            )
            agent.until_metric(
                "andiron_symbolize_frames_resolved_total", 20 if named else 0, 'source="symtab"'
            )
            agent.stop()
        assert ("turn" in read("out.folded")) == named and (
            "[twist] " in read("out.folded")
        ) != named, read("out.folded")


@case
def hidden_by_a_runtime():
    """Where CPython's loop or code that a runtime compiles dominates, `record` says so, and what
    works; with a plugin for the runtime it says nothing."""
    need_root()
    if shutil.which("node"):
        node_script()
        # Also where nobody asks for a pprof file.
        said = record_alive("b.html", "node", "a.js")
        assert "--perf-basic-prof" in said, said
        said = record_alive("b.html", "node", "--perf-basic-prof", "a.js")
        assert "without names" not in said, said
    write("loop.py", PYTHON)
    loop = ("record", "-F", "199", "-o", "loop.folded", "--", system_python(), "loop.py")
    andiron(*loop).expect(0, "andiron-python.so", "python3 -X perf")
    assert ";inner" not in read("loop.folded"), read("loop.folded")[-2000:]
    said = andiron(*loop, env=environment(ANDIRON_PLUGIN_PATH=RUNTIMES)).expect(0).err
    assert "hides" not in said and re.search(";outer;.*;inner", read("loop.folded")), said
    build_c("-g")
    assert (
        "hides"
        not in andiron("record", "-F", "199", "-o", "c.pb.gz", "--", "./twist").expect(0).err
    )


def system_python():
    return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def pythons(oldest):
    """Pythons of at least that minor version, on PATH or kept by pyenv."""
    named = [shutil.which(f"python3.{minor}") for minor in range(oldest, 20)]
    kept = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))
    for path in [shutil.which("python3"), *named, *kept]:
        if (
            path
            and run(path, "-c", f"import sys; sys.exit(sys.version_info < (3, {oldest}))").code == 0
        ):
            yield path


@case
def python():
    """Who follows the advice sees Python functions, and is told nothing more."""
    assert "hides" not in python_functions(12, "perf")


@case_of_full
def python_jitdump():
    """`-X perf_jit` tells Python's functions when its buffer is full, or Python ends."""
    # `record` reads what it has every five seconds, and is not to do so at the end of Python.
    python_functions(
        13,
        "perf_jit",
        PYTHON.replace("time.process_time() + 2", "time.monotonic() + 7").replace(
            "process_time", "monotonic"
        ),
    )


def python_functions(minor, how, script=PYTHON):
    """Python of that version or a later one names its functions in this way; what `record` said."""
    need_root()
    path = next(pythons(minor), None)
    if not path:
        raise Skip(f"needs Python 3.{minor}: install python3.{minor}")
    write("loop.py", script)
    said = (
        andiron("record", "-F", "199", "-o", "loop.folded", "--", path, "-X", how, "loop.py")
        .expect(0, "wrote")
        .err
    )
    # As "file:function"; its callers only where Python keeps frame pointers.
    assert re.search(
        r"/loop\.py:inner;.*_PyEval_EvalFrameDefault\S* \d+$", read("loop.folded"), re.MULTILINE
    ), (how, read("loop.folded")[-2000:])
    print("#", os.path.realpath(path), "-X", how)
    return said


def children_of(pid, words):
    listed = run("ps", "--ppid", str(pid), "-o", "pid=,args=").out
    return [int(line.split()[0]) for line in listed.splitlines() if words in line]


@case
def worker():
    """Files are parsed by a process that can do nothing else; killing it costs a batch's names at
    most, and no sample."""
    need_root()
    write(
        "c.alloy",
        'pyroscope.ebpf "all" {\n  forward_to       = [profile.file.out.receiver]\n  '
        'collect_interval = "1s"\n'
        '  targets_only     = false\n  default_target   = {service_name = "x"}\n}\n'
        'profile.file "out" {\n  paths = ["x.folded"]\n}\n',
    )
    with Background(WORKLOAD, "600"), Agent("c.alloy", *PATIENT) as agent:
        first = until(lambda: children_of(agent.pid, "worker"), "the process that parses runs")[0]
        until(
            lambda: "Seccomp_filters:\t2" in read(f"/proc/{first}/status"),
            "it is in its sandbox, beside the agent's filter",
        )
        status = read(f"/proc/{first}/status")
        for words in (r"CapEff:\t0+\n", r"CapPrm:\t0+\n", r"NoNewPrivs:\t1\n"):
            assert re.search(words, status), status
        os.kill(first, signal.SIGKILL)
        # New addresses need it again.
        with Background("python3", "-c", "while True: sum(i * i for i in range(10000))"):
            agent.until_metric("andiron_symbolize_crashes_total")
            second = until(
                lambda: [c for c in children_of(agent.pid, "worker") if c != first],
                "another one runs",
            )
        assert second
        named = agent.metric("andiron_symbolize_frames_resolved_total", 'source="symtab"')
        agent.until_metric("andiron_symbolize_frames_resolved_total", named + 20, 'source="symtab"')
        found = agent.stop()
        assert not children_of(agent.pid, "worker")
    assert all(not w["dropped"] for w in found["writers"].values()), found
    assert "workload_70" in read("x.folded")


MAPS = "/tmp/perf-*.map"
BEFORE = set(glob.glob(MAPS))
try:
    main()
finally:
    # Runtimes leave theirs behind.
    for path in set(glob.glob(MAPS)) - BEFORE:
        if not os.path.exists(f"/proc/{path[len('/tmp/perf-'):-len('.map')]}"):
            os.unlink(path)
