#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate.py ANDIRON [--check]: values.schema.json, README.md and files/defaults.json of the chart
beside it.

They say what values.yaml and the option tables of the command and its plugins say, so none can
name a value, a bound or a choice that does not exist. values.yaml opens with the marks that are
read. With --check nothing is written; what would change is shown and is a failure.

The schema lets text pass where a list or a map is wanted, one of these for the other, and numbers
in maps of strings: templates know what to say of them.
"""

import difflib
import json
import os
import re
import subprocess
import sys

import yaml

CHART = os.path.join(os.path.dirname(os.path.abspath(__file__)), "andiron")
ROW = re.compile(r"^    (\w+)  ([\w()]+)(.*)\n {8}(.*)$", re.M)
DURATION = r"^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$"
# Languages by the names of their runtimes' components.
LANGUAGES = {"java": "runtime.jvm", "javascript": "runtime.v8", "python": "runtime.python"}


def path(name):
    return os.path.join(CHART, name)


def read(name):
    with open(path(name), encoding="utf-8") as file:
        return file.read()


class Tables:
    """What the command says of its components' options and of its flags."""

    def __init__(self, andiron):
        self.andiron = andiron
        self.verbs = {verb["verb"]: verb for verb in json.loads(self.ask("tables"))["verbs"]}
        plugins = json.loads(self.ask("plugins", "--json"))
        present = {c["name"] for plugin in plugins for c in plugin["components"]}
        missing = set(LANGUAGES.values()) - present
        assert not missing, f"no plugin has {missing}"

    def ask(self, *arguments):
        return subprocess.run(
            [self.andiron, *arguments], stdout=subprocess.PIPE, text=True, check=True
        ).stdout

    def option(self, component, name):
        """The schema of an option, its documentation in it."""
        rows = {row[0]: row[1:] for row in ROW.findall(self.ask("plugins", component))}
        kind, terms, doc = rows[name]
        schema = {"description": doc}
        if choices := re.search(r"one of ((?:\"\w+\" ?)+)", terms):
            return schema | {"enum": re.findall(r"\"(\w+)\"", choices[1])}
        if kind == "duration":
            return schema | {"type": "string", "pattern": DURATION}
        schema["type"] = {"bool": "boolean", "number": "integer"}.get(kind, "string")
        for word, key in (("least", "minimum"), ("most", "maximum")):
            if bound := re.search(rf"at {word} (-?\d+)", terms):
                schema[key] = int(bound[1])
        return schema

    def flag(self, verb, name):
        (flag,) = (flag for flag in self.verbs[verb]["flags"] if flag["name"] == name)
        schema = {"description": f"`--{name}`: {flag['help']}."}
        return schema | ({"enum": flag["choices"]} if flag["choices"] else {"type": "string"})


def marks(text, tables):
    """Path → words of a schema, from the comments above each key."""
    found, above, parents, hidden = {}, [], [], None
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        if line.lstrip().startswith("#"):
            above.append(line.strip()[1:].strip())
            continue
        key = re.match(r" *([\w./-]+):", line)
        if hidden is not None and (indent > hidden or not key):
            continue
        hidden = None
        if key:
            parents = [p for p in parents if p[0] < indent]
            name = ".".join([p[1] for p in parents] + [key[1]])
            found[name] = {}
            for comment in above:
                word, _, rest = comment.partition(" ")
                if word == "--":
                    found[name]["description"] = rest
                elif word == "@option":
                    found[name] = tables.option(*rest.split()) | found[name]
                elif word == "@flag":
                    found[name] = tables.flag(*rest.split()) | found[name]
                elif word == "@schema":
                    found[name] |= json.loads(rest)
            parents.append((indent, key[1]))
            if found[name].get("freeform") or found[name].get("additionalProperties"):
                hidden = indent if not found[name].get("additionalProperties") is True else None
        above = []
    return found


def from_others():
    """Keys of other charts that a template refuses with advice: {section or "": {name: whose}}."""
    file = read("templates/_from-others.tpl")
    text = re.search(r"fromOthers\" -}}\n(.*)\{\{- end }}", file, re.S)
    found = {}
    for whose, rows in yaml.safe_load(text[1]).items():
        for key in rows:
            section, _, name = key.rpartition(".")
            found.setdefault(section, {})[name] = f"It {whose}; refused with advice."
    return found


def schema_of(value, name, words, foreign):
    """The schema of a value that has this default."""
    mine = dict(words.get(name, {}))
    free = mine.pop("freeform", False)
    if (
        isinstance(value, dict)
        and value
        and not free
        and mine.get("additionalProperties") in (None, True)
    ):
        inner = {
            k: schema_of(v, f"{name}.{k}".strip("."), words, foreign) for k, v in value.items()
        }
        if not name:
            inner["enabled"] = {"type": "boolean", "description": "For a parent's `condition`."}
        for key, whose in foreign.get(name, {}).items():
            assert key not in inner, f"{name}.{key} exists, but _from-others.tpl refuses it"
            inner[key] = {"description": whose}
        return {"type": "object", "properties": inner, "additionalProperties": False} | mine
    if "enum" in mine or "type" in mine:
        return mine
    if mine.get("additionalProperties") == {"type": "string"}:
        mine["additionalProperties"] = {"type": ["string", "number", "boolean", "null"]}
    kinds = {bool: "boolean", int: "integer", str: "string"}
    kinds |= dict.fromkeys((list, dict), ["array", "object", "string"])
    return {"type": kinds[type(value)]} | mine


def defaults(values, schema):
    """What templates/_values.tpl wants to know: the defaults, and which values may be missing."""
    found = {}
    for key, value in values.items():
        inner = schema["properties"][key]
        if "properties" in inner:
            found[key] = defaults(value, inner)
        elif isinstance(value, (dict, list)):
            strings = isinstance(value, dict) and "additionalProperties" in inner
            found[f"{key} strings" if strings else f"{key} optional"] = value
        else:
            found[key] = value
    return found


def leaves(value, schema, name=""):
    """(name, default, schema) of each value without values of its own."""
    for key, inner in schema.get("properties", {}).items():
        if key not in value:
            continue
        full = f"{name}.{key}".strip(".")
        if "properties" in inner:
            yield from leaves(value[key], inner, full)
        else:
            yield full, value[key], inner


HEAD = """# andiron

{description}.

## Install
Build the image and put it where nodes find it ([docs/kubernetes.md]({docs})). Pods of this chart
see the node's processes and have six capabilities, so their namespace has the level `privileged`:

```
kubectl create namespace andiron
kubectl label namespace andiron pod-security.kubernetes.io/enforce=privileged
helm install andiron packaging/helm/andiron -n andiron \\
  --set image.registry=registry.example.com/tools \\
  --set backend.pyroscope.url=http://pyroscope.monitoring.svc.cluster.local:4040
```

- The backend is one of `backend.pyroscope.url`, `backend.parca.address` and
  `backend.otlp.endpoint`. All else has a default.
- Values have the names that Alloy's chart has for the same thing. What that chart, k8s-monitoring's
  or Parca's has and this one has not is refused, all of it at once, with what to write.
- A null takes a list or a map away. Everything else has its default then.
- Labels, annotations, headers and variables have text as values: `"1"` in quotes, or by
  `--set-string`.
- What is wrong is refused before anything is installed: unknown values by `values.schema.json`,
  what cannot work by the templates.
- Files: `config.alloy` in `/etc/andiron`; the Secrets' in `/etc/andiron-credentials` and
  `/etc/andiron-tls`; the spool in `/var/lib/andiron`. A `config` of your own may use them.
- `helm test andiron -n andiron` proves that a profile of a pod arrives. If it fails,
  `kubectl -n andiron logs andiron-test` says why; Helm 3 cannot show it (`--logs`) if it succeeds.
- `helm uninstall` leaves the spool on the nodes.
- As a part of another chart it takes `enabled`, which the parent's `condition` looks at, and
  `global`.

## Values
| value | default | meaning |
| --- | --- | --- |
"""


def cell(text):
    return text.replace("|", "\\|")


def readme(chart, values, schema):
    text = HEAD.format(docs="../../../docs/kubernetes.md", **chart)
    for name, default, inner in leaves(values, schema):
        meaning = inner.get("description", "")
        if choices := [f"`{choice}`" for choice in inner.get("enum", []) if choice]:
            if not all(choice in meaning for choice in choices):
                meaning += f" One of {', '.join(choices)}."
        if "minimum" in inner and "maximum" in inner:
            meaning += f" {inner['minimum']} to {inner['maximum']}."
        shown = json.dumps(default, ensure_ascii=False)
        text += f"| `{name}` | `{cell(shown)}` | {cell(meaning.strip())} |\n"
    return text


def generate(andiron):
    text, chart = read("values.yaml"), yaml.safe_load(read("Chart.yaml"))
    values, words = yaml.safe_load(text), marks(text, Tables(andiron))
    schema = schema_of(values, "", words, from_others())
    mine = {key: value for key, value in values.items() if key != "global"}
    schema = {"$schema": "http://json-schema.org/draft-07/schema#"} | schema
    return {
        "values.schema.json": json.dumps(schema, indent=1, ensure_ascii=False) + "\n",
        "README.md": readme(chart, values, schema),
        "files/defaults.json": json.dumps(defaults(mine, schema), separators=(",", ":")) + "\n",
    }


def main(andiron, check=None):
    stale = False
    for name, text in generate(andiron).items():
        if check is None:
            with open(path(name), "w", encoding="utf-8") as file:
                file.write(text)
        elif text != (read(name) if os.path.exists(path(name)) else ""):
            stale = True
            lines = difflib.unified_diff(
                read(name).split("\n"), text.split("\n"), name, lineterm=""
            )
            print("\n".join(lines))
    sys.exit(stale and "packaging/helm/generate.py ANDIRON makes them anew")


if __name__ == "__main__":
    main(*sys.argv[1:])
