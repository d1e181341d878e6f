#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent's page in a real browser, against a real agent: what it draws, the keyboard, light and
dark, a narrow window, and an agent that goes away."""

import contextlib
import json
import os
import re
import signal
import threading
import time
import urllib.request

import chromium
from ports import free_port
from running import Agent, get
from tap import Skip, andiron, case, main, until, write

CONFIG = """
status.http {
  listen_port = %d
}

discovery.relabel "first" {
  targets = [{"__process_pid__" = "1"}]
}

discovery.relabel "second" {
  targets = discovery.relabel.first.output
}

pyroscope.receive_http "in" {
  http {
    listen_address = "127.0.0.1"
    listen_port    = %d
  }
  forward_to = [pyroscope.relabel.r.receiver, status.http.receiver]
}

pyroscope.relabel "r" {
  forward_to = [pyroscope.write.w.receiver]
  rule {
    target_label = "cluster"
    replacement  = "<img src=x onerror=alert(1)>"
  }
}

pyroscope.write "w" {
  endpoint {
    url            = "http://127.0.0.1:%d/%%3Cb%%3E"
    remote_timeout = "300ms"
  }
}
"""


@contextlib.contextmanager
def browser():
    if not chromium.PROGRAM:
        raise Skip("no browser: install chromium to try the page in one")
    with chromium.Browser() as b:
        b.resize(1280, 800)
        yield b


@contextlib.contextmanager
def pushing(port):
    """Profiles that come all the time."""
    over = threading.Event()

    def push():
        while not over.wait(0.05):
            now = int(time.time())
            query = f"name=shop&format=folded&from={now - 1}&until={now}"
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/ingest?{query}", b"main;work 5\n")

    thread = threading.Thread(target=push)
    thread.start()
    yield
    over.set()
    thread.join()


def shown(b):
    """What the boxes say to who cannot see them, by component."""
    texts = b.value("[...document.querySelectorAll('.box')].map(e => e.getAttribute('aria-label'))")
    return {text.partition(", ")[0]: text for text in texts}


def focused(b):
    return b.value(
        "document.activeElement.getAttribute('aria-label') || document.activeElement.id"
    ).partition(", ")[0]


def text_of(b, element):
    return b.value(f"document.getElementById({json.dumps(element)}).textContent")


def until_read(b, times=2):
    """So many readings are there, so that there are rates."""
    until(
        lambda: int(b.value("document.documentElement.dataset.readings || 0")) >= times,
        f"{times} readings",
    )


def brightness(b):
    r, g, b_ = re.findall(r"\d+", b.value("getComputedStyle(document.body).backgroundColor"))[:3]
    return (int(r) + int(g) + int(b_)) / 3


@case
def it_shows_the_graph_and_its_rates():
    """A box for each component, with its health; lines along which samples flow say how many; what
    the agent says is text, whatever it is; the page's own policy lets it run, without a fault."""
    port, sdk = free_port(), free_port()
    with browser() as b, Agent(write("a.alloy", CONFIG % (port, sdk, free_port()))) as a:
        a.until_ready(port)
        code, page = get(port, "/")
        assert code == 200 and "default-src 'none'" in page and "{{" not in page, page[:400]
        with pushing(sdk):
            a.until_metric("andiron_samples_received_total", 10, "pyroscope.write.w")
            b.open(f"http://127.0.0.1:{port}/")
            until_read(b)
            boxes = until(
                lambda: (
                    s if "unhealthy" in (s := shown(b)).get("pyroscope.write.w", "") else None
                ),
                "the writer is shown as unhealthy",
            )
            rates = "[...document.querySelectorAll('.rate')].map(e => e.textContent)"
            until(
                lambda: sum(bool(re.fullmatch("[0-9.]*[1-9][0-9.]* /s", r)) for r in b.value(rates))
                == 2,
                "the lines of samples have a rate",
            )
            assert b.value(rates).count("targets") == 1, b.value(rates)
            b.value(
                "{const f = fetch; window.fetch = (path, how) => path === 'targets' ? "
                "Promise.resolve(new Response('', {status: 503})) : f(path, how)}"
                "document.querySelector('.box[aria-label^=\"pyroscope.receive_http\"]')"
                ".dispatchEvent(new MouseEvent('click'))"
            )
            until(
                lambda: text_of(b, "targets").startswith("The sampler is at work"),
                "that targets cannot be told now is told",
            )
        assert set(boxes) == {
            "status.http",
            "discovery.relabel.first",
            "discovery.relabel.second",
            "pyroscope.receive_http.in",
            "pyroscope.relabel.r",
            "pyroscope.write.w",
        }, boxes
        assert "healthy, relabeling by 1 rules" in boxes["pyroscope.relabel.r"], boxes
        assert b.value("document.querySelectorAll('.edge.targets').length") == 1
        assert b.value("document.querySelectorAll('.edge.samples').length") == 3
        assert text_of(b, "health") == "✗ 1 of 6 components unhealthy", text_of(b, "health")
        assert "0.1.0" in text_of(b, "version") and "configuration taken" in text_of(b, "facts")
        b.value(
            "document.querySelector('.box[aria-label^=\"pyroscope.write.w\"]')"
            ".dispatchEvent(new MouseEvent('click'))"
        )
        assert "127.0.0.1" in text_of(b, "message"), text_of(b, "message")
        assert "andiron_samples_received_total" in text_of(b, "metrics")
        until(
            lambda: text_of(b, "arguments").startswith("endpoint {\n  url = \"http://127.0.0.1:"),
            "the writer's arguments are there",
        )
        assert text_of(b, "exports") == "receiver = receiver\n", text_of(b, "exports")
        assert b.value("document.querySelectorAll('img, b:not(#facts b)').length") == 0
        assert not b.faults, b.faults
        assert b.value(
            "performance.getEntriesByType('resource')"
            ".every(e => e.name.startsWith(location.origin + '/'))"
        )
        # Nothing comes any more, and who looks only now cannot know that yet.
        b.open(f"http://127.0.0.1:{port}/")
        until_read(b)
        assert sorted(b.value(rates)) == ["targets", "– /s", "– /s"], b.value(rates)
        assert "– /s samples taken" in text_of(b, "facts"), text_of(b, "facts")


@case
def it_obeys_the_keyboard():
    """Tab reaches search and graph; arrows go along the flow, Enter opens the details, Escape goes
    back to the box; / searches."""
    port, sdk = free_port(), free_port()
    with browser() as b, Agent(write("a.alloy", CONFIG % (port, sdk, free_port()))) as a:
        a.until_ready(port)
        b.open(f"http://127.0.0.1:{port}/")
        until_read(b)
        b.press("Tab")
        assert focused(b) == "Search components", focused(b)
        b.press(*["Tab"] * 6)  # over the links to profiles
        first = focused(b)
        assert first in ("discovery.relabel.first", "pyroscope.receive_http.in"), first
        assert b.value("document.activeElement.matches(':focus-visible')")
        b.press("/", "i", "n")
        assert b.value("document.getElementById('search').value") == "in", "typed"
        assert text_of(b, "matched") == "1 of 6 components", text_of(b, "matched")
        b.press("Enter")
        assert focused(b) == "pyroscope.receive_http.in", focused(b)
        b.press("Escape", "ArrowRight", "ArrowRight")
        assert focused(b) == "pyroscope.write.w", focused(b)
        b.press("ArrowLeft", "Enter")
        assert focused(b) == "chosen" and text_of(b, "chosen") == "pyroscope.relabel.r", focused(b)
        b.press("Tab", "Tab", "Enter")
        assert text_of(b, "chosen") == "pyroscope.receive_http.in", text_of(b, "chosen")
        b.press("Escape")
        assert focused(b) == "pyroscope.receive_http.in", focused(b)
        assert b.value("document.getElementById('details').hidden")
        assert not b.faults, b.faults


@case
def it_is_dark_where_the_user_is_and_narrow_where_the_window_is():
    """Colours follow the system; at 320 px nothing has to be scrolled sideways, also with details
    open."""
    port, sdk = free_port(), free_port()
    with browser() as b, Agent(write("a.alloy", CONFIG % (port, sdk, free_port()))) as a:
        a.until_ready(port)
        b.colours("light")
        b.open(f"http://127.0.0.1:{port}/")
        until_read(b)
        light = brightness(b)
        b.picture("light.png")
        b.colours("dark")
        assert brightness(b) < 60 < 200 < light, (brightness(b), light)
        b.picture("dark.png")
        assert os.stat("dark.png").st_size > 5000
        b.resize(320, 640)
        boxes = "[...document.querySelectorAll('.box')].map(e => e.getBoundingClientRect().right)"
        until(lambda: max(b.value(boxes)) <= 320, "all boxes are within the window")
        b.press("/", "Escape", "Enter")
        assert focused(b) == "chosen"
        assert b.value("document.documentElement.scrollWidth") <= 320


@case
def names_that_are_long_or_turn_text_are_seen_as_they_are():
    """A name of any length is cut at its box's edge, the button beside it stays in one line, and
    the chosen box is in view; a value that would turn the direction of text is shown escaped."""
    port, name = free_port(), "m" * 60 + "_name_of_a_component"
    text = f"status.http {{\n  listen_port = {port}\n}}\n"
    text += 'discovery.relabel "a0" {\n  targets = [{"__process_pid__" = "1"}]\n}\n'
    for i in range(1, 4):
        text += f'discovery.relabel "a{i}" {{\n  targets = discovery.relabel.a{i - 1}.output\n}}\n'
    text += f'discovery.relabel "{name}" {{\n  targets = discovery.relabel.a3.output\n'
    text += '  rule {\n    target_label = "l"\n    replacement  = "\\u202ecod\\u2066"\n  }\n}\n'
    over = (
        "[...document.querySelectorAll('.box')].filter(e => e.querySelector('.name')"
        ".getBoundingClientRect().right > e.querySelector('.frame').getBoundingClientRect().right)"
        ".length"
    )
    chosen = f"document.querySelector('.box[aria-label*=\"{name}\"]')"
    with browser() as b, Agent(write("a.alloy", text)) as a:
        a.until_ready(port)
        for width in (1280, 640):
            b.resize(width, 800)
            b.open(f"http://127.0.0.1:{port}/")
            until_read(b)
            assert b.value(over) == 0, width
        b.resize(1280, 800)
        until(lambda: b.value(f"{chosen}.getBoundingClientRect().x > 700"), "the wide layout")
        b.value(f"{chosen}.dispatchEvent(new MouseEvent('click'))")
        until(
            lambda: "cod" in text_of(b, "arguments") and "cod" in text_of(b, "exports"),
            "arguments and exports are there",
        )
        for element in ("arguments", "exports"):
            assert "\\u202ecod\\u2066" in text_of(b, element), text_of(b, element)
        assert b.value("document.getElementById('close').getClientRects()[0].height") < 30
        right = "getBoundingClientRect().right"
        box, view = b.value(f"[{chosen}.{right}, document.getElementById('view').{right}]")
        assert box <= view, (box, view)


@case
def it_has_flame_graphs_of_the_last_minutes():
    """What came to its receiver is drawn, compared and downloaded for as long as was asked; what
    cannot be had says why."""
    port, sdk = free_port(), free_port()
    with browser() as b, Agent(write("a.alloy", CONFIG % (port, sdk, free_port()))) as a:
        a.until_ready(port)
        assert get(port, "/flame")[0] == get(port, "/profile")[0] == 404
        assert "nothing was sampled" in get(port, "/profile")[1]
        b.colours("dark")
        b.open(f"http://127.0.0.1:{port}/flame")
        assert b.value("getComputedStyle(document.body).color") == "rgb(255, 255, 255)"
        assert "nothing was sampled" in b.value("document.body.innerText")
        assert b.value("document.querySelector('a').href") == f"http://127.0.0.1:{port}/"
        b.open("about:blank")
        b.faults.clear()  # of the answer 404
        for bad in ("last=x", "last=0s", "last=-1s", "last=25h", "against=1e400s", "last="):
            assert get(port, f"/flame?{bad}")[0] == 400, bad
        assert get(port, "/flame", method="POST", data=b"")[0] == 405
        with pushing(sdk):
            a.until_metric("andiron_samples_received_total", 50, "status.http")
        b.open(f"http://127.0.0.1:{port}/flame?last=5m#q=work")
        samples = int(b.value("document.documentElement.dataset.matched"))
        assert samples >= 50 and "The last 5m" in text_of(b, "title"), samples
        code, why = get(port, "/flame?last=5m&against=12h")
        assert code == 404 and "nothing is kept of the earlier time" in why, why
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/profile?last=5m") as answer:
            with open("live.pb.gz", "wb") as out:
                out.write(answer.read())
        report = json.loads(andiron("report", "--json", "live.pb.gz").expect(0).out)
        assert report["samples"] == samples, (report, samples)
        earlier = until(
            lambda: (p if (p := get(port, "/flame?last=24h&against=1ms"))[0] == 200 else None),
            "the last day can be compared with itself, nearly",
        )
        assert "earlier → now" in earlier[1] and '"pair"' in earlier[1], earlier[1][-500:]
        b.open(f"http://127.0.0.1:{port}/")
        until_read(b)
        assert not b.value("document.getElementById('looks').hidden")
        assert not b.faults, b.faults


@case
def what_is_chosen_survives_a_reload():
    """The chosen component, and of a flame graph search and zoom, stand in the page's address;
    what is closed does not, and what is not there is not chosen. A component that is gone for a
    while is chosen again when it is back."""
    port, sdk = free_port(), free_port()
    zoomed = "document.documentElement.dataset.zoom"
    with browser() as b, Agent(write("a.alloy", CONFIG % (port, sdk, free_port()))) as a:
        a.until_ready(port)
        page = f"http://127.0.0.1:{port}/"
        b.open(page)
        until_read(b)
        b.value(
            "document.querySelector('.box[aria-label^=\"pyroscope.write.w\"]')"
            ".dispatchEvent(new MouseEvent('click'))"
        )
        assert b.value("location.hash") == "#component=pyroscope.write.w"
        b.reload()
        until_read(b, 1)
        assert text_of(b, "chosen") == "pyroscope.write.w", text_of(b, "chosen")
        b.value("location.hash = '#component=pyroscope.relabel.r'")
        until(lambda: text_of(b, "chosen") == "pyroscope.relabel.r", "the address chooses")
        without = "list.filter(c => c.localID !== 'pyroscope.relabel.r')"
        b.value(
            "whole = window.fetch, window.fetch = (path, how) => whole(path, how).then(a =>"
            " !path.endsWith('/components') ? a : a.json().then(list =>"
            f" new Response(JSON.stringify({without})))), 0"
        )
        until(lambda: b.value("document.getElementById('details').hidden"), "it is gone")
        b.value("window.fetch = whole, 0")
        until(lambda: text_of(b, "chosen") == "pyroscope.relabel.r", "it is back")
        until(lambda: not b.value("document.getElementById('details').hidden"), "it is shown")
        b.press("Escape")
        assert b.value("location.href") == page, b.value("location.href")
        b.reload()
        until_read(b, 1)
        assert b.value("document.getElementById('details').hidden")
        b.open("about:blank")
        b.open(f"{page}#component=none")
        until_read(b, 1)
        assert b.value("document.getElementById('details').hidden")
        with pushing(sdk):
            a.until_metric("andiron_samples_received_total", 5, "status.http")
        b.open(f"{page}flame?last=5m")
        b.press("/", "w", "o", "r", "k", "Enter", "ArrowDown", "ArrowDown", "ArrowDown", "Enter")
        names, where = b.value(zoomed), b.value("location.hash")
        assert names and names != "all" and where.startswith("#q=work&at="), (names, where)
        b.reload()
        assert (b.value(zoomed), b.value("location.hash")) == (names, where), b.value(zoomed)
        assert b.value("document.getElementById('search').value") == "work"
        assert not b.faults, b.faults


@case
def it_outlives_the_agent():
    """While nobody answers it says since when, and it goes on with the next agent there, from 0."""
    port, sdk = free_port(), free_port()
    config = write("a.alloy", CONFIG % (port, sdk, free_port()))
    with browser() as b:
        with Agent(config) as a:
            a.until_ready(port)
            b.open(f"http://127.0.0.1:{port}/")
            until_read(b)
            assert not text_of(b, "trouble")
            a.signal(signal.SIGTERM)
            a.end().expect(0)
        until(lambda: text_of(b, "trouble").startswith("No answer since "), "it says so")
        assert len(shown(b)) == 6
        write("a.alloy", (CONFIG % (port, sdk, free_port())).replace('"second"', '"other"'))
        with Agent(config) as a:
            until(lambda: not text_of(b, "trouble"), "it goes on")
            until(lambda: "discovery.relabel.other" in shown(b), "the new graph")
            assert "discovery.relabel.second" not in shown(b)
            write("a.alloy", "nonsense {")
            a.signal(signal.SIGHUP)
            until(lambda: "was refused" in text_of(b, "trouble"), "the refusal is told")


@case
def it_draws_a_thousand_components():
    """1,000 components are drawn, and what changes is shown without the page standing still."""
    port = free_port()
    text = f"status.http {{\n  listen_port = {port}\n}}\n"
    text += 'discovery.relabel "r" {\n  targets = [{"__process_pid__" = "1"}]\n}\n'
    text += "".join(
        f'discovery.relabel "n{i}" {{\n  targets = discovery.relabel.'
        f'{"r" if i % 40 == 0 else f"n{i - i % 40}"}.output\n}}\n'
        for i in range(998)
    )
    with browser() as b, Agent(write("a.alloy", text)) as a:
        a.until_ready(port)
        b.open(f"http://127.0.0.1:{port}/")
        until_read(b, 3)
        assert len(shown(b)) == 1000, len(shown(b))
        b.press("/", "n", "9", "9", "7", "Enter")
        assert focused(b) == "discovery.relabel.n997", focused(b)
        assert not b.faults, b.faults


main()
