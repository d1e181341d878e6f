# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of an image: SPDX 2.3, as a Python value that JSON can say.

It lists every file with its digests, and every package of Debian's that a file is of, with version,
source and licence. Only the files that are in the image count for a package. What is linked
statically has no file, and is listed as that. The text has no time or chance of its own: equal
input gives an equal bill.
"""

import hashlib
import os
import re
import subprocess
import time
import uuid

# What each source package's libraries are under. Debian's copyright files say it for all of a
# source: its tests, its build system, its tools. These are of the parts that are in the image.
LICENCES = {
    "brotli": "MIT",
    "ca-certificates": "MPL-2.0",
    "curl": "curl",
    "cyrus-sasl2": "BSD-4-Clause",
    "e2fsprogs": "MIT",
    "elfutils": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "glibc": "LGPL-2.1-or-later",
    "gmp": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "gnutls28": "LGPL-2.1-or-later",
    "jansson": "MIT",
    "keyutils": "LGPL-2.0-or-later",
    "krb5": "MIT",
    "libbpf": "LGPL-2.1-only OR BSD-2-Clause",
    "libffi": "MIT",
    "libiberty": "LGPL-2.1-or-later",
    "libidn2": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libmicrohttpd": "LGPL-2.1-or-later",
    "libpsl": "MIT",
    "libssh2": "BSD-3-Clause",
    "libtasn1-6": "LGPL-2.1-or-later",
    "libunistring": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libyaml": "MIT",
    "libzstd": "BSD-3-Clause OR GPL-2.0-only",
    "nettle": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "nghttp2": "MIT",
    "openldap": "OLDAP-2.8",
    "openssl": "Apache-2.0",
    "p11-kit": "BSD-3-Clause",
    "protobuf-c": "BSD-2-Clause",
    "rtmpdump": "LGPL-2.1-or-later",
    "xz-utils": "LicenseRef-public-domain",
    "zlib": "Zlib",
}
PUBLIC_DOMAIN = {
    "licenseId": "LicenseRef-public-domain",
    "name": "Public domain",
    "extractedText": "This file has been put into the public domain. You can do whatever you want "
    "with this file.",
}
STATIC = ["libiberty-dev"]  # there is no shared one


def day(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(seconds)))


class Package:
    """A package of Debian's: `files` are those of the image."""

    def __init__(self, root, fields):
        self.name, self.version, self.arch, self.source, self.source_version = fields
        self.copyright = f"{root.rstrip('/')}/usr/share/doc/{self.name}/copyright"
        self.licence = LICENCES.get(self.source, "NOASSERTION")
        self.files = []


def dpkg(root, *words):
    """What dpkg-query says of the packages in a root; nothing where there is no dpkg."""
    try:
        done = subprocess.run(
            ["dpkg-query", f"--admindir={root.rstrip('/')}/var/lib/dpkg", *words],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError:
        return ""
    return done.stdout


def owners(paths, root):
    """{path: name of the package}, for what is of a package. /lib is another name of /usr/lib, and
    a package may say either."""
    named = {}
    for path in paths:
        bare = path.removeprefix("/usr")
        named |= {bare: path, "/usr" + bare: path}
    found = {}
    for line in dpkg(root, "--search", *named).splitlines():
        packages, _, path = line.rpartition(": ")
        if path in named and not packages.startswith("diversion "):
            found[named[path]] = packages.split(", ")[0]
    if "/etc/ssl/certs/ca-certificates.crt" in paths:
        found["/etc/ssl/certs/ca-certificates.crt"] = "ca-certificates"  # made when it is installed
    return found


def packages(paths, root):
    """The packages that these files are of, and those that are linked statically."""
    known = {}
    shape = "${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\n"
    found = owners(paths, root)
    # The authorities are this machine's; they are no library of an architecture.
    for place, names in ((root, [*found.values(), *STATIC]), ("/", ["ca-certificates"])):
        names = sorted(
            {n for n in names if (n == "ca-certificates") == (names == ["ca-certificates"])}
        )
        for line in dpkg(place, "--show", f"--showformat={shape}", *names).splitlines():
            package = Package(place, line.split("\t"))
            known[package.name] = package
    for path, name in sorted(found.items()):
        known[name.partition(":")[0]].files.append(path)
    return [known[name] for name in sorted(known)]


def identity(kind, text):
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.-]", "-", text.lstrip("/"))


def described(kind, name, version, files, found, **more):
    """A package of the bill that has these files."""
    sums = sorted(hashlib.sha1(found[path][0]).hexdigest() for path in files)
    return {
        "SPDXID": identity(kind, name),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "licenseConcluded": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "filesAnalyzed": bool(files),
        **(
            {
                "packageVerificationCode": {
                    "packageVerificationCodeValue": hashlib.sha1("".join(sums).encode()).hexdigest()
                },
                "licenseInfoFromFiles": ["NOASSERTION"],
            }
            if files
            else {}
        ),
        **more,
    }


def of_debian(package, found):
    version = package.version.replace("+", "%2B").replace(":", "%3A").replace("~", "%7E")
    return described(
        "Package",
        package.name,
        package.version,
        package.files,
        found,
        licenseDeclared=package.licence,
        licenseComments=f"All that its source has is in /usr/share/doc/{package.name}/copyright.",
        supplier="Organization: Debian",
        sourceInfo=f"built from Debian's source package {package.source} {package.source_version}",
        externalRefs=[
            {
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": f"pkg:deb/debian/{package.name}@{version}?arch={package.arch}",
            }
        ],
    )


def bill(found, debian, version, made):
    """The document for files as the image has them, {path: (bytes, mode)}."""
    theirs = {path for package in debian for path in package.files}
    ours = sorted(set(found) - theirs)
    own = described(
        "Package",
        "andiron",
        version,
        ours,
        found,
        licenseDeclared="Apache-2.0",
        supplier="NOASSERTION",
        primaryPackagePurpose="CONTAINER",
    )
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"])]
    for package, files in [(own, ours), *((p, p.files) for p in debian)]:
        named = own["SPDXID"] if package is own else identity("Package", package.name)
        relations += [(named, "CONTAINS", identity("File", path)) for path in sorted(files)]
    for package in debian:
        kind = "STATIC_LINK" if package.name in STATIC else "CONTAINS"
        relations.append((own["SPDXID"], kind, identity("Package", package.name)))
    content = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"andiron-{version}",
        "creationInfo": {"created": made, "creators": ["Tool: andiron-image"]},
        "packages": [own] + [of_debian(package, found) for package in debian],
        "files": [
            {
                "SPDXID": identity("File", path),
                "fileName": "." + path,
                "checksums": [
                    {
                        "algorithm": "SHA1",
                        "checksumValue": hashlib.sha1(found[path][0]).hexdigest(),
                    },
                    {
                        "algorithm": "SHA256",
                        "checksumValue": hashlib.sha256(found[path][0]).hexdigest(),
                    },
                ],
                "licenseConcluded": "NOASSERTION",
                "licenseInfoInFiles": ["NOASSERTION"],
                "copyrightText": "NOASSERTION",
            }
            for path in sorted(found)
        ],
        "relationships": [
            {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
            for one, kind, other in relations
        ],
    }
    if any(PUBLIC_DOMAIN["licenseId"] in package.licence for package in debian):
        content["hasExtractedLicensingInfos"] = [PUBLIC_DOMAIN]
    # A name of the document for itself: what it says decides it.
    content["documentNamespace"] = uuid.uuid5(uuid.NAMESPACE_OID, repr(content)).urn
    return content
