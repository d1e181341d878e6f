#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Modules that come from a server (import.http) or change in their files (import.file), while the
agent runs."""

import contextlib
import json
import os
import re
import signal
import urllib.error

from answers import Server, by_path, endless, says
from ports import free_port
from running import Agent, ask, get
from tap import andiron, case, main, write

IMPORT = """
import.http "lib" {
  url            = "http://127.0.0.1:%d/lib"
  poll_frequency = "1s"
  poll_timeout   = "900ms"
%s
}
"""
# Beside what is imported: of it nothing waits.
SERVES = "status.http {\n  listen_port = %d\n  reload = true\n}\n"
# What the module brings is seen by the label that its exports give.
MODULE = """
declare "pods" {
  argument "name" { }
  discovery.relabel "r" {
    targets = [{"__address__" = "a", "who" = argument.name.value}]
    rule {
      target_label = "version"
      replacement  = "%s"
    }
  }
  export "targets" {
    value = discovery.relabel.r.output
  }
}
"""
USES = """
lib.pods "p" {
  name = "me"
}
discovery.relabel "out" {
  targets = lib.pods.p.targets
}
"""


def listens(port):
    with contextlib.suppress(urllib.error.URLError, ConnectionError):
        return get(port, "/-/healthy")[0] == 200


def components(port):
    return {c["localID"]: c for c in json.loads(get(port, "/api/v0/web/components")[1])}


def version(port, inside="lib.pods.p/discovery.relabel.r"):
    """What the module says of itself, as it runs."""
    if not listens(port):
        return None
    code, text = get(port, f"/api/v0/web/components/{inside}")
    found = re.search(r'"name":"replacement".{0,80}?"value":"([^"]*)"', text)
    return found[1] if code == 200 and found else None


def until_known(agent, component, *state):
    """The component comes with a module, and gets into that state."""
    agent.until(lambda: f'"{component}"' in ask("status", "/health")[1], f"{component} is known")
    agent.until_health(component, *state)


def reloads(agent):
    return len(re.findall(r"(?<!not )\breloaded", agent.text()))


@case
def module_of_a_url():
    """What needs the module waits for it, and all else runs. A new text of it is taken up without a
    reload; one that is no use changes nothing, and is told."""
    port = free_port()
    with Server(says("", 503)) as server:
        write("agent.alloy", SERVES % port + IMPORT % (server.port, "") + USES)
        andiron("validate", "agent.alloy").expect(
            0, "valid: 4 components", "what import.http.lib brings is not checked"
        )
        assert not server.seen, "validate asks nobody"
        with Agent("agent.alloy") as a:
            a.until(lambda: listens(port), "all else runs")
            a.until_health("import.http.lib", "unhealthy", "answered 503")
            a.until_health("lib.pods.p", "unhealthy", "waits for a value of import.http.lib")
            a.until_health("discovery.relabel.out", "unhealthy", "of import.http.lib")
            code, text = get(port, "/-/ready")
            assert code == 503 and "lib.pods.p: waits for" in text, text
            assert components(port)["lib.pods.p"]["name"] == "lib.pods", components(port)
            server.answer = says(MODULE % "one")
            a.until(lambda: version(port) == "one", "the module is taken")
            a.until_ready(port)
            a.until_health("import.http.lib", "healthy")
            server.answer = says(MODULE % "two")
            a.until(lambda: version(port) == "two", "a new text is taken")
            for fault, words in [
                (says("no", 500), "answered 500"),
                (endless(b"declare "), "last value stays"),
                (endless(b" "), "last value stays"),
                (says(b"\xff\xfe"), "not UTF-8"),
                (says("", 302, Location="/lib"), "last value stays"),
                (says("<html>an error page</html>"), "its value is refused"),
                (says(MODULE % "three" + "declare"), "its value is refused"),
                (says('declare "other" {}'), "its value is refused"),
            ]:
                server.answer = fault
                a.until_health("import.http.lib", "unhealthy", words)
                assert version(port) == "two", words
                server.answer = says(MODULE % "two")
                a.until_health("import.http.lib", "healthy")
            a.until_metric("alloy_config_last_load_successful", exactly=1)
            text = a.text()
            assert "content of import.http.lib:1:1: error:" in text, text
            assert 'the module lib declares no "pods"' in text, text
            assert "not reloaded, the old configuration goes on" in text, text
            server.stop()
            a.until_health("import.http.lib", "unhealthy", "the last value stays")
            before = reloads(a)
            a.signal(signal.SIGHUP)
            a.until(lambda: reloads(a) > before, "it reloads")
            assert version(port) == "two", "a reload keeps what was fetched"
            a.stop()


@case
def module_within_itself():
    """A module that imports itself is refused at its place, and what runs goes on; one that does so
    by ever other URLs comes to an end."""
    port, asked = free_port(), []

    def other(handler):
        asked.append(handler.path)
        says(f'import.http "m" {{\n  url = module_path + "{len(asked)}"\n}}\n')(handler)

    with Server(says(MODULE % "one")) as server:
        write("agent.alloy", SERVES % port + IMPORT % (server.port, "") + USES)
        with Agent("agent.alloy") as a:
            a.until(lambda: version(port) == "one", "the module is taken")
            server.answer = says(IMPORT % (server.port, "") + MODULE % "two")
            a.until_health("import.http.lib", "unhealthy", "its value is refused")
            a.until_says(
                'content of import.http.lib:1:1: error: a module imports itself: import.http "lib"'
            )
            assert version(port) == "one"
            assert a.metric("alloy_config_last_load_successful") == 0
            a.stop()
    deeper = "import.http.m" + "/import.http.m" * 7
    with Server(other) as server:
        write(
            "agent.alloy",
            SERVES % port
            + f'import.http "m" {{\n  url = "http://127.0.0.1:{server.port}/0"\n}}\n',
        )
        with Agent("agent.alloy") as a:
            a.until_says("import each other more than 8 levels deep")
            until_known(a, deeper, "unhealthy", "its value is refused")
            assert listens(port)
            a.stop()


@case
def modules_of_modules():
    """A module imports what lies beside it on its server, and a custom component of the second one
    is another's."""
    port = free_port()
    outer = """
import.http "inner" {
  url = module_path + "inner"
}
declare "pods" {
  argument "name" { }
  inner.pods "q" {
    name = argument.name.value
  }
  export "targets" {
    value = inner.pods.q.targets
  }
}
"""
    with Server(by_path(lib=says(outer), inner=says("", 404))) as server:
        write("agent.alloy", SERVES % port + IMPORT % (server.port, "") + USES)
        with Agent("agent.alloy") as a:
            inner = "import.http.lib/import.http.inner"
            until_known(a, "lib.pods.p/inner.pods.q", "unhealthy", f"waits for a value of {inner}")
            a.until_health(inner, "unhealthy", "answered 404")
            server.answer = by_path(lib=says(outer), inner=says(MODULE % "deep"))
            inside = "lib.pods.p/inner.pods.q/discovery.relabel.r"
            a.until(lambda: version(port, inside) == "deep", "both are taken")
            assert get(port, f"/api/v0/web/components/{inner}")[0] == 200
            a.stop()


@case
def reload_to_a_module_that_is_missing():
    """What runs is not given up for a module that may never come."""
    port = free_port()
    with Server(says("", 503)) as server:
        own = MODULE % "own" + 'pods "p" {\n  name = "me"\n}\n'
        write("agent.alloy", SERVES % port + own)
        with Agent("agent.alloy") as a:
            a.until(lambda: version(port, "pods.p/discovery.relabel.r") == "own", "it runs")
            write("agent.alloy", SERVES % port + IMPORT % (server.port, "") + USES)
            told = get(port, "/-/reload")
            assert told[0] == 202, told
            a.until_says("waits for a value of import.http.lib: the old configuration goes on")
            a.until_health("import.http.lib", "unhealthy", "answered 503")
            assert version(port, "pods.p/discovery.relabel.r") == "own"
            server.answer = says(MODULE % "new")
            a.until(lambda: version(port) == "new", "the new configuration is taken")
            assert version(port, "pods.p/discovery.relabel.r") is None
            a.stop()


@case
def module_of_a_file():
    """A module's file that changes is taken up without a signal, and so is one of a folder; half a
    file, or one that is gone, leaves what runs."""
    port = free_port()
    os.mkdir("folder")
    outer = """
import.file "inner" {
  filename = file.path_join(module_path, "folder")
}
declare "pods" {
  argument "name" { }
  inner.pods "q" {
    name = argument.name.value
  }
  export "targets" {
    value = inner.pods.q.targets
  }
}
"""
    write("outer.alloy", outer)
    write("folder/one.alloy", MODULE % "one")
    block = """
import.file "lib" {
  filename = "outer.alloy"
}
"""
    write("agent.alloy", SERVES % port + block + USES)
    inside = "lib.pods.p/inner.pods.q/discovery.relabel.r"
    with Agent("agent.alloy") as a:
        a.until(lambda: version(port, inside) == "one", "it runs")
        write("folder/one.alloy", MODULE % "two")
        a.until(lambda: version(port, inside) == "two", "a new text is taken")
        write("folder/two.alloy", (MODULE % "two")[:50])
        a.until_says("folder/two.alloy:")
        a.until_metric("alloy_config_last_load_successful", exactly=0)
        assert version(port, inside) == "two"
        os.remove("folder/two.alloy")
        a.until_metric("alloy_config_last_load_successful", exactly=1)
        os.rename("outer.alloy", "away")
        a.until_says("cannot read the module outer.alloy: No such file or directory")
        a.until_metric("alloy_config_last_load_successful", exactly=0)
        assert version(port, inside) == "two"
        write("outer.alloy", MODULE % "flat")
        a.until(lambda: version(port) == "flat", "another module is taken")
        a.until_metric("alloy_config_last_load_successful", exactly=1)
        a.stop()


@case
def files_that_nobody_tells_of():
    """Where the kernel does not say that a file has changed, detector = "poll" looks."""
    port = free_port()
    block = """
local.file "time" {
  filename       = "/proc/uptime"
  detector       = "poll"
  poll_frequency = "1s"
}
"""
    write("agent.alloy", SERVES % port + block)
    with Agent("agent.alloy") as a:
        a.until(lambda: reloads(a) > 2, "it looks again and again")
        a.stop()


main()
