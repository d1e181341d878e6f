# SPDX-License-Identifier: Apache-2.0
"""Objects against Kubernetes's own OpenAPI, as its source has it for each minor. Strict: what a
schema does not name is wrong. The Prometheus operator's kinds are judged by its own definitions;
others that Kubernetes itself does not have are not judged."""

import glob
import json
import os
import re

KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


class OpenAPI:
    def __init__(self, folder):
        self.folder, self.minor, self.groups = folder, os.path.basename(folder), {}

    def group(self, version):
        """The schemas of "apps/v1", or None."""
        if version not in self.groups:
            name = "api__v1" if version == "v1" else "apis__" + version.replace("/", "__")
            path = f"{self.folder}/{name}_openapi.json"
            found = None
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    found = json.load(file)["components"]["schemas"]
            self.groups[version] = found
        return self.groups[version]

    def judge(self, thing):
        """What is wrong with an object."""
        version, kind = thing["apiVersion"], thing["kind"]
        schemas = self.group(version)
        if schemas is None:
            if version.partition("/")[0].endswith((".k8s.io", "apps")) or "/" not in version:
                yield f"{self.minor} has no {version}"
            return
        group, _, short = version.rpartition("/")
        wanted = {"group": group, "kind": kind, "version": short}
        for schema in schemas.values():
            if wanted in schema.get("x-kubernetes-group-version-kind", []):
                yield from self.compare(thing, schema, schemas, kind)
                return
        yield f"{self.minor}: {version} has no {kind}"

    def compare(self, value, schema, schemas, where):
        for inner in schema.get("allOf", []):
            schema = {**schema, **inner}
        if "$ref" in schema:
            schema = schemas[schema["$ref"].rpartition("/")[2]]
        if "oneOf" in schema or schema.get("format") == "int-or-string":
            if isinstance(value, bool) or not isinstance(value, (str, int, float)):
                yield f"{self.minor}: {where} is {value!r}, no string or number"
            return
        kind = KINDS.get(schema.get("type"))
        if kind and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            yield f"{self.minor}: {where} is {value!r}, no {schema['type']}"
            return
        if "enum" in schema and value not in schema["enum"]:
            yield f"{self.minor}: {where} is {value!r}, none of {schema['enum']}"
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{self.minor}: {where} is {value!r}, not of the form {schema['pattern']}"
        if isinstance(value, list):
            for number, item in enumerate(value):
                yield from self.compare(item, schema["items"], schemas, f"{where}[{number}]")
        if isinstance(value, dict):
            yield from self.compare_object(value, schema, schemas, where)

    def compare_object(self, value, schema, schemas, where):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{self.minor}: {where} has no {name}"
        names, others = schema.get("properties", {}), schema.get("additionalProperties")
        for key, item in value.items():
            inner = names.get(key, others)
            if inner is not None:
                yield from self.compare(item, inner, schemas, f"{where}.{key}")
            elif names:
                yield f"{self.minor}: {where} has {key}, which is unknown"


class CustomResources(OpenAPI):
    """CustomResourceDefinitions, as JSON in a folder."""

    def __init__(self, folder, minor):
        super().__init__(folder)
        self.minor, self.schemas = minor, {}
        for path in glob.glob(f"{folder}/*-crd.json"):
            with open(path, encoding="utf-8") as file:
                spec = json.load(file)["spec"]
            for version in spec["versions"]:
                kind = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
                self.schemas[kind] = version["schema"]["openAPIV3Schema"]
        assert self.schemas, f"there is no definition in {folder}"
        self.of_groups = {version.partition("/")[0] for version, _ in self.schemas}

    def judge(self, thing):
        version, kind = thing["apiVersion"], thing["kind"]
        if (version, kind) in self.schemas:
            yield from self.compare(thing, self.schemas[version, kind], {}, kind)
        elif version.partition("/")[0] in self.of_groups:
            yield f"{self.minor} has no {kind} of {version}"
