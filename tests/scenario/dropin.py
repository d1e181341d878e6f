#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`run` in the place of an Alloy: its files, its flags and what its scripts ask."""

import base64
import contextlib
import http.client
import json
import os
import re
import signal
import ssl
import urllib.error
import urllib.request

from kubeapi import authority, certificate, certify
from ports import free_port
from running import Agent, ask, get, parse_metrics
from tap import DEADLINE, andiron, case, main, need_root, write

WRITER = """
pyroscope.write "w" {
  endpoint {
    url            = "http://127.0.0.1:9"
    remote_timeout = "48h"
  }
}
"""


SPOOLER = WRITER.replace("  }\n}", "  }\n\n  spool {}\n}")


def config(settings="", name="agent.alloy"):
    return write(name, settings + WRITER)


def health():
    return ask("status", "/health")[1]


def taken_at(a):
    return a.metric("alloy_config_last_load_success_timestamp_seconds")


def reload(a, settings):
    """Until it is taken."""
    before = taken_at(a)
    config(settings)
    a.signal(signal.SIGHUP)
    a.until(lambda: taken_at(a) != before, "the configuration is taken")


def end(a):
    a.signal(signal.SIGTERM)
    return a.end().expect(0).out


@case
def the_block_logging_is_obeyed():
    """Its level and format decide from the first line on, and a reload changes both."""
    with Agent(config('logging {\n  level = "debug"\n  format = "logfmt"\n}\n')) as a:
        a.until_says("level=info msg=")
        reload(a, 'logging {\n  format = "json"\n}\n')
        reload(a, 'logging {\n  level = "error"\n}\n')
        config('logging {\n  level = "loud"\n}\n')
        a.signal(signal.SIGHUP)
        a.until_says("not reloaded")
        lines = end(a).splitlines()
    assert re.match(r"ts=\d{4}-\d\d-\d\dT[\d:.]+Z level=\w+ msg=", lines[0]), lines[0]
    said = [json.loads(line)["message"] for line in lines if line.startswith("{")]
    assert said.count("reloaded") == 1, lines  # the second one is below the level
    assert not any("stopping" in line for line in lines), lines


@case
def the_command_line_decides_over_the_block():
    """--log-level and --log-format win, each by itself, also at a reload."""
    path = config('logging {\n  level = "error"\n  format = "json"\n}\n')
    with Agent(path, "--log-level=info") as a:
        a.until_says('"level":"info"')
        end(a)
    with Agent(path, "--log-format=logfmt") as a:
        reload(a, 'logging {\n  level = "info"\n  format = "json"\n}\n')
        a.until_says("msg=reloaded")
        assert "{" not in end(a)


@case
def it_listens_where_alloy_is_told_to():
    """A command line written for Alloy: a directory of files, probes and metrics at the address of
    its flag, spools below its storage, also after a reload, and a line for what has no
    counterpart."""
    port = free_port()
    os.mkdir("conf")
    write("conf/writer.alloy", SPOOLER)
    write("conf/logging.alloy", 'logging {\n  format = "logfmt"\n}\n')
    write("conf/notes.txt", "no configuration")
    with Agent(
        "conf",
        f"--server.http.listen-addr=127.0.0.1:{port}",
        "--storage.path=data-alloy/",
        "--stability.level=experimental",
        "--cluster.enabled=true",
        "--cluster.join-addresses",
        "alloy-cluster",
        "--server.http.enable-pprof=false",
        "--server.http.enable-graphql-playground",
        "--feature.prometheus.direct-fanout.enabled",
        "--cluster.use-discovery-v1",
        "--disable-reporting",
        "--config.format=alloy",
    ) as a:
        a.until_ready(port)
        assert get(port, "/-/healthy")[0] == 200
        assert parse_metrics(get(port, "/metrics")[1])["alloy_config_last_load_successful", ""] == 1
        assert os.path.isdir("data-alloy/pyroscope.write.w")
        before = taken_at(a)
        write("conf/writer.alloy", SPOOLER.replace('"w"', '"v"'))
        a.signal(signal.SIGHUP)
        a.until(lambda: taken_at(a) != before, "the configuration is taken")
        a.until_ready(port)
        assert os.path.isdir("data-alloy/pyroscope.write.v")
        said = end(a)
    for words in [
        "level=warn msg=\"--cluster.enabled: without effect, agents of andiron form no cluster",
        "--cluster.join-addresses, --cluster.use-discovery-v1: without effect",
        "--stability.level: without effect",
        "--disable-reporting: without effect",
    ]:
        assert said.count(words) == 1, (words, said)
    assert not any(f in said for f in ("enable-pprof", "config.format", "storage.path")), said


RELABEL = """
discovery.relabel "r" {
  targets = [{"__process_pid__" = "1"}]
}

declare "through" {
  pyroscope.relabel "p" {
    forward_to = [pyroscope.write.inner.receiver]
  }

  pyroscope.write "inner" {
    endpoint {
      url = "http://127.0.0.1:9"
    }
  }
}

through "t" {}

discovery.relabel "second" {
  targets = discovery.relabel.r.output
}
"""


@case
def it_answers_what_scripts_of_alloy_ask():
    """/-/reload by GET and POST says whether the configuration was taken; the components are
    listed with Alloy's fields; metrics have Alloy's names."""
    port = free_port()
    with Agent(config(RELABEL), f"--server.http.listen-addr=localhost:{port}") as a:
        a.until_ready(port)
        listed = json.loads(get(port, "/api/v0/web/components")[1])
        by_id = {(c["moduleID"], c["localID"]): c for c in listed}
        assert len(by_id) == len(listed), listed
        second = by_id["", "discovery.relabel.second"]
        fields = "name type localID moduleID label referencesTo referencedBy health original"
        fields += " dataFlowEdgesTo"
        assert set(second) == {*fields.split(), "liveDebuggingEnabled"}, second
        assert second["name"] == "discovery.relabel" and second["label"] == "second", second
        assert second["referencesTo"] == ["discovery.relabel.r"], second
        assert second["referencedBy"] == [], second
        assert by_id["", "discovery.relabel.r"]["referencedBy"] == ["discovery.relabel.second"]
        assert by_id["", "pyroscope.write.w"]["health"]["state"] == "healthy", listed
        assert by_id["", "discovery.relabel.r"]["dataFlowEdgesTo"] == ["discovery.relabel.second"]
        through = by_id["through.t", "pyroscope.relabel.p"]
        assert through["referencesTo"] == ["pyroscope.write.inner"], through
        assert through["dataFlowEdgesTo"] == ["through.t/pyroscope.write.inner"], through
        assert "label" not in by_id["", "status.http"], listed

        values = {name for name, _ in parse_metrics(get(port, "/metrics")[1])}
        assert values > {
            "alloy_build_info",
            "alloy_component_controller_running_components",
            "alloy_config_last_load_success_timestamp_seconds",
            "alloy_config_last_load_successful",
            "alloy_config_load_failures_total",
            "alloy_resources_process_cpu_seconds_total",
            "alloy_resources_process_resident_memory_bytes",
            "alloy_resources_process_start_time_seconds",
            "alloy_resources_process_virtual_memory_bytes",
        }, values
        start = a.metric("alloy_resources_process_start_time_seconds")
        assert abs(start - os.stat(f"/proc/{a.pid}").st_ctime) < 5, start

        before = taken_at(a)
        config(RELABEL.replace("second", "third"))
        assert get(port, "/-/reload") == (200, "config reloaded\n")
        assert taken_at(a) != before
        assert "discovery.relabel.third" in get(port, "/api/v0/web/components")[1]
        assert get(port, "/-/reload", method="POST", data=b"")[0] == 200
        assert get(port, "/-/reload", method="DELETE")[0] == 405
        config("discovery.rlabel {}\n")
        code, text = get(port, "/-/reload")
        assert code == 400 and "the old configuration goes on" in text, (code, text)
        assert a.metric("alloy_config_load_failures_total") == 1
        assert get(port, "/-/healthy")[0] == 200
        assert 'no component "discovery.rlabel"' in end(a)


SECRETIVE = """
pyroscope.write "s" {
  endpoint {
    url = "http://ada:love@lace@127.0.0.1:9/x"

    basic_auth {
      username = "ada"
      password = "lovelace"
    }
  }
  external_labels = {"cluster" = "c \\"1\\""}
}

discovery.relabel "words" {
  targets = [{"word" = "one"}]
}

discovery.process "all" {
}
"""


@case
def it_tells_with_what_a_component_runs():
    """Below /api/v0/web/components is each component with its arguments, in Alloy's form and
    without a secret, and what it exports; /targets has what samplers know of theirs."""
    port = free_port()
    with Agent(config(SECRETIVE), f"--server.http.listen-addr=localhost:{port}") as a:
        a.until_ready(port)
        path = "/api/v0/web/components"
        code, text = get(port, f"{path}/pyroscope.write.s")
        assert code == 200 and "lovelace" not in text, text
        found = json.loads(text)
        listed = [c for c in json.loads(get(port, path)[1]) if c["localID"] == "pyroscope.write.s"]
        assert [{k: v for k, v in found.items() if k in listed[0]}] == listed, found

        def attribute(name, kind, value):
            return {"name": name, "type": "attr", "value": {"type": kind, "value": value}}

        endpoint, labels = found["arguments"]
        auth = [
            attribute("username", "string", "ada"),
            attribute("password", "capsule", "(secret)"),
        ]
        assert endpoint == {
            "name": "endpoint",
            "type": "block",
            "body": [
                attribute("url", "string", "http://ada:(secret)@127.0.0.1:9/x"),
                {"name": "basic_auth", "type": "block", "body": auth},
            ],
        }, endpoint
        value = {"type": "string", "value": 'c "1"'}
        assert labels == attribute(
            "external_labels", "object", [{"key": "cluster", "value": value}]
        ), labels
        assert found["exports"] == [attribute("receiver", "capsule", "receiver")], found
        assert json.loads(get(port, f"{path}/discovery.relabel.words")[1])["arguments"] == []
        one = '"value":[{"key":"word","value":{"type":"string","value":"one"}}]'
        a.until(
            lambda: one in get(port, f"{path}/discovery.relabel.words")[1],
            "a list of which no copy is kept is shown to who asks again",
        )
        command_lines = '"__meta_process_commandline","value":{"type":'
        a.until(
            lambda: command_lines in get(port, f"{path}/discovery.process.all")[1],
            "processes are listed",
        )
        text = get(port, f"{path}/discovery.process.all")[1]
        hidden = command_lines + '"capsule","value":"(secret)"}'
        assert text.count(command_lines) == text.count(hidden) > 0, text[:2000]
        for absent in ("pyroscope.write", "pyroscope.write.s/", "", "%00", "x" * 2000):
            assert get(port, f"{path}/{absent}")[0] == 404, absent
        assert get(port, "/targets") == (200, "{}\n")
        end(a)


GUARDED = """
http {
  tls {
    cert_file = "server.pem"
    key_file  = "server.key"
  }

  auth {
    basic {
      username = "ada"
      password = "lace:%s"
    }

    filter {
      paths                       = ["/-/ready", "/-/healthy"]
      authenticate_matching_paths = false
    }
  }
}
"""


def get_guarded(port, path, user=None, shown=None):
    """Status by HTTPS with the test's authority, and a certificate of the client's; 0: that is not
    taken."""
    headers = {}
    if user:
        headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
    request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", headers=headers)
    try:
        context = ssl.create_default_context(cafile="ca.crt")
        if shown:
            context.load_cert_chain(f"{shown}.pem", f"{shown}.key")
        with urllib.request.urlopen(request, timeout=DEADLINE, context=context) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        asks = error.headers.get("WWW-Authenticate", "").startswith("Basic ")
        assert asks == (error.code == 401), error.headers
        return error.code
    except (ssl.SSLError, ConnectionError):
        return 0
    except urllib.error.URLError as error:
        if not isinstance(error.reason, (ssl.SSLError, ConnectionError)):
            raise
        return 0


@case
def the_block_http_is_obeyed():
    """TLS and users of Alloy's block http hold for the listener of the flag; a reload changes
    them, and one that cannot be read is refused."""
    certify()
    port = free_port()
    with Agent(config(GUARDED % "1"), f"--server.http.listen-addr=127.0.0.1:{port}") as a:
        a.until_says("listening at 127.0.0.1")
        a.until(lambda: get_guarded(port, "/-/ready") == 200, "it is ready")
        assert get_guarded(port, "/metrics") == 401
        assert get_guarded(port, "/-/reload") == 401
        for wrong in ["ada:lace:2", "ada:lace:", "ada:lace:11", "ad:alace:1", ""]:
            assert get_guarded(port, "/metrics", wrong) == 401, wrong
        assert get_guarded(port, "/metrics", "ada:lace:1") == 200
        with contextlib.suppress(OSError, http.client.HTTPException):
            assert get(port, "/-/ready")[0] != 200, "it answers without TLS"
        config(GUARDED % "2")
        assert get_guarded(port, "/-/reload", "ada:lace:1") == 200
        assert get_guarded(port, "/metrics", "ada:lace:1") == 401
        assert get_guarded(port, "/metrics", "ada:lace:2") == 200
        config(GUARDED.replace("server.key", "none.key") % "3")
        assert get_guarded(port, "/-/reload", "ada:lace:2") == 400
        assert get_guarded(port, "/metrics", "ada:lace:2") == 200
        said = end(a)
    assert "cannot read key_file none.key" in said and "lace" not in said, said
    andiron("validate", config("http {\n  tls {}\n}\nstatus.http {}\n")).expect(
        1, "needs a certificate"
    )


ASKING = """
http {
  tls {
    cert_file        = "server.pem"
    key_file         = "server.key"
    client_auth_type = "%s"
    %s
  }
}
"""
OF_CLIENTS = 'client_ca_file = "ca.crt"'
# Who is taken: without a certificate, and with one of ours, of others, of ours for servers.
CLIENTS = (None, "client", "other", "serving")
TAKEN = {
    "NoClientCert": ("", CLIENTS),
    "RequestClientCert": ("", CLIENTS),
    "RequireAnyClientCert": (OF_CLIENTS, CLIENTS[1:]),
    "VerifyClientCertIfGiven": (OF_CLIENTS, CLIENTS[:2]),
    "RequireAndVerifyClientCert": (OF_CLIENTS, CLIENTS[1:2]),
}


@case
def clients_are_asked_for_certificates():
    """Each of Alloy's types of asking takes whom it says, and nobody else; a reload changes it; one
    that makes no sense is refused. A receiver has the same."""
    authority("other.key", "other.pem")
    certify()
    certificate("client", "extendedKeyUsage=clientAuth")
    certificate("serving", "extendedKeyUsage=serverAuth")
    port, receiving = free_port(), free_port()
    listening = f"status.http {{\n  listen_port = {port}\n}}\n"
    receiver = f"""
pyroscope.receive_http "sdk" {{
  http {{
    listen_address = "127.0.0.1"
    listen_port    = {receiving}
    %s
  }}
  forward_to = [pyroscope.write.w.receiver]
}}
"""
    with Agent(config(listening)) as a:
        a.until_ready(port)
        for name, (ca, expected) in TAKEN.items():
            asking = ASKING % (name, ca)
            block = asking.strip().removeprefix("http {").removesuffix("}")
            reload(a, listening + asking + receiver % block)
            for port_of, path, status in (port, "/-/ready", 200), (receiving, "/", 404):
                taken = tuple(c for c in CLIENTS if get_guarded(port_of, path, None, c) == status)
                assert taken == expected, (name, port_of, taken)
        for ca, words in [
            ("none.crt", "cannot read client_ca_file none.crt"),
            ("ca.key", "has no certificates that can be read"),
        ]:
            config(listening + ASKING % ("RequireAnyClientCert", f'client_ca_file = "{ca}"'))
            a.signal(signal.SIGHUP)
            a.until_says(words)
        assert get_guarded(port, "/-/ready", None, "client") == 200
        end(a)
    for name, ca, words in [
        ("Anybody", "", "unknown client_auth_type; write NoClientCert"),
        ("NoClientCert", OF_CLIENTS, "asks for none"),
        ("RequireAndVerifyClientCert", "", "without an authority; name client_ca_file"),
        ("RequireAndVerifyClientCert", OF_CLIENTS + '\nclient_ca_pem = "x"', "leave one out"),
    ]:
        andiron("validate", config(listening + ASKING % (name, ca))).expect(1, words)


@case
def a_reload_may_end_who_asked_for_it():
    """Where the new configuration has no status.http, whoever asked is cut off, and the agent goes
    on; where reload is not written, nothing can be asked for."""
    port = free_port()
    listening = f"status.http {{\n  listen_port = {port}\n  reload = true\n}}\n"
    with Agent(config(listening)) as a:
        a.until_ready(port)
        before = taken_at(a)
        config(listening.replace("  reload = true\n", ""))
        assert get(port, "/-/reload")[0] == 200
        code, text = get(port, "/-/reload")
        assert code == 403 and "reload = true" in text, text
        reload(a, listening)
        config()
        with contextlib.suppress(OSError, http.client.HTTPException):
            get(port, "/-/reload")
        a.until(lambda: taken_at(a) > before and "status.http" not in health(), "it is gone")
        end(a)


@case
def what_is_so_anyway_is_no_warning():
    """An argument without effect makes a warning where it asks for what is not done, and there
    alone."""
    sampler = """
pyroscope.ebpf "host" {
  forward_to             = [pyroscope.write.w.receiver]
  php_enabled            = %s
  load_probe             = %s
  collect_kernel_profile = %s
}
"""
    named = ("php_enabled", "load_probe", "collect_kernel_profile")
    quiet = andiron("validate", config(sampler % ("false", "false", "true"))).expect(0)
    assert "warning" not in quiet.out + quiet.err, quiet.out + quiet.err
    andiron("validate", config(sampler % ("true", "true", "false"))).expect(
        0, *(f"argument {name} is accepted but ignored" for name in named)
    )


RECEIVER = """
pyroscope.receive_http "sdk" {
  http {
    listen_address = "localhost"
    listen_port    = %s
    conn_limit     = %s

    server_read_timeout  = "0s"
    server_write_timeout = "100ms"
    server_idle_timeout  = "0s"
    http2 {
      enabled                = true
      max_concurrent_streams = 100
    }
    %s
  }
  grpc {
    listen_port = 0
    conn_limit  = 16
  }
  graceful_shutdown_timeout = "10s"
  debug_info_upload_timeout = "120s"
  forward_to                = [pyroscope.write.w.receiver]
}
"""
SERVER_TLS = """tls {
      cert_pem      = "a certificate"
      key_pem       = "its key"
      cipher_suites = "TLS_AES_128_GCM_SHA256"
    }"""


@case
def receivers_have_the_blocks_of_alloys_server():
    """What a server of Alloy's takes, and this one does in its own way, is taken; no limit of
    connections or time is the largest."""
    ignored = ("cipher_suites", "http2", "graceful_shutdown_timeout")
    said = andiron("validate", config(RECEIVER % (0, 100, SERVER_TLS))).expect(
        0, *(f"{name} is accepted but ignored" for name in ignored)
    )
    assert said.err.count("is accepted but ignored") == len(ignored), said.err
    for limit in (0, 100000):
        port = free_port()
        with Agent(config(RECEIVER % (port, limit, ""))) as a:
            a.until_health("pyroscope.receive_http.sdk", "healthy", "listening at localhost port")
            assert get(port, "/")[0] == 404
            assert a.metric("pyroscope_receive_http_tcp_connections_limit") == 65536
            end(a)


@case
def notes_on_samples_are_for_samplers():
    """Who only follows processes, for recordings of JVMs, is told nothing of what samples lack.
    Words that async-profiler is given are spelled as it takes them."""
    need_root()
    java = """
discovery.process "all" {}
pyroscope.java "all" {
  targets    = []
  forward_to = [pyroscope.write.w.receiver]
  profiling_config {
    log_level = "debug"
  }
}
discovery.relabel "all" {
  targets = discovery.process.all.targets
}
"""
    with Agent(config(java)) as a:
        a.until_health("discovery.process.all", "healthy")
        said = end(a)
    assert "note:" not in said, said


@case
def what_makes_no_sense_is_refused():
    """A flag that is not Alloy's, an address that is none, another format, and a listener that
    flag and file both describe."""
    path = config("status.http {\n  listen_port = 1\n}\n")
    listen = "--server.http.listen-addr"
    andiron("run", "--server.http.listen-adr=:1", path).expect(2, "did you mean", f"{listen}?")
    andiron("run", f"{listen}=node-1:80", path).expect(2, "127.0.0.1:12345", '"node-1:80"')
    andiron("run", "--config.format=static", path).expect(2, "alloy convert")
    andiron("run", "--cluster.enabled=perhaps", path).expect(2, "true or false")
    andiron("run", f"{listen}=:80", path).expect(
        1, f"{listen}:1:1: error: status.http is defined twice", "it stands at agent.alloy:1:1"
    )


main()
