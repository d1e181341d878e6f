#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verbs that need no privilege: help, validate, plugins, inspect."""

import contextlib
import json
import os
import shutil
import socket
import threading

from tap import ANDIRON, andiron, case, environment, main, run, with_capabilities, write

GOOD = """
discovery.process "all" { }

pyroscope.ebpf "node" {
  forward_to   = [profile.file.out.receiver]
  targets      = discovery.process.all.targets
}

profile.file "out" {
  paths = ["out.folded"]
}
"""

ELSEWHERE = {
    "phlare.write": "pyroscope.write for phlare.write",
    "remote.vault": "local.file",
    "remote.s3": "remote.http",
    "profile.custom": "profiling_config",
}

# What stands in bodies of other products, and what is said of it.
FOREIGN = """
pyroscope.scrape "s" {
  targets    = []
  forward_to = [pyroscope.write.w.receiver]
  profiling_config {
    profile.heap { }
    profile.allocs { }
    profile.godeltaprof_heap { }
    profile.threadcreate { }
    profile.wall { }
  }
  metrics_path = "/debug"
}
pyroscope.ebpf "e" {
  forward_to   = [pyroscope.write.w.receiver]
  java_enabled = true
  frequency    = 97
}
pyroscope.write "w" {
  endpoint {
    url       = "http://localhost"
    tenant_id = "a"
    timeout   = "10s"
  }
}
"""
HINTS = [
    'did you mean "profile.memory"?',
    'did you mean "profile.memory"?',
    'did you mean "profile.godeltaprof_memory"?',
    'others are profile.custom "NAME" { … }, each with its path',
    'others are profile.custom "NAME" { … }, each with its path',
    "profiles have their paths in profiling_config",
    'did you mean "hotspot_enabled"?',
    'did you mean "sample_rate"?',
    'write headers = {"X-Scope-OrgID" = "…"}',
    'did you mean "remote_timeout"?',
]


@case
def help_lists_verbs():
    """Help lists the verbs, and each verb has help of its own."""
    text = andiron("--help").expect(0).out
    verbs = [line.split()[0] for line in text.splitlines() if line.startswith("  ")]
    assert {"record", "run", "validate", "plugins", "inspect", "doctor"} <= set(verbs), verbs
    for verb in verbs:
        andiron(verb, "--help").expect(0, f"usage: andiron {verb}")
    andiron("--version").expect(0, "andiron ", "ABI 1")
    andiron().expect(2, "usage:")


@case
def slips_get_suggestions():
    """A slip of the finger gets a suggestion and exit code 2."""
    andiron("recrod").expect(2, 'did you mean "record"?')
    andiron("frobnicate").expect(2, 'no verb "frobnicate"')
    andiron("record", "--frequncy", "5").expect(2, "did you mean --frequency?")
    andiron("record", "-d", "soon").expect(2, "takes a duration")
    andiron("record", "-F", "0").expect(2, "whole number")
    andiron("record", "10s").expect(2, "andiron record -- 10s")
    andiron("record", "--").expect(2, "which command?")
    andiron("record", "-o", "x.svg").expect(2, ".html (flame graph), .pb.gz (pprof) or .folded")
    andiron("record", "-o", "x.svg", "--", "true").expect(125, ".folded")
    andiron("record", "-p", "4194305").expect(2, "there is no process 4194305")
    andiron("validate").expect(2, "which configuration?")
    andiron("run", "--log-level", "loud", "x").expect(2, "error, warn, info or debug")


@case
def validates():
    """A good configuration is valid, with neither privilege nor effects."""
    write("good.alloy", GOOD)
    andiron("validate", "good.alloy").expect(0, "valid")
    assert os.listdir() == ["good.alloy"], os.listdir()
    andiron("validate", ".").expect(0, "valid")
    with open("good.alloy") as file:
        andiron("validate", "-", stdin=file).expect(0, "valid")
    with open("good.alloy") as file:
        r = andiron("validate", "-", "--json", "--stability.level=experimental", stdin=file)
    r.expect(0)
    n = json.loads(r.out)["components"]
    alloys = ["--server.http.listen-addr=127.0.0.1:12345", "--storage.path=/x", "good.alloy"]
    andiron("validate", *alloys).expect(0, f"valid: {n + 1} components")
    andiron("validate", "--config.format=prometheus", "good.alloy").expect(1, "alloy convert")
    andiron("validate", "--stability.level=nope", "good.alloy").expect(
        2, "--stability.level is experimental, public-preview or generally-available"
    )
    for name, instead in ELSEWHERE.items():
        write("elsewhere.alloy", f'{name} "a" {{\n}}\n')
        andiron("validate", "elsewhere.alloy").expect(1, f'no component "{name}"', instead)
    write("foreign.alloy", FOREIGN)
    r = andiron("validate", "--json", "foreign.alloy").expect(1)
    assert [f["hint"] for f in json.loads(r.out)["findings"]] == HINTS, r.out
    write("fast.alloy", GOOD.replace("  targets  ", "  sample_rate = 1000\n  targets  "))
    andiron("validate", "fast.alloy").expect(0, "999 samples per second", "not 1000")
    write("declared.alloy", 'declare "a" {\n}\n')
    andiron("validate", "declared.alloy").expect(0, "valid: 0 components")
    write("bad.alloy", "unknown {\n}\n")
    with open("bad.alloy") as file:
        andiron("validate", "-", stdin=file).expect(1, "<stdin>:1:1")


@case
def formats():
    """fmt prints, tests or rewrites a file, and leaves one that is broken."""
    ugly, neat = "a  =1\nbb = [ 2 ] // c", "a  = 1\nbb = [2] // c\n"
    write("f.alloy", ugly)
    os.chmod("f.alloy", 0o640)
    os.symlink("f.alloy", "link.alloy")
    assert andiron("fmt", "f.alloy").expect(0).out == neat
    assert andiron("format", "f.alloy").expect(0).out == neat  # Alloy's other name for it
    for standard_input in ([], ["-"]):
        with open("f.alloy") as file:
            assert andiron("fmt", *standard_input, stdin=file).expect(0).out == neat
    andiron("fmt", "--test", "f.alloy").expect(1, "f.alloy is not formatted")
    assert open("f.alloy").read() == ugly
    assert andiron("fmt", "-w", "link.alloy").expect(0).out == ""
    assert open("f.alloy").read() == neat
    assert os.stat("f.alloy").st_mode & 0o777 == 0o640 and os.path.islink("link.alloy")
    assert andiron("fmt", "f.alloy", "-t").expect(0).out == ""
    before = os.stat("f.alloy")
    andiron("fmt", "-w", "f.alloy").expect(0)
    assert os.stat("f.alloy").st_ino == before.st_ino
    broken = 'pyroscope.write "w" {\n  password = "hush hush\n'
    write("broken.alloy", broken)
    r = andiron("fmt", "-w", "broken.alloy").expect(1, "broken.alloy:2:", "not closed on its line")
    assert "hush" not in r.err and open("broken.alloy").read() == broken
    andiron("fmt", ".").expect(1, "is a directory")
    andiron("fmt", "absent.alloy").expect(1, "absent.alloy", "No such file")
    andiron("fmt", "-w").expect(2, "standard input")
    andiron("fmt", "-w", "-t", "f.alloy").expect(2, "either --write or --test")
    assert sorted(os.listdir()) == ["broken.alloy", "f.alloy", "link.alloy"], os.listdir()


@case
def all_errors_at_once():
    """All errors of a file come at once, each with place, line and suggestion."""
    write(
        "bad.alloy",
        GOOD.replace("targets  ", "target")
        .replace('"out" {', '"out" {\n  colour = 3')
        .replace("profile.file.out.receiver", "profile.file.outt.receiver"),
    )
    r = andiron("validate", "bad.alloy").expect(
        1, "bad.alloy:6:", 'did you mean "targets"?', "colour", "outt"
    )
    assert r.err.count("error:") >= 3, r.err


@case
def findings_as_json():
    """--json says all of it in one object, whatever is wrong."""
    write("good.alloy", GOOD)
    r = andiron("validate", "--json", "good.alloy").expect(0)
    assert json.loads(r.out)["valid"] and not r.err, (r.out, r.err)
    assert json.loads(r.out)["components"] >= 3 and json.loads(r.out)["findings"] == [], r.out
    write("bad.alloy", "tracing {}\n" + GOOD.replace("targets  ", "target"))
    r = andiron("validate", "--json", "bad.alloy").expect(1)
    said = json.loads(r.out)
    assert not said["valid"] and said["left_out"] == 0 and not r.err, (r.out, r.err)
    warning, error = said["findings"][:2]
    assert warning["severity"] == "warning" and warning["line"] == 1, said
    assert error["severity"] == "error" and error["line"] == 7, said
    assert (error["file"], error["column"], error["length"]) == ("bad.alloy", 3, 6), said
    assert error["hint"] == 'did you mean "targets"?' and '"target"' in error["message"], said
    r = andiron("validate", "--json", "absent.alloy").expect(1)
    assert "absent.alloy" in json.loads(r.out)["findings"][0]["message"], r.out


KUBERNETES = """
discovery.kubernetes "x" {
  role = "pod"
%s
}
"""


@case
def kubernetes_arguments():
    """Arguments of discovery.kubernetes that cannot be used are refused before anything is asked:
    each with its place and the cause."""
    server = '  api_server = "%s"'
    for arguments, line, words in (
        (server % "127.0.0.1:6443", 4, "must begin with http:// or https://"),
        (server % "https://", 4, "names no host"),
        (server % "https://me:secret@host", 4, "basic_auth takes user and password"),
        (server % "https://host/p?q", 4, "holds a query"),
        (server % "https://host" + '\n  kubeconfig_file = "x"', 5, "exclude each other"),
        (
            server % "https://host" + "\n  namespaces {\n    own_namespace = true\n  }",
            5,
            "own_namespace works in the cluster only",
        ),
        ('  bearer_token = "x"', 4, "HTTP client arguments need api_server"),
        ('  selectors {\n    role = "service"\n  }', 5, "of these roles only: pod, node"),
        (
            '  selectors {\n    role = "pod"\n    label = "a in b"\n  }',
            6,
            'this is no label selector: at character 6: "(" is missing',
        ),
        ('  selectors {\n    role = "pod"\n    field = "a"\n  }', 6, "this is no field selector"),
    ):
        andiron("validate", write("k.alloy", KUBERNETES % arguments)).expect(
            1, f"k.alloy:{line}:", words
        )
    for good in ("", server % "https://host:6443/clusters/a/", server % "http://[::1]:8080"):
        andiron("validate", write("k.alloy", KUBERNETES % good)).expect(0, "valid")


@case
def urls_of_servers():
    """A URL of a server that cannot be asked is refused with its place."""
    text = 'pyroscope.write "x" {\n  endpoint {\n    url = "%s"\n  }\n}\n'
    for url, words in (
        ("https://", "names no host"),
        ("pyroscope:4040", "must begin with http:// or https://"),
        ("http://me:secret@:4040", "names no host"),
    ):
        andiron("validate", write("w.alloy", text % url)).expect(
            1, "w.alloy:3:", f"this URL {words}"
        )
    text = 'otlp.write "x" {\n  protocol = "%s"\n  endpoint { url = "collector:4317" }\n}\n'
    andiron("validate", write("g.alloy", text % "grpc")).expect(0, "valid")
    andiron("validate", write("h.alloy", text % "http")).expect(1, "this URL must begin with")


@case
def missing_component_lists_directories():
    """A component that is not there lists every directory that was searched."""
    write("c.alloy", 'moon.shine "x" { }\n')
    andiron("validate", "c.alloy", "--plugin-dir", "/nowhere/plugins").expect(
        1, "moon.shine", "/nowhere/plugins (does not exist)"
    )


@case
def odd_files():
    """Empty, binary, huge, unreadable and absent files: one clear error each."""
    andiron("validate", "absent.alloy").expect(1, "absent.alloy", "No such file")
    andiron("validate", write("binary.alloy", bytes(range(256)) * 16)).expect(1, "binary.alloy")
    with open("huge.alloy", "wb") as f:
        f.truncate(100 << 20)
    r = andiron("validate", "huge.alloy").expect(1, "huge.alloy")
    assert len(r.err) < 4096, len(r.err)
    with open("long.alloy", "w") as f:
        f.write("// a comment\n" * ((100 << 20) // 13))
    andiron("validate", "long.alloy").expect(1, "long.alloy", "at most 16777216")
    os.mkdir("none")
    andiron("validate", "none").expect(1, "no file named *.alloy")
    r = andiron("validate", write("empty.alloy", ""))
    assert r.code in (0, 1) and "empty" in r.out + r.err + "empty", r.err


@case
def plugins_are_listed():
    """`plugins` lists components with their files, as a table and as JSON."""
    andiron("plugins").expect(0, "pyroscope.ebpf", "profile.file", "andiron-")
    listed = json.loads(andiron("plugins", "--json").expect(0).out)
    names = {c["name"] for p in listed for c in p["components"]}
    assert {"pyroscope.ebpf", "profile.file", "profile.symbolize"} <= names, names
    assert all(p["refused"] is None for p in listed), listed
    andiron("plugins", "pyroscope.ebpf").expect(
        0, "sample_rate", "default 19", "accepted and ignored"
    )
    andiron("plugins", "pyroscope.write").expect(0, "    isolate  bool")
    assert "isolate  bool" not in andiron("plugins", "pyroscope.scrape").expect(0).out
    andiron("plugins", "pyroscope.nothing").expect(1, "no plugin or component")
    path = next(
        p["path"] for p in listed if any(c["name"] == "profile.file" for c in p["components"])
    )
    andiron("inspect", path).expect(0, "profile.file", "paths", path)


@case
def faulty_plugins_are_refused():
    """A faulty plugin is refused with its reason, and the others work."""
    source = os.environ["TEST_PLUGINS"]
    os.mkdir("plugins")
    reasons = {
        "no-entry": "does not export andiron_plugin_v1",
        "other-abi": "version 2 of the plugin ABI",
        "undefined": "nobody_has_this_function",
        "needs": "andiron.moonlight/7",
    }
    for variant in [*reasons, "good"]:
        shutil.copy(f"{source}/andiron-test-{variant}.so", f"plugins/andiron-{variant}.so")
    whole = open("plugins/andiron-good.so", "rb").read()
    write("plugins/andiron-cut.so", whole[: len(whole) // 2])
    write("plugins/andiron-text.so", "#!/bin/sh\n")
    andiron("plugins", "--plugin-dir", "plugins").expect(
        0, "test.thing", "truncated", "not an ELF file", *reasons.values()
    )
    andiron("inspect", "plugins/andiron-cut.so").expect(1, "truncated")
    andiron("inspect", "plugins/andiron-other-abi.so").expect(1, "version 2")
    andiron("inspect", "plugins/andiron-good.so").expect(0, "test.thing", "An option.")


@case
def current_directory_is_not_searched():
    """Plugins of the current directory are never loaded by themselves."""
    shutil.copy(f"{os.environ['TEST_PLUGINS']}/andiron-test-good.so", "andiron-good.so")
    for path in (".", "", ":", ".:/nowhere"):
        r = andiron("plugins", env=environment(ANDIRON_PLUGIN_PATH=path)).expect(0)
        assert "test.thing" not in r.out, r.out
    andiron("plugins", "--plugin-dir", ".", env=environment(ANDIRON_PLUGIN_PATH="")).expect(
        0, "test.thing"
    )


@contextlib.contextmanager
def status_socket(path, *answers):
    """A status socket whose requests have these answers, one after the other; None: never one."""
    held = []

    def serve():
        with contextlib.suppress(OSError):
            for answer in answers:
                client, _ = listener.accept()
                while b"\r\n\r\n" not in client.recv(65536):
                    pass
                if answer:
                    body = answer.encode()
                    client.sendall(b"HTTP/1.0 %s\r\nContent-Length: 0\r\n\r\n" % body)
                    client.close()
                held.append(client)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            os.remove(path)


@case
def reload_waits_for_what_passes():
    """`andiron reload` asks again while an agent begins. What no patience changes ends it at once,
    and so does an agent that takes the request and never answers."""

    def reload(*arguments, path="s"):
        return ("reload", "--patience", "1h", *arguments, path)

    with status_socket("s", "503 Busy", "503 Busy", "200 OK"):
        andiron(*reload()).expect(0)
    with status_socket("s", "501 Not Supported"):
        andiron(*reload()).expect(1)
    with status_socket("s", None):
        andiron(*reload("--timeout", "300ms")).expect(1, "s has not answered within 300ms", "log")
    write("file", "")
    andiron(*reload(path="file")).expect(1, "cannot ask file: it is no socket", "--status")
    andiron(*reload(path="file/s")).expect(1, "cannot ask file/s: Not a directory")
    with status_socket("s", None):
        os.chmod("s", 0)
        refused = (
            with_capabilities([], ANDIRON, *reload()) if os.geteuid() == 0 else andiron(*reload())
        )
        refused.expect(1, "cannot ask s: Permission denied", "agent's user")


@case
def output_may_end():
    """Closed and full outputs end the command quietly or as a failure, never by a crash."""
    r = run("sh", "-c", f"'{ANDIRON}' plugins --json >/dev/full")
    assert r.code == 1, r.code
    r = run("sh", "-c", f"'{ANDIRON}' --help | head -c 1 >/dev/null; exit 0")
    assert r.code == 0, r.code


main()
