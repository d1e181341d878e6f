#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_chart.py [--write]: packaging/helm/andiron as the real Helm 3 and Helm 4 render it.

A file of cases/ has cases: a line "=== NAME", values, a line "---", and what is expected. Of a
rendering that is how it differs from base.yaml, object by object; in refused.txt it is the message.
A case without `backend` or `config` has the base's backend, and under its name a line "# on
VERSION" sets Kubernetes's minor, "# named NAME" the release's name, and "# with FILE" adds values
that the chart has in a file.
--write writes what is expected anew, for a person to read the difference.

Both Helms must agree. Each object must be what three minors of Kubernetes or the Prometheus
operator take, and each configuration what `andiron validate` takes.
"""

import concurrent.futures
import difflib
import os
import re
import subprocess
import sys
import tempfile
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "scenario"), os.path.join(HERE, "..", "servers")]
import yaml
from openapi import CustomResources, OpenAPI
from pyroscope import Skip, get
from tap import ANDIRON

CHART = os.path.join(HERE, "..", "..", "packaging", "helm", "andiron")
BACKEND = "backend:\n  pyroscope:\n    url: http://pyroscope:4040\n"
ENVIRONMENT = {"NODE_NAME": "n1", "POD_IP": "10.0.0.1", "BACKEND_USERNAME": "somebody"}
RELEASE = ("profiling", "andiron")
CREDENTIALS = "/etc/andiron-credentials"
WRITE = "--write" in sys.argv


class Loader(yaml.SafeLoader):
    """YAML in which a key that comes twice is a mistake."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.YAMLError(f"{node.start_mark}: {twice} twice")
        return super().construct_mapping(node, deep)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Case:
    def __init__(self, file, name, values, expected):
        self.file, self.name, self.values, self.expected = file, name, values, expected
        if not re.search("^(backend|config):", values, re.M) and "no base" not in values:
            self.values = BACKEND + values
        minor = re.match("# on (.*)\n", values)
        self.minor = minor[1] if minor else "1.37"
        release = re.search("^# named (.*)$", values, re.M)
        self.release = release[1] if release else "andiron"
        self.files = [f"{CHART}/{name}" for name in re.findall("^# with (.*)$", values, re.M)]

    def run(self, helm):
        """Helm's exit code, and what it rendered or said."""
        with tempfile.TemporaryDirectory() as folder:
            write(f"{folder}/values.yaml", self.values)
            done = subprocess.run(
                [helm, "template", self.release, CHART, "--namespace=profiling"]
                + [f"--values={file}" for file in [*self.files, f"{folder}/values.yaml"]]
                + [f"--kube-version={self.minor}"],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "HELM_CACHE_HOME": folder, "HELM_CONFIG_HOME": folder},
            )
        return done.returncode, done.stdout if done.returncode == 0 else done.stderr


def cases(file):
    parts = re.split(r"^=== (.*)\n", read(f"{HERE}/cases/{file}"), flags=re.M)[1:]
    for name, text in zip(parts[::2], parts[1::2]):
        values, _, expected = text.partition("---\n")
        yield Case(file, name, values, expected)


def objects(text):
    """The objects of a rendering, as lines; by kind, and by namespace and name too where a kind is
    several times there and the name is not the release's. A file of the chart that stands there as
    it is, is only named."""
    found = {}
    for name in os.listdir(f"{CHART}/files"):
        whole = read(f"{CHART}/files/{name}").strip()
        for indent in ("  ", "    "):
            text = text.replace(textwrap.indent(whole, indent), f"{indent}<files/{name}>")
    for part in re.split(r"^---\n", text, flags=re.M):
        lines = [line for line in part.split("\n") if not line.startswith("# Source:")]
        thing = yaml.load("\n".join(lines), Loader)
        if thing:
            name = thing["metadata"].get("namespace", ""), thing["metadata"]["name"]
            same = found.setdefault(thing["kind"], {})
            assert name not in same, f"{thing['kind']} {name} is rendered twice"
            same[name] = "\n".join(lines).strip().split("\n")
    return {
        kind if len(same) == 1 or name == RELEASE else f"{kind} {'/'.join(name)}": lines
        for kind, same in found.items()
        for name, lines in same.items()
    }


def differences(base, mine):
    """How a rendering differs from the base's."""
    lines = []
    for name in sorted({**base, **mine}):
        before, now = base.get(name), mine.get(name)
        if now is None:
            lines.append(f"without {name}")
        elif before is None:
            lines += [f"with {name}"] + ["  " + line for line in now]
        elif before != now:
            lines.append(f"in {name}")
            for line in list(difflib.unified_diff(before, now, lineterm="", n=1))[2:]:
                lines.append("  " + re.sub("^@@.*", "@@", line).rstrip())
    return "\n".join(lines) + "\n"


def judge(things):
    """What is wrong with the objects of a rendering."""
    for thing in things:
        for api in APIS:
            yield from api.judge(thing)
        if thing["kind"] == "ConfigMap" and "config.alloy" in thing["data"]:
            with tempfile.TemporaryDirectory() as folder:
                text = thing["data"]["config.alloy"]
                for name in re.findall(f'filename *= "{CREDENTIALS}/(.*)"', text):
                    write(f"{folder}/{name}", "secret\n")
                write(f"{folder}/config.alloy", text.replace(CREDENTIALS, folder))
                done = subprocess.run(
                    [ANDIRON, "validate", f"{folder}/config.alloy"],
                    capture_output=True,
                    text=True,
                    check=False,
                    env={**os.environ, **ENVIRONMENT},
                )
            if done.returncode or "warning" in done.stderr:
                yield done.stdout + done.stderr


def rendered(case):
    """The differences, and what is wrong."""
    (code, text), (code_4, text_4) = (case.run(helm) for helm in HELMS)
    if code or code_4:
        return "", [text, text_4]
    mine, other = (list(filter(None, yaml.load_all(t, Loader))) for t in (text, text_4))
    order = lambda things: sorted(things, key=str)
    wrong = list(judge(mine))
    if order(mine) != order(other):
        wrong.append("Helm 3 and Helm 4 do not agree")
    if case.name == "base":
        return objects(text), wrong
    return differences(BASE, objects(text)), wrong


def refused(case):
    """The message, and what is wrong."""
    said = set()
    for helm in HELMS:
        code, text = case.run(helm)
        if code == 0:
            return "", ["it is rendered"]
        text = text.split("\nUse --debug")[0].strip()
        text = re.sub(r"(?m)^.*warning: (cannot|destination|skipped).*\n", "", text)
        text = re.sub(r"^Error: .*execution error at \(\S+\): *", "", text).lstrip()
        text = re.sub(r"(?s)^Error: values don't meet.*?\nandiron:\n", "", text)
        said.add(text.strip() + "\n")
    return min(said), [f"Helm 3 and Helm 4 do not agree: {said}"] if len(said) > 1 else []


def go_through(pool):
    """(name of the case, what is wrong) of each; writes files anew where that is wanted."""
    for file in sorted(os.listdir(f"{HERE}/cases")):
        asked = list(cases(file))
        answers = pool.map(refused if file == "refused.txt" else rendered, asked)
        text = ""
        for case, (answer, wrong) in zip(asked, answers):
            if not WRITE and answer.strip() != case.expected.strip():
                was, now = case.expected.strip().split("\n"), answer.strip().split("\n")
                wrong = wrong + list(difflib.unified_diff(was, now, "expected", "is", lineterm=""))
            values = case.values.removeprefix(BACKEND)
            text += f"=== {case.name}\n{values}---\n{answer.strip()}\n\n"
            yield f"{file[:-4]}: {case.name}", wrong
        if WRITE:
            write(f"{HERE}/cases/{file}", text.rstrip("\n") + "\n")


try:
    HELMS = [get("helm3"), get("helm4")]
    FOLDER = get("kubernetes-openapi")
    OPERATOR = get("prometheus-operator-crds")
except Skip as why:
    print(f"1..0 # SKIP {why}")
    sys.exit()
APIS = [OpenAPI(f"{FOLDER}/{minor}") for minor in sorted(os.listdir(FOLDER))]
APIS.append(CustomResources(f"{OPERATOR}/crds", "the Prometheus operator"))
BASE, problems = rendered(Case("", "base", "", ""))
whole = "---\n".join("\n".join(BASE[name]) + "\n" for name in BASE)
if WRITE:
    write(f"{HERE}/base.yaml", whole)
results = [("base", problems)]
if whole != read(f"{HERE}/base.yaml"):
    results[0][1].extend(
        difflib.unified_diff(
            read(f"{HERE}/base.yaml").split("\n"), whole.split("\n"), "expected", "is", lineterm=""
        )
    )
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
    results += go_through(workers)
print(f"1..{len(results)}")
for number, (title, wrong) in enumerate(results, 1):
    print(f"{'not ok' if wrong else 'ok'} {number} - {title}")
    for line in "\n".join(wrong).split("\n") if wrong else []:
        print(f"# {line}")
sys.exit(any(wrong for _, wrong in results))
