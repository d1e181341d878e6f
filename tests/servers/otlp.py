# SPDX-License-Identifier: Apache-2.0
"""Messages of OTLP's profiles signal, read and judged by the letter of opentelemetry-proto 1.10
(profiles/v1development/profiles.proto).

The rules are those that the signal's own checker (sig-profiling's profcheck) has; its module cannot
be had from the module proxy. Where ANDIRON_PROFCHECK names that program, it judges as well.
"""

import os
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scenario"))
from protobuf import fields, numbers, signed  # noqa: E402

MAPPING, LOCATION, FUNCTION, LINK, STRING, ATTRIBUTE, STACK = range(1, 8)
TABLES = {
    MAPPING: "mapping",
    LOCATION: "location",
    FUNCTION: "function",
    LINK: "link",
    STRING: "string",
    ATTRIBUTE: "attribute",
    STACK: "stack",
}


def all_of(message, number):
    return [value for field, value in fields(message) if field == number]


def one_of(message, number, absent=0):
    return dict(fields(message)).get(number, absent)


class Message:
    """An ExportProfilesServiceRequest, or ProfilesData, which begins alike."""

    def __init__(self, data):
        self.data = data
        self.resources = all_of(data, 1)
        dictionary = one_of(data, 2, b"")
        self.tables = {table: all_of(dictionary, table) for table in TABLES}
        self.strings = [text.decode() for text in self.tables[STRING]]

    def attributes(self, message, number=1):
        """{key: value} of the KeyValues in a field; keys and texts inline or by reference."""
        found = {}
        for pair in all_of(message, number):
            key = one_of(pair, 1, b"").decode() or self.strings[one_of(pair, 3)]
            value = dict(fields(one_of(pair, 2, b"")))
            assert key not in found, f"attribute {key} twice"
            found[key] = (
                value[1].decode()
                if 1 in value
                else (
                    signed(value[3])
                    if 3 in value
                    else self.strings[value[8]] if 8 in value else value
                )
            )
        return found

    def profiles(self):
        """(resource's attributes, profile) of all profiles."""
        for resource_profiles in self.resources:
            resource = self.attributes(one_of(resource_profiles, 1, b""))
            for scope_profiles in all_of(resource_profiles, 2):
                for profile in all_of(scope_profiles, 2):
                    yield resource, profile

    def total(self):
        """The sum of all values."""
        return sum(
            signed(n)
            for _, profile in self.profiles()
            for sample in all_of(profile, 2)
            for n in numbers(sample, 4)
        )

    def sample_types(self):
        """type:unit:period_type:period_unit of all profiles."""

        def spelled(message):
            return f"{self.strings[one_of(message, 1)]}:{self.strings[one_of(message, 2)]}"

        return {
            f"{spelled(one_of(p, 1, b''))}:{spelled(one_of(p, 5, b''))}" for _, p in self.profiles()
        }

    def names(self):
        return {self.strings[one_of(f, 1)] for f in self.tables[FUNCTION]}

    def check(self):
        """Raises AssertionError at the first rule that is broken."""
        used = {table: set() for table in TABLES}

        def refer(table, index, what):
            assert (
                0 <= index < len(self.tables[table])
            ), f"{what}: index {index} beyond the {TABLES[table]} table"
            used[table].add(index)

        def refer_attributes(message, number, what):
            keys = [one_of(self.tables[ATTRIBUTE][i], 1) for i in numbers(message, number)]
            assert len(keys) == len(set(keys)), f"{what}: a key twice"
            for i in numbers(message, number):
                refer(ATTRIBUTE, i, what)

        self.check_tables()
        assert self.resources, "no resource profiles"
        for resource_profiles in self.resources:
            scopes = all_of(resource_profiles, 2)
            assert scopes and all(
                all_of(scope, 2) for scope in scopes
            ), "a resource or a scope without profiles"
            self.attributes(one_of(resource_profiles, 1, b""))
        for _, profile in self.profiles():
            self.check_profile(profile, refer, refer_attributes)
        for i in sorted(used[STACK]):
            for at in numbers(self.tables[STACK][i], 1):
                refer(LOCATION, at, "stack")
        for i in sorted(used[LOCATION]):
            location = self.tables[LOCATION][i]
            refer(MAPPING, one_of(location, 1), "location")
            refer_attributes(location, 4, "location")
            for line in all_of(location, 3):
                refer(FUNCTION, one_of(line, 1), "line")
                assert (
                    signed(one_of(line, 2)) >= 0 and signed(one_of(line, 3)) >= 0
                ), "a negative line"
        for i in sorted(used[FUNCTION]):
            for number in (1, 2, 3):
                refer(STRING, one_of(self.tables[FUNCTION][i], number), "function")
        for i in sorted(used[MAPPING]):
            mapping = self.tables[MAPPING][i]
            start, limit = one_of(mapping, 1), one_of(mapping, 2)
            assert start == limit == 0 or start < limit, "a mapping that ends before it begins"
            refer(STRING, one_of(mapping, 4), "mapping")
            refer_attributes(mapping, 5, "mapping")
        for i in sorted(used[ATTRIBUTE]):
            refer(STRING, one_of(self.tables[ATTRIBUTE][i], 1), "attribute")
            refer(STRING, one_of(self.tables[ATTRIBUTE][i], 3), "attribute")
        self.check_orphans(used)

    def check_tables(self):
        for table, entries in self.tables.items():
            assert entries, f"the {TABLES[table]} table is empty"
            assert (
                not any(value for _, value in fields(entries[0]))
                if table != STRING
                else entries[0] == b""
            ), f"entry 0 of the {TABLES[table]} table is not the zero value"
            assert len(set(entries)) == len(
                entries
            ), f"the {TABLES[table]} table has an entry twice"
        for link in self.tables[LINK][1:]:
            assert (
                len(one_of(link, 1, b"")) == 16 and len(one_of(link, 2, b"")) == 8
            ), "a link without ids"

    @staticmethod
    def check_profile(profile, refer, refer_attributes):
        refer_attributes(profile, 11, "profile")
        for number in (1, 5):
            kind = one_of(profile, number, b"")
            refer(STRING, one_of(kind, 1), "value type")
            refer(STRING, one_of(kind, 2), "value type")
        start, shapes = one_of(profile, 3), set()
        for sample in all_of(profile, 2):
            values, times = numbers(sample, 4), numbers(sample, 5)
            assert values or times, "a sample of nothing"
            assert (
                len(values) == len(times) if values and times else len(values) <= 1
            ), "a sample's values do not fit its times"
            assert all(
                start <= t < start + one_of(profile, 4) for t in times
            ), "a time outside the profile's"
            shapes.add((bool(values), bool(times)))
            refer(STACK, one_of(sample, 1), "sample")
            refer(LINK, one_of(sample, 3), "sample")
            refer_attributes(sample, 2, "sample")
        assert len(shapes) <= 1, "samples of several shapes"

    def check_orphans(self, used):
        for pair in [p for r in self.resources for p in all_of(one_of(r, 1, b""), 1)]:
            used[STRING] |= {one_of(pair, 3), one_of(one_of(pair, 2, b""), 8)}
        for i in used[ATTRIBUTE]:
            used[STRING].add(one_of(one_of(self.tables[ATTRIBUTE][i], 2, b""), 8))
        for table, entries in self.tables.items():
            orphans = set(range(1, len(entries))) - used[table]
            assert not orphans, (
                f"the {TABLES[table]} table has entries that nothing refers to: "
                f"{sorted(orphans)[:5]}"
            )

    def check_elsewhere(self):
        """By the signal's own checker. It knows no references from a resource, as a Collector makes
        them: for what was sent by ourselves only."""
        if not os.environ.get("ANDIRON_PROFCHECK"):
            return
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.data)
            file.flush()
            done = subprocess.run(
                [os.environ["ANDIRON_PROFCHECK"], "-check-dupes", "-check-orphans", file.name],
                capture_output=True,
                text=True,
                check=False,
            )
        assert done.returncode == 0, done.stdout + done.stderr
