#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks through a language runtime: native, toy, native, toy. And what a runtime costs that
cannot be used."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scenario"))
import running  # noqa: E402
from running import PATIENT, Agent  # noqa: E402
from tap import (  # noqa: E402
    ANDIRON,
    Background,
    Skip,
    andiron,
    case,
    folded,
    main,
    need_root,
    write,
)

TOY = os.environ.get("TOY", "")
CONFIG = """discovery.relabel "toy" {
  targets = [{"__process_pid__" = "%d", "service_name" = "toy"}]
}
pyroscope.ebpf "toy" {
  forward_to       = [profile.file.out.receiver]
  targets          = discovery.relabel.toy.output
  sample_rate      = 199
  collect_interval = "1s"
  kernel_frames    = false
  %s
}
profile.file "out" {
  paths = ["out.folded", "out.pb.gz"]
}
"""
SAMPLES = 200
WORDS = 127 + 1024  # of a stack; a frame of the toy takes two


# Without the real runtimes: the toy takes the name of one.
PLUGIN_PATH = ":".join(
    folder
    for folder in os.environ.get("ANDIRON_PLUGIN_PATH", "").split(":")
    if os.path.basename(folder) not in ("python", "jvm", "v8")
)


def install(*plugins):
    """Of runtimes only these plugins of the toy are there."""
    shutil.rmtree("plugins", ignore_errors=True)
    os.mkdir("plugins")
    for name in plugins:
        shutil.copy(os.path.join(os.environ["TOY_PLUGINS"], f"andiron-{name}.so"), "plugins")
    os.environ["ANDIRON_PLUGIN_PATH"] = f"{PLUGIN_PATH}:{os.path.abspath('plugins')}"


def chosen(*runtimes):
    names = ", ".join(f'"{name}"' for name in runtimes)
    return f"runtimes = [{names}]"


def sample(agent, samples=SAMPLES, claims=0):
    """Stacks from main on, with their samples, of which so many are taken when runtimes have been
    asked for their code that often; and what the agent said."""
    agent.until_metric("andiron_ebpf_runtime_claims_total", claims)
    agent.until_metric(
        "andiron_samples_taken_total", agent.metric("andiron_samples_taken_total") + samples
    )
    agent.stop()
    stacks = {}
    for frames, n in folded("out.folded").items():
        whole = "main" in frames
        frames = frames[frames.index("main") :] if whole else ("?",) + frames
        stacks[frames] = stacks.get(frames, 0) + n
    return stacks, agent.text()


def profile(option, *arguments, claims=0):
    """Stacks of the toy, with one option more or "", where all its plugins are installed."""
    need_root()
    if option.startswith("runtimes"):
        install("toy", "mistaken")
    with Background(TOY, *arguments) as toy, Agent(
        write("c.alloy", CONFIG % (toy.pid, option)), *PATIENT
    ) as agent:
        return sample(agent, claims=claims)


def share_of(stacks, pattern):
    total = sum(stacks.values())
    assert total >= SAMPLES / 2, stacks
    return sum(n for frames, n in stacks.items() if re.fullmatch(pattern, ";".join(frames))) / total


def settled(stacks):
    """Without the first samples, taken before the process was known: they are walked from copies,
    natively, as far as files tell how. On a busy machine that lasts a while."""
    return {
        frames: n
        for frames, n in stacks.items()
        if frames[:2] != ("?", "[runtime]") and "toy_interpret" not in frames
    }


NATIVE = (
    r"main;run;native_start;toy_run;toy_interpret;native_bridge;toy_run;toy_interpret"
    r"(;native_crunch)?"
)
DIVES = "main;run;(dive;native_dive;){%d}inner(;native_crunch)?"
WHOLE = r"main;run;native_start;outer;middle;native_bridge;inner(;native_crunch)?"


def expect_whole(stacks):
    stacks = settled(stacks)
    assert share_of(stacks, WHOLE) >= 0.98, stacks
    for leaf in ("inner", "native_crunch"):
        assert (
            share_of(
                stacks,
                WHOLE.replace("(;native_crunch)?", "" if leaf == "inner" else ";native_crunch"),
            )
            > 0.1
        ), stacks
    for frames in stacks:
        assert "[toy]" not in frames, stacks


@case
def names_and_order():
    """native, toy, native and toy stand in one stack, by their names and in their order."""
    stacks, said = profile(chosen("toy"), claims=1)
    expect_whole(stacks)
    assert "runtime" not in said, said


@case
def compiled():
    """Code that was made at run time, in no file, is walked as its process has it, also as it
    grows; several functions of one pair stand in each other."""
    stacks, _ = profile(chosen("toy"), "jit", claims=1)
    whole = "main;run;native_jit;compiled;inlined(;native_crunch)?"
    assert share_of(settled(stacks), whole) >= 0.98, stacks
    stacks, _ = profile(chosen(), "jit")
    assert share_of(stacks, r"main;run;native_jit;\[anon\](;native_crunch)?") >= 0.98, stacks


@case
def one_entry():
    """What finds no room in a stack is cut at its outer end, which says so."""
    stacks, _ = profile(chosen("toy"), "dig", "400", claims=1)
    assert share_of(settled(stacks), "main;run;(dig;){401}inner(;native_crunch)?") >= 0.98, stacks
    stacks, _ = profile(chosen("toy"), "dig", "590", claims=1)
    cut = r"\?;\[truncated\];(dig;){%d,%d}inner(;native_crunch)?" % (WORDS // 2 - 2, WORDS // 2)
    assert share_of(settled(stacks), cut) >= 0.98, stacks


def status_of(agent, pid):
    """What the agent says of a process's runtime; None while it is at work."""
    head, body = running.ask("status", "/targets")
    if not head.startswith("HTTP/1.0 200 "):
        return None
    for target in json.loads(body).get("pyroscope.ebpf.toy", []):
        for process in target["processes"]:
            if process["pid"] == pid:
                return process.get("runtime", "")
    return None


@case
def installed():
    """What is installed is used without being asked for; Alloy's switches turn theirs off; a
    target's status names the runtime."""
    need_root()
    install("toy")
    andiron("doctor").expect(0, "runtimes", "functions of toy are shown by name")
    with Background(TOY) as toy, Agent(write("c.alloy", CONFIG % (toy.pid, "")), *PATIENT) as agent:
        agent.until(lambda: status_of(agent, toy.pid) == "toy 1.0", "the status names the runtime")
        andiron("doctor", "--status", "status").expect(0, f"process {toy.pid} toy: toy 1.0")
        told = json.loads(andiron("doctor", "--json", "--status", "status").expect(0).out)
        assert told["processes"] == [{"pid": toy.pid, "name": "toy", "runtime": "toy 1.0"}], told
        stacks, said = sample(agent)
    expect_whole(stacks)
    install("python")
    stacks, said = profile("", claims=1)
    expect_whole(stacks)
    stacks, said = profile("python_enabled = false")
    assert share_of(stacks, NATIVE) >= 0.95, stacks
    assert "python" not in said, said


def map_bytes(option, *command):
    """Kernel memory of the maps of an agent that samples this program."""
    with Background(*command) as target, Agent(
        write("c.alloy", CONFIG % (target.pid, option))
    ) as agent:
        agent.until_metric("andiron_samples_taken_total", 20)
        folder, total = f"/proc/{agent.pid}/fdinfo", 0
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                with open(f"{folder}/{name}", encoding="utf-8") as file:
                    found = re.search(r"map_type:.*memlock:\s*(\d+)", file.read(), re.S)
                total += int(found[1]) if found else 0
        return total


@case
def not_needed():
    """A runtime that no process needs costs no kernel memory."""
    need_root()
    install("toy")
    busy = ("sh", "-c", "while :; do :; done")
    none, idle, used = map_bytes(chosen(), *busy), map_bytes("", *busy), map_bytes("", TOY)
    print(f"# bytes of maps: {none} without runtimes, {idle} with an idle one, {used} with one")
    assert none == idle < used


@case
def switched_off():
    """A switch that is on in vain is noted; one that is off wins over the list."""
    need_root()
    install("toy")
    text = CONFIG % (os.getpid(), "python_enabled = true\n  v8_enabled = false")
    with Agent(write("c.alloy", text)) as agent:
        agent.until_health("pyroscope.ebpf.toy", "healthy", "python_enabled: no installed plugin")
    install("python")
    with Background(TOY) as toy:
        text = CONFIG % (toy.pid, chosen("python") + "\n  python_enabled = false")
        with Agent(write("c.alloy", text), *PATIENT) as agent:
            stacks, _ = sample(agent)
    assert share_of(stacks, NATIVE) >= 0.95, stacks


@case
def languages():
    """A flame graph names each language in its legend, with a colour of its own."""
    need_root()
    install("python")
    with Background(TOY) as toy:
        text = CONFIG % (toy.pid, "") + 'profile.file "html" {\n  paths = ["out.html"]\n}\n'
        text = text.replace("out.receiver]", "out.receiver, profile.file.html.receiver]")
        with Agent(write("c.alloy", text), *PATIENT) as agent:
            sample(agent)
    with open("out.html", encoding="utf-8") as file:
        assert '"[cpython]"' in file.read()
    browser = shutil.which("chromium")
    if not browser:
        raise Skip("the colours need a browser: apt-get install chromium")
    page = f"file://{os.path.abspath('out.html')}"
    shown = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", page],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=60,
        check=False,
    ).stdout
    legend = re.search(r'id="legend"[^>]*>(.*?)</(div|p|footer)>', shown, re.S)[1]
    colours = re.findall(r'background: ?([^";]*);?"></i>([^<]*)<', legend)
    print("#", colours)
    assert "Python" in [name for _, name in colours], legend
    assert len({colour for colour, _ in colours}) == len(colours), colours


LIVES = 100
# At the first line a toy that dives until the second, then as many lives as said.
LAUNCH = f"""import subprocess, sys
sys.stdin.readline()
with subprocess.Popen([sys.argv[1], "10"]) as first:
    sys.stdin.readline()
    first.kill()
for i in range({LIVES}):
    subprocess.run(sys.argv[1:], check=True)
"""


@case
def short_lives():
    """Of a hundred processes of 50 ms, nine samples in ten have the runtime's names.

    A process before them lasts until its code is claimed: what the first one needs is loaded while
    it runs, and under a sanitizer that takes longer than several of the lives."""
    need_root()
    install("toy")
    command = [sys.executable, "-c", LAUNCH, TOY, "ms", "50"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as launcher:
        text = CONFIG % (launcher.pid, "follow = true")
        with Agent(write("c.alloy", text.replace("= 199", "= 97")), *PATIENT) as agent:
            agent.until_health("pyroscope.ebpf.toy", "healthy", "sampling")
            launcher.stdin.write(b"\n")
            launcher.stdin.flush()
            agent.until_metric("andiron_ebpf_runtime_claims_total", 1)
            launcher.stdin.close()
            launcher.wait()
            agent.stop()
    found = {
        frames: n
        for frames, n in folded("out.folded").items()
        if "python" not in ";".join(frames) and "native_dive" not in frames
    }
    named = sum(n for frames, n in found.items() if "outer" in frames)
    print(f"# {named} of {sum(found.values())} samples are named")
    for frames, n in sorted(found.items(), key=lambda f: -f[1])[:6]:
        print("#", n, ";".join(frames))
    assert named >= 0.9 * sum(found.values())


@case
def ten_times():
    """Fourteen round trips are one whole stack: here there are eleven and fourteen."""
    for deep in (10, 13):
        stacks, _ = profile(chosen("toy"), str(deep), claims=1)
        assert share_of(settled(stacks), DIVES % deep) >= 0.98, (deep, stacks)


BTF = "/sys/kernel/btf/vmlinux"
TASK_WORK = b"bpf_task_work_schedule_resume"


@contextlib.contextmanager
def without_task_work():
    """The agent is started where the kernel's types tell of no task work, as those of kernels
    before 6.18 do."""
    with open(BTF, "rb") as real, open("btf", "wb") as other:
        other.write(real.read().replace(TASK_WORK, TASK_WORK.replace(b"bpf", b"not")))
    script = f"""#!/bin/sh
exec unshare -m sh -c 'mount --bind "$0" {BTF} && exec "$@"' \\
	"{os.path.abspath('btf')}" {ANDIRON} "$@"
"""
    with open(write("andiron", script), encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o755)
    running.ANDIRON = os.path.abspath("andiron")
    yield
    running.ANDIRON = ANDIRON


def expect_cut(stacks):
    """All that was walked in one go, and the frame that says that there is more."""
    marked = r"\?;\[runtime switches\];native_dive;(dive;native_dive;){13}inner(;native_crunch)?"
    assert share_of(settled(stacks), marked) >= 0.98, stacks


@case
def continuation():
    """With more round trips the walk goes on in task work, one round or several."""
    with open(BTF, "rb") as types:
        here = TASK_WORK in types.read()
    for deep in (14, 39, 150):
        stacks, _ = profile(chosen("toy"), str(deep), claims=1)
        if not here:
            expect_cut(stacks)
            continue
        assert share_of(settled(stacks), DIVES % deep) >= 0.98, (deep, stacks)


@case
def too_often():
    """Without task work it ends in a frame that says so, with all that was walked until then."""
    with without_task_work():
        stacks, _ = profile(chosen("toy"), "20", claims=1)
    expect_cut(stacks)


@case
def absent():
    """One that nobody offers is said so by name, and costs the others nothing."""
    stacks, said = profile(chosen("moon", "toy"), claims=1)
    assert 'no plugin offers the runtime "moon" (andiron.runtime.moon/1)' in said, said
    expect_whole(stacks)


@case
def refused():
    """One that the verifier refuses is said so with its reason; another has its place, and the
    code is native."""
    stacks, said = profile(chosen("broken", "toy"), claims=1)
    assert re.search(
        r'runtime \\?"broken\\?" is not used.*the kernel refused its program: .*invalid mem access',
        said,
    ), said
    expect_whole(stacks)
    stacks, _ = profile(chosen("broken"))
    assert share_of(stacks, NATIVE) >= 0.95, stacks


@case
def another_version():
    """One that was built for another version of the walk is not loaded."""
    stacks, said = profile(chosen("old"))
    assert re.search(r"built for version 3 of the walk, this sampler has version 4", said), said
    assert share_of(stacks, r".*;toy_interpret.*") >= 0.95, stacks


@case
def mistaken():
    """A program that leaves nonsense behind costs the stacks that it was called for; one that does
    not come back costs the samples, which are counted."""
    stacks, _ = profile(chosen("astray"), claims=1)
    # Without the first samples, for which no program is called.
    stacks = {frames: n for frames, n in stacks.items() if "toy_interpret" not in frames}
    assert share_of(stacks, r"\?;\[runtime\](;native_crunch)?") >= 0.95, stacks
    told = andiron("report", "--unresolved", "--json", "out.pb.gz").expect(0).out
    lacked = json.loads(told)["runtimes"]
    assert lacked[0]["lacked"] == "[runtime]" and lacked[0]["share"] > 0.9, lacked
    stacks, said = profile(chosen("silent"), claims=1)
    lost = re.search(r"([0-9,]+) dropped \(pyroscope.ebpf.toy:unfinished", said)
    assert lost and int(lost[1].replace(",", "")) + sum(stacks.values()) >= SAMPLES, said


@case
def bad_names():
    """Names that can be no runtime's are refused where they stand."""
    text = CONFIG % (1, chosen("Toy", "toy", "toy"))
    r = andiron("validate", write("c.alloy", text)).expect(1, "lower-case letters", "named twice")
    assert "c.alloy:10:15" in r.out + r.err, r.out + r.err


main()
