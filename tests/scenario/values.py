#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values that components supply while they run: remote.http, remote.kubernetes.secret and
.configmap, from real servers to other components' arguments."""

import base64
import contextlib
import json
import os
import re
import signal
import urllib.error

from answers import Server, by_path, endless, says
from kubeapi import TOKEN, KubeApi, refuses
from ports import free_port
from running import Agent, ask, get
from tap import andiron, case, main, write

CONTENT = """
remote.http "port" {
  url            = "http://127.0.0.1:%d/port"
  poll_frequency = "1s"
  poll_timeout   = "900ms"
  %s
}
status.http {
  listen_port = encoding.from_json(convert.nonsensitive(remote.http.port.content))
}
"""
API = """
  poll_frequency = "1s"
  client {
    api_server   = "https://127.0.0.1:%d"
    bearer_token = "%s"
    tls_config {
      ca_file = "ca.crt"
    }
  }
"""


def taken(agent):
    return len(re.findall(r"(?<!not )\breloaded", agent.text()))


def listens(port):
    with contextlib.suppress(urllib.error.URLError, ConnectionError):
        return get(port, "/-/healthy")[0] == 200


def exports(port, component):
    return get(port, f"/api/v0/web/components/{component}")[1]


MODULE = """
declare "pods" {
  discovery.relabel "r" {
    targets = [{"__address__" = "a"}]
    rule {
      target_label = "version"
      replacement  = "%s"
    }
  }
}
"""
IMPORT = """
import.string "lib" {
  content = remote.kubernetes.configmap.x.data["module"]
}
lib.pods "p" { }
"""


@case
def content_of_a_url():
    """remote.http gives its answer to an argument, and a new one without a reload. What waits for
    it begins with the first; what comes later and is no use changes nothing."""
    ports = [free_port(), free_port()]
    with Server(says("", 503)) as server:
        config = CONTENT % (server.port, "")
        write("agent.alloy", config.replace("http://127", "http://u:hush@127"))
        andiron("validate", "agent.alloy").expect(0, "valid: 2 components")
        with Agent("agent.alloy") as a:
            a.until_says("status.http for one of remote.http.port")
            a.until_health("remote.http.port", "unhealthy", "answered 503")
            a.until_health("status.http", "unhealthy", "waits for a value of remote.http.port")
            server.answer = says(f"\n {ports[0]} \n")
            a.until(lambda: listens(ports[0]), "it listens")
            a.until_health("remote.http.port", "healthy")
            assert "hush" not in a.text(), a.text()
            assert f'"value":"{ports[0]}"' in exports(ports[0], "remote.http.port")
            for fault, words in [
                (says("no", 500), "answered 500"),
                (endless(b"1"), "last value stays"),
                (endless(b"x" * 65536), "last value stays"),
                (says("1" * ((1 << 20) + 1)), "last value stays"),
                (says(b"\xff\xfe"), "not UTF-8"),
                (says("", 302, Location="/port"), "last value stays"),
            ]:
                server.answer = says(ports[0])
                a.until_health("remote.http.port", "healthy")
                server.answer = fault
                a.until_health("remote.http.port", "unhealthy", words)
                assert listens(ports[0]), words
            server.answer = says("<html>an error page</html>")
            a.until_says("not reloaded, the old configuration goes on")
            a.until_health("remote.http.port", "unhealthy", "its value is refused")
            assert listens(ports[0])
            server.answer = says(ports[1])
            a.until(lambda: listens(ports[1]), "the new content is taken")
            a.until(lambda: not listens(ports[0]), "the old port is closed")
            server.stop()
            a.until_health("remote.http.port", "unhealthy", "the last value stays")
            a.signal(signal.SIGHUP)
            a.until(lambda: a.text().count("reloaded") >= 3, "it reloads")
            assert listens(ports[1]), "a reload keeps the last value, too"
            assert a.metric("andiron_remote_failures_total") > 0
            a.stop()


@case
def what_waits_is_not_ready():
    """A writer that waits for a value is told by the probe and among the components."""
    port = free_port()
    with Server(says("", 503)) as server:
        write(
            "agent.alloy",
            f"""
status.http {{
  listen_port = {port}
}}
remote.http "url" {{
  url = "http://127.0.0.1:{server.port}/url"
}}
pyroscope.write "w" {{
  endpoint {{
    url = remote.http.url.content
  }}
}}
""",
        )
        with Agent("agent.alloy") as a:
            a.until(lambda: listens(port), "it listens")
            code, text = get(port, "/-/ready")
            assert code == 503, text
            assert "pyroscope.write.w: waits for a value of remote.http.url" in text, text
            states = {
                c["localID"]: c["health"]["state"]
                for c in json.loads(get(port, "/api/v0/web/components")[1])
            }
            assert states["pyroscope.write.w"] == "unhealthy", states
            assert get(port, "/api/v0/web/components/pyroscope.write.w")[0] == 200
            server.answer = says("http://127.0.0.1:9/")
            a.until_ready(port)  # it is asked again soon, not in a minute
            a.stop()


@case
def reload_to_a_value_that_is_missing():
    """A reload that would make what runs wait is made when the value is there; until then its
    component begins beside what runs. So is a value that is refused no reason to stop."""
    ports = [free_port(), free_port()]
    with Server(says("", 503)) as server:
        write("agent.alloy", f"status.http {{\n  listen_port = {ports[0]}\n  reload = true\n}}\n")
        with Agent("agent.alloy") as a:
            a.until(lambda: listens(ports[0]), "it listens")
            write("agent.alloy", CONTENT % (server.port, ""))
            told = get(ports[0], "/-/reload")
            assert told[0] == 202 and "a value is there" in told[1], told
            a.until_says(
                "status.http waits for a value of remote.http.port: the old configuration goes on"
            )
            a.until_metric("andiron_configuration_waiting", exactly=1)
            a.until_health("remote.http.port", "unhealthy", "answered 503")
            server.answer = says("<html>")
            a.until_health("remote.http.port", "unhealthy", "its value is refused")
            assert listens(ports[0])
            assert get(ports[0], "/-/ready")[0] == 200
            write("agent.alloy", "unknown.thing {\n}\n")
            said = andiron("reload", "--patience", "1m", "status")
            said.expect(1, "agent.alloy:1:1: error:", "unknown.thing", "the log says more")
            server.answer = says(ports[1])
            a.until(lambda: listens(ports[1]), "the new configuration is taken")
            a.until_says("the configuration that waited for a value runs now")
            a.until(lambda: not listens(ports[0]), "the old one is gone")
            a.until_health("remote.http.port", "healthy")
            a.until_metric("andiron_configuration_waiting", exactly=0)
            a.stop()


@case
def one_of_two_values_is_refused():
    """A value that is refused holds up no other one."""
    port = free_port()
    more = """
remote.http "key" {
  url            = "http://127.0.0.1:%d/key"
  poll_frequency = "1s"
  poll_timeout   = "900ms"
}
remote.http "user" {
  url            = "http://127.0.0.1:%d/user"
  headers        = { "X-Key" = remote.http.key.content }
  poll_frequency = "1s"
  poll_timeout   = "900ms"
}
"""
    answers = {"port": says(port), "key": says("k1"), "user": says("")}
    with Server(by_path(**answers)) as server:
        write("agent.alloy", CONTENT % (server.port, "") + more % (server.port, server.port))

        def asked_with(key):
            return any(s[1] == "/user" and s[2].get("X-Key") == key for s in server.seen)

        with Agent("agent.alloy") as a:
            a.until(lambda: listens(port), "it listens")
            a.until(lambda: asked_with("k1"), "the key is used")
            server.answer = by_path(**{**answers, "port": says("<html>"), "key": says("k2")})
            a.until_health("remote.http.port", "unhealthy", "its value is refused")
            a.until(lambda: asked_with("k2"), "the other value is used")
            assert listens(port)
            before = taken(a)
            a.signal(signal.SIGHUP)
            a.until(lambda: taken(a) > before, "it reloads")
            assert listens(port)
            server.answer = by_path(**answers)
            a.until_health("remote.http.port", "healthy")
            a.stop()


@case
def request_of_a_url():
    """remote.http asks by its method, headers and body; what is_secret is never shown."""
    port = free_port()
    with Server(says(port)) as server:
        more = """
  method    = "POST"
  headers   = { "X-Key" = "k1" }
  body      = "what is it?"
  is_secret = true
  client {
    basic_auth {
      username = "u"
      password = "p"
    }
  }"""
        write("agent.alloy", CONTENT % (server.port, more))
        with Agent("agent.alloy") as a:
            a.until(lambda: listens(port), "it listens")
            command, path, headers, body = server.seen[0]
            assert (command, path, body) == ("POST", "/port", b"what is it?"), server.seen[0]
            assert headers["X-Key"] == "k1", headers
            assert headers["Authorization"] == "Basic " + base64.b64encode(b"u:p").decode()
            shown = exports(port, "remote.http.port")
            assert "(secret)" in shown and str(port) not in shown and "k1" not in shown, shown
            a.stop()


def thing(kind, data):
    return {"kind": kind, "apiVersion": "v1", "metadata": {"name": "n"}, "data": data}


def encoded(**texts):
    return {k: base64.b64encode(v.encode()).decode() for k, v in texts.items()}


@case
def entries_of_kubernetes():
    """Entries of a Secret and a ConfigMap become arguments, one of another's, and a module, and are
    followed. A Secret is never shown, whatever the server answers."""
    port = free_port()
    secrets, maps = "/api/v1/namespaces/ns/secrets/s", "/api/v1/namespaces/ns/configmaps/m"
    with KubeApi() as api, Server(says(port)) as server:
        config = "\n".join(
            f'remote.kubernetes.{kind} "x" {{ namespace = "ns"\n name = "{name}"\n'
            f"{API % (api.port, TOKEN)} }}"
            for kind, name in [("secret", "s"), ("configmap", "m")]
        )
        more = """
  headers = { "X-Key" = remote.kubernetes.configmap.x.data.key }
  client {
    bearer_token = remote.kubernetes.secret.x.data["token"]
  }"""
        write("agent.alloy", config + CONTENT % (server.port, more) + IMPORT)
        andiron("validate", "agent.alloy").expect(0, "what import.string.lib brings is not checked")
        made = "lib.pods.p/discovery.relabel.r"
        with Agent("agent.alloy") as a:
            a.until_health("remote.kubernetes.secret.x", "unhealthy", "answered 404")
            a.until_health("lib.pods.p", "unhealthy", "waits for a value of import.string.lib")
            api.objects[secrets] = thing("Secret", {**encoded(token="hush-1"), "raw": "/w=="})
            api.objects[maps] = thing("ConfigMap", {"key": "k1", "module": MODULE % "one"})
            a.until(lambda: listens(port), "it listens")
            assert '"one"' in exports(port, made), exports(port, made)
            a.until_says("1 entries of ns/s are left out: they are not UTF-8 text")
            headers = server.seen[-1][2]
            assert (headers["Authorization"], headers["X-Key"]) == ("Bearer hush-1", "k1"), headers
            api.objects[secrets] = thing("Secret", encoded(token="hush-2"))
            a.until(
                lambda: server.seen[-1][2]["Authorization"] == "Bearer hush-2",
                "the new secret is used",
            )
            api.objects[maps] = thing("ConfigMap", {"key": "k1", "module": MODULE % "two"})
            a.until(lambda: '"two"' in exports(port, made), "the new module is taken")
            api.objects[maps] = thing("ConfigMap", {"key": "k1", "module": MODULE % "three" + "{"})
            a.until_health("remote.kubernetes.configmap.x", "unhealthy", "its value is refused")
            a.until_says("content of import.string.lib:11:1: error:")
            assert '"two"' in exports(port, made), exports(port, made)
            for answer, words in [
                (thing("Secret", {"token": "%%%"}), "not in base64"),
                (thing("Secret", [1]), "no object"),
                (thing("ConfigMap", {"token": "x"}), "no Secret in JSON"),
                ("<html>", "no Secret in JSON"),
                (refuses(403, "forbidden"), "needs the verb get on secrets in the namespace ns"),
            ]:
                api.objects[secrets] = answer
                a.until_health("remote.kubernetes.secret.x", "unhealthy", words)
            assert '"key":"key","value":{"type":"string","value":"k1"}' in exports(
                port, "remote.kubernetes.configmap.x"
            )
            for told in [
                exports(port, "remote.kubernetes.secret.x"),
                exports(port, "remote.http.port"),
                get(port, "/metrics")[1],
                a.text(),
            ]:
                assert "hush" not in told and "aHVzaC" not in told, told
            assert "(secret)" in exports(port, "remote.kubernetes.secret.x")
            a.stop()


@case
def values_that_cannot_be():
    """A circle of values, and a command that does not wait, are refused; each says why."""
    block = (
        'remote.http "%s" {\n  url = "http://127.0.0.1:9/"\n' "  body = remote.http.%s.content\n}\n"
    )
    write("circle.alloy", block % ("a", "b") + block % ("b", "a"))
    andiron("validate", "circle.alloy").expect(1, "in a circle: remote.http.")
    write("self.alloy", block % ("a", "a"))
    andiron("validate", "self.alloy").expect(1, "remote.http.a refers to itself")
    imported = 'import.string "m" { content = remote.http.a.content }\nm.one "x" { }\n'
    write("module.alloy", imported + (block % ("a", "a")).replace("remote.http.a.c", "m.one.x.c"))
    andiron("validate", "module.alloy").expect(1, "in a circle: import.string.m → remote.http.a")
    write(
        "often.alloy",
        'remote.http "a" {\n  url = "http://127.0.0.1:9/"\n  poll_frequency = "5s"\n}\n'
        "status.http {\n  listen_port = remote.http.b.content\n}\n",
    )
    andiron("validate", "often.alloy").expect(
        1, "poll_timeout must be less than poll_frequency", 'no component "remote.http.b"'
    )
    write("json.alloy", CONTENT % (9, ""))
    told = andiron("validate", "--json", "json.alloy").expect(0)
    assert json.loads(told.out)["components"] == 2, told.out


EACH = """
discovery.file "apps" {
  files = ["targets.json"]
}
foreach "apps" {
  collection = discovery.file.apps.targets
  var        = "app"
  id         = "name"

  template {
    discovery.relabel "it" {
      targets = [app]
      rule {
        target_label = "version"
        replacement  = string.format("v%s", app["n"])
      }
    }
  }
}
"""


def put_apps(**apps):
    groups = [
        {"targets": [f"{name}:80"], "labels": {"name": name, "n": n}} for name, n in apps.items()
    ]
    write("targets.new", json.dumps(groups))
    os.rename("targets.new", "targets.json")


def made(agent):
    """Their names, and since when they are as they are."""
    answer = json.loads(ask("status", "/health")[1])["components"]
    return {
        c["id"].split("/")[1]: c["since"] for c in answer if c["id"].startswith("foreach.apps/")
    }


@case
def components_of_each_target():
    """A foreach makes components as targets come, and unmakes them; those of the others stay, over
    a change of one, one that is left out, a list that is refused, and a reload. What is left out or
    refused again is said once."""
    put_apps(one="1", two="2")
    write("agent.alloy", EACH)
    with Agent("agent.alloy") as a:
        a.until(lambda: made(a).keys() == {"one", "two"}, "both are made")
        before = made(a)["two"]
        put_apps(two="2", three="3")
        a.until(lambda: made(a).keys() == {"two", "three"}, "one goes, and another comes")
        assert made(a)["two"] == before
        write("agent.alloy", EACH.replace('app["n"]', 'app["n"] + 7'))
        a.signal(signal.SIGHUP)
        a.until_says("not reloaded")
        checked = 'encoding.from_json(string.format("\\"%s\\"", app["n"])))'
        write("agent.alloy", EACH.replace('"name"\n', '"n"\n').replace('app["n"])', checked))
        a.signal(signal.SIGHUP)
        a.until(lambda: made(a).keys() == {"2", "3"}, "known by another label")
        put_apps(**{"2": "2"})
        a.until(lambda: made(a).keys() == {"2"}, "one is left")
        since, refused = made(a)["2"], "andiron_configurations_refused_total"
        before, told = a.metric(refused), a.text().count("agent.alloy:15:")
        for n in "4", "5":
            put_apps(bad='"', good=n, **{"2": "2"})
            a.until(lambda n=n: made(a).keys() == {"2", n}, "the good ones are taken")
            a.until_health("foreach.apps", "unhealthy", "1 of 3 targets are left out")
        assert made(a)["2"] == since and a.metric(refused) == before
        assert a.text().count("agent.alloy:15:") == told + 1, a.text()
        put_apps(**{"2": "2"})
        a.until_health("foreach.apps", "healthy")
        for n, name in enumerate(("b", "c")):
            put_apps(**{name: '"'})
            a.until_metric(refused, exactly=before + n + 1)
            a.until_health("foreach.apps", "unhealthy", "refused")
        assert a.text().count("agent.alloy:15:") == told + 2, a.text()
        assert a.text().count("foreach.apps: unhealthy") == 2, a.text()
        assert made(a).keys() == {"2"}
        read = '\n    local.file "v" {\n      filename = app["n"]\n    }\n    discovery.relabel'
        from_file = EACH.replace("\n    discovery.relabel", read).replace(
            'app["n"])', "local.file.v.content)"
        )
        write("2", "two")
        write("7", "seven")
        write("agent.alloy", from_file)
        a.signal(signal.SIGHUP)
        put_apps(here="7", away="8")
        a.until(lambda: made(a).keys() == {"here"}, "one has its file")
        a.until_health("foreach.apps", "unhealthy", "1 of 2 targets are left out")
        write("8", "eight")
        a.until(lambda: made(a).keys() == {"here", "away"}, "the other has its file, too")
        put_apps()
        a.until(lambda: not made(a), "none is left")
        a.until_health("foreach.apps", "healthy")
        put_apps(one="2")
        a.until(lambda: made(a).keys() == {"one"}, "one is made")
        a.stop()


JOINED = """
discovery.file "apps" {
  files = ["targets.json"]
}
discovery.relabel "teams" {
  targets = array.combine_maps(
    discovery.file.apps.targets,
    [{"name" = "one", "team" = "red"}, {"name" = "two", "team" = "blue"}],
    ["name"],
  )
  rule {
    source_labels = ["team"]
    regex         = "red|blue"
    action        = "keep"
  }
}
discovery.relabel "first" {
  targets = [discovery.relabel.teams.output[0]]
}
discovery.relabel "other" {
  targets = [{"name" = "three"}]
}
foreach "teams" {
  collection = array.group_by(discovery.relabel.teams.output, "team", true)
  var        = "team"
  id         = "team"

  template {
    discovery.relabel "it" {
      targets = team.items
    }
  }
}
"""


def health(agent):
    return {c["id"]: c for c in json.loads(ask("status", "/health")[1])["components"]}


@case
def targets_as_values():
    """Expressions look into the targets of components, and are evaluated again when these change.
    What does not name them goes on untouched; a list that lacks what is named changes nothing."""
    put_apps(one="1", three="3")
    write("agent.alloy", JOINED)
    told = andiron("validate", "agent.alloy").expect(0, "valid: 6 components")
    assert told.err.count("is not checked") == 1, told.err
    andiron("targets", "agent.alloy").expect(1, "only `andiron run` does")
    with Agent("agent.alloy") as a:
        a.until_health("discovery.relabel.teams", "healthy", "1 of 1 targets")
        a.until_health("discovery.relabel.first", "healthy", "1 of 1 targets")
        a.until(lambda: "foreach.teams/red/discovery.relabel.it" in health(a), "a group is made")
        assert "not reloaded" not in a.text(), a.text()
        since = health(a)["discovery.relabel.other"]["since"]
        red = health(a)["foreach.teams/red/discovery.relabel.it"]["since"]
        put_apps(one="1", two="2", three="3")
        a.until_health("discovery.relabel.teams", "healthy", "2 of 2 targets")
        a.until(lambda: "foreach.teams/blue/discovery.relabel.it" in health(a), "another is made")
        assert health(a)["foreach.teams/red/discovery.relabel.it"]["since"] == red
        put_apps(three="3")
        a.until_health("discovery.relabel.teams", "healthy", "0 of 0 targets")
        a.until_health("discovery.relabel.teams.output[]", "unhealthy", "its value is refused")
        a.until_says("this list has no element 0 (it holds 0)")
        assert health(a)["discovery.relabel.first"]["message"] == "1 of 1 targets are kept"
        put_apps(two="2")
        a.until_health("discovery.relabel.teams.output[]", "healthy", "its targets are known")
        a.until(
            lambda: "foreach.teams/red/discovery.relabel.it" not in health(a), "a group is gone"
        )
        a.signal(signal.SIGHUP)
        a.until(lambda: a.text().rstrip().endswith("reloaded"), "it reloads")
        assert health(a)["discovery.relabel.other"]["since"] == since
        assert health(a)["discovery.relabel.first"]["message"] == "1 of 1 targets are kept"
        a.stop()


main()
