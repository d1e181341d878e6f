#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""image.py BUILD: the image that packaging/kubernetes/image packs of BUILD.

What is judged is the archive as a registry or a node reads it: by digest, from index.json down.
With SCENARIO_DEPTH=all it is also built for arm64, and a second time elsewhere.
"""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(TOP, folder) for folder in ("tests/scenario", "tests/servers")]
import wire  # noqa: E402
from kubeapi import certify  # noqa: E402
from pyroscope import Pyroscope  # noqa: E402
from tap import DEPTH, case, environment, main, need_root, read, run, write  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
TOOL = os.path.join(TOP, "packaging/kubernetes/image")
CROSS = os.path.join(TOP, "packaging/cross/crossbuild.py")
BILL = "usr/share/andiron/andiron.spdx.json"
BYTES_MAX = 12_000_000
LABELS = "title description version licenses source revision created"
SOURCE = "https://git.example/andiron"
PREFIX = "org.opencontainers.image."
# By readelf's words.
MACHINES = {"amd64": "Advanced Micro Devices X86-64", "arm64": "AArch64"}


def pack(out, *builds, **environ):
    run(TOOL, "--source", SOURCE, *builds, out, env=environment(**environ)).expect(0)
    return out


class Image:
    """An archive read by digest; each blob must be what its name says."""

    def __init__(self, path):
        self.archive = tarfile.open(path)
        (self.named,) = self.document("index.json")["manifests"]
        self.index = json.loads(self.blob(self.named))
        self.of = {m["platform"]["architecture"]: m for m in self.index["manifests"]}

    def document(self, name):
        return json.load(self.archive.extractfile(name))

    def blob(self, descriptor):
        digest = descriptor["digest"].removeprefix("sha256:")
        data = self.archive.extractfile(f"blobs/sha256/{digest}").read()
        assert hashlib.sha256(data).hexdigest() == digest and len(data) == descriptor["size"]
        return data

    def manifest(self, architecture):
        return json.loads(self.blob(self.of[architecture]))

    def config(self, architecture):
        return json.loads(self.blob(self.manifest(architecture)["config"]))

    def layer(self, architecture):
        """The one layer, as a tar archive; its digest unpacked is what the config says."""
        (layer,) = self.manifest(architecture)["layers"]
        raw = gzip.decompress(self.blob(layer))
        diff = "sha256:" + hashlib.sha256(raw).hexdigest()
        assert self.config(architecture)["rootfs"]["diff_ids"] == [diff]
        return tarfile.open(fileobj=io.BytesIO(raw))

    def bytes(self, architecture):
        manifest = self.manifest(architecture)
        return manifest["config"]["size"] + sum(layer["size"] for layer in manifest["layers"])


def told(file):
    """What readelf says of an ELF file: (machine, names that it needs)."""
    said = run("readelf", "-hdlW", file, env=environment(LC_ALL="C")).out
    names = re.findall(r"(?:program interpreter: |Shared library: \[)([^\]]+)\]", said)
    return re.search(r"Machine:\s+(.*)", said)[1], names


def judge_files(image, architecture):
    """Root's files, no shell, nothing that gives rights, and all that a program needs."""
    layer = image.layer(architecture)
    for entry in layer:
        assert (entry.uid, entry.gid, entry.mtime) == (0, 0, 0), entry
        assert entry.isdir() or entry.isfile() and not entry.mode & 0o6022, entry
    names = {entry.name for entry in layer if entry.isfile()}
    assert not [n for n in names if os.path.basename(n) in ("sh", "bash", "dash", "busybox")]
    layer.extractall("root", filter="data")
    have = {os.path.basename(name) for name in names}
    programs = [n for n in names if layer.extractfile(n).read(4) == b"\x7fELF"]
    assert len(programs) > 40, programs
    for name in programs:
        machine, needed = told(f"root/{name}")
        assert machine == MACHINES[architecture], (name, machine)
        lost = [n for n in needed if n.lstrip("/") not in names and os.path.basename(n) not in have]
        assert not lost, (name, lost)
    return names


def judge_bill(image, architecture):
    """The bill of materials lists what is there: each file with its digest, each library with
    package, version and licence."""
    layer = image.layer(architecture)
    bill = json.load(layer.extractfile(BILL))
    assert (bill["spdxVersion"], bill["dataLicense"]) == ("SPDX-2.3", "CC0-1.0")
    names = {entry.name for entry in layer if entry.isfile()} - {BILL}
    listed = {f["fileName"].removeprefix("./"): f for f in bill["files"]}
    assert set(listed) == names, set(listed) ^ names
    for name, file in listed.items():
        data = layer.extractfile(name).read()
        sums = {c["algorithm"]: c["checksumValue"] for c in file["checksums"]}
        digests = {"SHA1": hashlib.sha1(data), "SHA256": hashlib.sha256(data)}
        assert sums == {kind: digest.hexdigest() for kind, digest in digests.items()}, name
    packages = {p["SPDXID"]: p for p in bill["packages"]}
    ids = [*packages, *(f["SPDXID"] for f in bill["files"]), "SPDXRef-DOCUMENT"]
    assert len(ids) == len(set(ids))
    relations = [tuple(r.values()) for r in bill["relationships"]]
    assert {end for one, _, other in relations for end in (one, other)} <= set(ids)
    owner = {other: one for one, kind, other in relations if kind == "CONTAINS"}
    for name, file in listed.items():
        package = packages[owner[file["SPDXID"]]]
        if "lib" in name.split("/")[0:2] and ".so" in name and "andiron" not in name:
            assert package["name"] != "andiron", name
    for package in packages.values():
        assert package["versionInfo"] and package["licenseDeclared"] != "NOASSERTION", package
        assert f"usr/share/doc/{package['name']}/copyright" in names, package
    linked = [packages[other]["name"] for _, kind, other in relations if kind == "STATIC_LINK"]
    assert linked == ["libiberty-dev"], linked
    print(f"# {architecture}: {image.bytes(architecture) / 1e6:.1f} MB compressed,", end=" ")
    print(f"{len(names)} files, {len(packages)} packages")


def judge(image, architecture):
    assert image.bytes(architecture) <= BYTES_MAX, image.bytes(architecture)
    judge_files(image, architecture)
    judge_bill(image, architecture)


@case
def contents():
    """The image of this build: at most 12 MB, every file accounted for, no shell."""
    image = Image(pack("image.tar", BUILD))
    (architecture,) = image.of
    judge(image, architecture)


@case
def described():
    """Labels and annotations say what it is, and its command answers."""
    need_root()
    image = Image(pack("image.tar", BUILD))
    (architecture,) = image.of
    config = image.config(architecture)
    for notes in (
        config["config"]["Labels"],
        image.manifest(architecture)["annotations"],
        image.index["annotations"],
    ):
        assert set(notes) >= {PREFIX + word for word in LABELS.split() if word != "revision"}, notes
        assert notes[PREFIX + "source"] == SOURCE and notes[PREFIX + "licenses"] == "Apache-2.0"
    assert config["config"]["User"] == "0:0"
    image.layer(architecture).extractall("root", filter="data")
    said = run("chroot", "root", *config["config"]["Entrypoint"], "--version", env={}).expect(0)
    assert config["config"]["Labels"][PREFIX + "version"] in said.out, said.out


@case
def authorities():
    """https works by the image's authorities.

    A server that none of them knows is refused, and accepted once its authority is among them."""
    need_root()
    image = Image(pack("image.tar", BUILD))
    (architecture,) = image.of
    image.layer(architecture).extractall("root", filter="data")
    command = image.config(architecture)["config"]["Entrypoint"]
    bundle = "root/etc/ssl/certs/ca-certificates.crt"
    assert read(bundle).count("BEGIN CERTIFICATE") > 100
    certify()
    write("root/profile.pb.gz", gzip.compress(wire.profile()))

    def push(server):
        words = ["push", "/profile.pb.gz", "--name", "shop", "--verify", "--to", server.url]
        return run("chroot", "root", *command, *words, env={})

    with Pyroscope("--tls-cert", "server.pem", "--tls-key", "server.key") as server:
        assert server.url.startswith("https://"), server.url
        push(server).expect(1, "certificate")
        write(bundle, read(bundle) + read("ca.crt"))
        push(server).expect(0, "sent 7  stored 7")


@case
def repeated():
    """Packed twice, by another clock, mask and folder: the same to the bit."""
    first = pack("one.tar", BUILD)
    os.mkdir("elsewhere")
    mask = os.umask(0o077)
    try:
        second = pack("two.tar", BUILD, TZ="Asia/Tokyo", TMPDIR=os.path.abspath("elsewhere"))
    finally:
        os.umask(mask)
    assert open(first, "rb").read() == open(second, "rb").read()


def elsewhere():
    """Built for amd64 and arm64, here and from a copy elsewhere: the same to the bit."""
    copy = os.path.abspath("some/other/folder")
    listed = run("git", "-C", TOP, "ls-files", "-co", "--exclude-standard").expect(0)
    for name in listed.out.splitlines():
        os.makedirs(os.path.dirname(os.path.join(copy, name)), exist_ok=True)
        shutil.copy(os.path.join(TOP, name), os.path.join(copy, name))
    here = os.path.join(BUILD, "packaging/build-arm64")
    subprocess.run([CROSS, "arm64", here], check=True, stderr=subprocess.DEVNULL)
    subprocess.run([f"{copy}/packaging/cross/crossbuild.py", "arm64", "b"], check=True, cwd=copy)
    subprocess.run(["meson", "setup", "a"], check=True, cwd=copy, stdout=subprocess.DEVNULL)
    sys.path.insert(0, os.path.dirname(CROSS))
    import crossbuild

    subprocess.run(
        ["ninja", "-C", "a", *crossbuild.installed(f"{copy}/a")],
        check=True,
        cwd=copy,
        stdout=subprocess.DEVNULL,
    )
    # The copy has no history, by which the bill of materials is dated.
    day = {"SOURCE_DATE_EPOCH": "1700000000"}
    image = Image(pack("here.tar", BUILD, here, **day))
    assert set(image.of) == set(MACHINES), image.of
    for architecture in image.of:
        judge(image, architecture)
        shutil.rmtree("root")
    other = Image(pack("there.tar", f"{copy}/a", f"{copy}/b", **day))
    for architecture in image.of:
        assert image.manifest(architecture)["layers"] == other.manifest(architecture)["layers"]


if DEPTH == "all" and os.uname().machine == "x86_64":
    case(elsewhere)

main()
