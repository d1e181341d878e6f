# SPDX-License-Identifier: Apache-2.0
"""Debian packages of other suites and architectures, from the machine's own source.

Nothing of the machine's apt is touched and nothing is installed: the source that
the machine has for its own release is copied into a root of our own with the
suite's name changed, packages are downloaded there and unpacked where we say.
Mirror, keyring, proxy and options stay what the machine's administrator chose.
"""

import glob
import os
import re
import subprocess


class Missing(Exception):
    """What cannot be had here, and what would help."""


def release():
    """This machine's suite by name."""
    with open("/etc/os-release", encoding="utf-8") as f:
        found = re.search(r"^VERSION_CODENAME=\"?(\w+)", f.read(), re.M)
    if not found:
        raise Missing("this is no Debian release with a name; run it on Debian")
    return found.group(1)


def of_stanzas(text):
    """What a .sources file says, each stanza as a dictionary of its fields (sources.list(5))."""
    for part in re.split(r"\n\s*\n", re.sub(r"^#.*\n", "", text, flags=re.M)):
        fields = dict(re.findall(r"^([\w-]+):[ \t]*((?:.|\n[ \t])*)", part, re.M))
        if fields and fields.get("Enabled", "yes").strip() != "no":
            yield fields


def of_lines(text):
    """What a .list file says, in the same form."""
    for options, uri, suite, components in re.findall(
        r"^deb\s+(\[.*?\]\s+)?(\S+)\s+(\S+)\s+(.*)$", text, re.M
    ):
        signed = re.search(r"signed-by=([^\s\]]+)", options, re.I)
        yield {
            "Types": "deb",
            "URIs": uri,
            "Suites": suite,
            "Components": components,
            **({"Signed-By": signed.group(1)} if signed else {}),
        }


def sources():
    """The machine's, both kinds."""
    lines = ["/etc/apt/sources.list"] + sorted(glob.glob("/etc/apt/sources.list.d/*.list"))
    for path in sorted(glob.glob("/etc/apt/sources.list.d/*.sources")) + lines:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                yield from (of_lines if path in lines else of_stanzas)(f.read())


def own_source(suite, known):
    """Of these sources the one that has the suite itself: (URIs, Signed-By or None)."""
    for fields in known:
        if suite in fields.get("Suites", "").split() and "deb" in fields.get("Types", "").split():
            if "main" in fields.get("Components", "").split():
                return fields["URIs"].strip(), fields.get("Signed-By", "").rstrip() or None
    raise Missing(f"no source in /etc/apt has {suite} main; add the distribution's own source")


CONFIGURATION = """\
Dir::Etc::sourcelist "{root}/suites.sources";
Dir::Etc::sourceparts "-";
Dir::Etc::preferencesparts "-";
Dir::Etc::preferences "{root}/preferences";
Dir::State "{root}";
Dir::State::lists "{root}/lists";
Dir::State::status "{root}/status";
Dir::Cache "{root}/cache";
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Architectures;
#clear Acquire::IndexTargets;
APT::Architecture "{arch}";
APT::Architectures {{ "{arch}"; }};
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::IndexTargets::deb::Packages {{
	MetaKey "$(COMPONENT)/binary-$(ARCHITECTURE)/Packages";
	flatMetaKey "Packages";
	ShortDescription "Packages";
	Description "$(RELEASE)/$(COMPONENT) $(ARCHITECTURE) Packages";
}};
"""


def record(deb, admin):
    """Enters a package that was unpacked into a database of dpkg's: what it is, and its files."""
    ask = lambda *what: subprocess.run(what, capture_output=True, text=True, check=True).stdout
    fields = ask("dpkg-deb", "--field", deb).rstrip()
    named = dict(re.findall(r"^(Package|Architecture|Multi-Arch): (.*)$", fields, re.M))
    name = named["Package"]
    if named.get("Multi-Arch") == "same":  # such files are called NAME:ARCHITECTURE.list
        name += ":" + named["Architecture"]
    os.makedirs(os.path.join(admin, "info"), exist_ok=True)
    with open(os.path.join(admin, "info/format"), "w", encoding="utf-8") as f:
        f.write("1\n")
    with open(os.path.join(admin, "status"), "a", encoding="utf-8") as f:
        f.write(f"{fields}\nStatus: install ok unpacked\n\n")
    with open(os.path.join(admin, "info", f"{name}.list"), "w", encoding="utf-8") as f:
        for line in ask("dpkg-deb", "--contents", deb).splitlines():
            path = line.split(None, 5)[5].partition(" -> ")[0]
            f.write((path.removeprefix(".").rstrip("/") or "/.") + "\n")


class Root:
    """An apt of our own under a folder; Debian's name for the architecture; suites."""

    def __init__(self, folder, arch, suites):
        self.folder, self.arch, self.suites = os.path.abspath(folder), arch, suites

    def _write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
            f.write(text)

    def _apt(self, *command, **options):
        done = subprocess.run(
            [command[0], "-c", os.path.join(self.folder, "apt.conf"), *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=600,
            env=dict(os.environ, LC_ALL="C"),
            **options,
        )
        if done.returncode != 0:
            raise Missing(
                f"{' '.join(command)} for {'/'.join(self.suites)} {self.arch} failed: "
                f"{done.stderr.strip()[-600:]}"
            )
        return done.stdout

    def update(self):
        """Fetches the suites' lists. Of equal rank, so the highest version is the candidate."""
        uris, signed = own_source(release(), sources())
        for name in ("lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        self._write("status", "")
        self._write("apt.conf", CONFIGURATION.format(root=self.folder, arch=self.arch))
        self._write("preferences", "Package: *\nPin: release *\nPin-Priority: 500\n")
        self._write(
            "suites.sources",
            f"Types: deb\nURIs: {uris}\nSuites: {' '.join(self.suites)}\nComponents: main\n"
            + (f"Signed-By: {signed}\n" if signed else ""),
        )
        self._apt("apt-get", "-q", "update")

    def depends(self, package):
        """The packages that the candidate depends on, by name."""
        told = self._apt("apt-cache", "depends", "--important", package)
        return re.findall(r"^ [ |]Depends: (\S+)", told, re.M)

    def with_dependencies(self, packages):
        """These and all that they depend on, as apt would install them on an empty machine."""
        told = self._apt("apt-get", "-q", "--print-uris", "install", "--yes", *packages)
        return sorted(set(re.findall(r"^'[^']+' ([^_ ]+)_", told, re.M)))

    def unpack(self, packages, folder, members=(), database=False):
        """Downloads the candidates and unpacks them, or only these members of them; with a
        database there, `dpkg-query --admindir` says which package a file is of."""
        downloads = os.path.join(self.folder, "downloads")
        os.makedirs(downloads, exist_ok=True)
        os.makedirs(folder, exist_ok=True)
        try:
            self._apt("apt-get", "-q", "download", *packages, cwd=downloads)
            for deb in sorted(glob.glob(os.path.join(downloads, "*.deb"))):
                with subprocess.Popen(
                    ["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE
                ) as tar:
                    subprocess.run(
                        ["tar", "-x", "-C", folder, "--no-same-owner", "--wildcards", *members],
                        stdin=tar.stdout,
                        stderr=subprocess.DEVNULL if members else None,
                        check=not members,
                        timeout=600,
                    )
                    tar.stdout.read()  # what tar left of it
                if database:
                    record(deb, os.path.join(folder, "var/lib/dpkg"))
        finally:
            for deb in glob.glob(os.path.join(downloads, "*.deb")):
                os.remove(deb)
