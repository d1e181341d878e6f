#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`andiron convert`: what other profilers were told, and the configuration that comes of it. Each
case of tests/golden/convert is NAME.flags (the profiler, then a flag a line), mostly NAME.yaml, and
NAME.alloy, which is valid. --write writes these anew."""

import os
import sys

from tap import andiron, case, main, read, write

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
GOLDEN = os.path.join(ROOT, "tests", "golden", "convert")
PARCA, OTEL = "parca-agent", "otel-ebpf-profiler"


def convert(profiler, *arguments):
    return andiron("convert", "--from", profiler, *arguments)


def converted(name):
    profiler, *flags = read(f"{GOLDEN}/{name}.flags").splitlines()
    path = f"{GOLDEN}/{name}.yaml"
    done = convert(profiler, *([path] if os.path.exists(path) else []), "--", *flags)
    assert done.code == 0 and not done.err, (name, done.err)
    return done.out


def names():
    return sorted(n.removesuffix(".flags") for n in os.listdir(GOLDEN) if n.endswith(".flags"))


@case
def golden():
    """Files and flags become the configurations that are written down, and these are valid."""
    os.environ["COLLECTOR_HOST"] = "collector"
    os.environ["COLLECTOR_URL"] = "https://collector"
    for name in names():
        text = converted(name)
        assert text == read(f"{GOLDEN}/{name}.alloy"), (name, text)
        andiron("validate", write(f"{name}.alloy", text)).expect(0, "valid: ")
    assert len(names()) >= 8


@case
def refusals():
    """What cannot be converted is refused in a sentence, and nothing is printed."""
    for said, profiler, text, *flags in (
        ("must be a number", PARCA, "profiling-cpu-sampling-frequency: often\n"),
        ("must be a duration", OTEL, "", "-reporter-interval=5"),
        ("must be true or false", PARCA, "debuginfo-strip: perhaps\n"),
        ("line 1: relabel_configs is no list", PARCA, "relabel_configs: {a: b}\n"),
        ("rule 2 of relabel_configs is no map", PARCA, "relabel_configs: [{action: drop}, 7]\n"),
        ("is not YAML", PARCA, "a: [\n"),
        ("is no YAML map", PARCA, "- a\n"),
        ("no pipeline of profiles, so", OTEL, "service: {pipelines: {traces: {}}}\n"),
        ('receiver ("profiling")', OTEL, "service: {pipelines: {profiles: {}}}\n"),
        ("is no flag", OTEL, "", "-v", "loud"),
        ("Kubernetes's ConfigMap", PARCA, "apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n"),
        ("Kubernetes's DaemonSet", OTEL, "kind: DaemonSet\napiVersion: apps/v1\n"),
        ("more than 10000 values", PARCA, "x: [" + "a, " * 10001 + "]\n"),
        ("is larger than 1 MiB", PARCA, "#" * (1 << 20) + "\n"),
    ):
        done = convert(profiler, write("in.yaml", text), "--", *flags)
        done.expect(1, said)
        assert not done.out and "fault of andiron" not in done.err, done.err
    for arguments in (("--from", "perf", "x"), ("x",), ("--from", PARCA)):
        andiron("convert", *arguments).expect(2)
    convert(PARCA, "/nowhere/in.yaml").expect(1, "/nowhere/in.yaml")


@case
def a_flag_that_nobody_knows_takes_no_other():
    """An unknown flag has the word behind it as its value only if that is no flag."""
    text = convert(PARCA, "--", "--kubernetes", "--profiling-duration=10s", "--nosuch", "x").out
    assert 'collect_interval = "10s"' in text, text
    assert "//   kubernetes: " in text and "//   nosuch: " in text, text


if sys.argv[1:] == ["--write"]:
    for each in names():
        with open(f"{GOLDEN}/{each}.alloy", "w", encoding="utf-8") as out:
            out.write(converted(each))
    sys.exit()
main()
