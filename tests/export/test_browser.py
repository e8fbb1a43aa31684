"""The page in Chromium, served by a real uvicorn: it lives, fits, and keeps to its origin."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import uvicorn
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

from sidecar.export.http import build_app
from sidecar.signals import Leg
from sidecar.snapshot import Snapshot
from sidecar.testing import wait_for
from tests.export import made

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="chromium or chromedriver is missing: no page to look at"
    ),
]
SWITCHES = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--disable-extensions", "--force-prefers-reduced-motion"),
)
WIDTHS = (375, 768, 1280, 1600)


@dataclass
class Site:
    """A listener on a free loopback port and the source of its snapshots."""

    source: made.Source
    server: uvicorn.Server
    thread: threading.Thread
    url: str

    def stop(self) -> None:
        """Ends the server, its open connections included."""
        self.server.should_exit = self.server.force_exit = True
        self.thread.join(10)


def serve() -> Site:
    """Starts a listener."""
    source = made.Source()
    listener = socket.create_server(("127.0.0.1", 0))
    app = build_app(source, made.METRICS, clock=source.clock)
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    wait_for(lambda: server.started, what="uvicorn")
    return Site(source, server, thread, f"http://127.0.0.1:{listener.getsockname()[1]}/")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """Chromium with a profile of its own."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def site(browser: webdriver.Chrome) -> Iterator[Site]:
    """A listener for one test; what the browser logged before is forgotten."""
    found = serve()
    browser.get("about:blank")
    for log in ("browser", "performance"):
        browser.get_log(log)
    look(browser, 1280)
    yield found
    found.stop()


def look(browser: webdriver.Chrome, width: int, theme: str = "light", height: int = 800) -> None:
    """Sets the viewport and the colour scheme."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def later(snapshot: Snapshot, **changes: object) -> Snapshot:
    """The next snapshot of a source."""
    return replace(snapshot, sequence=snapshot.sequence + 1, **changes)  # type: ignore[arg-type]


def slower(snapshot: Snapshot) -> Snapshot:
    """The next snapshot, with a TTFT that no other has."""
    windows = (made.window(Leg.DOWNSTREAM, ttft_p50=0.777), made.window(Leg.UPSTREAM))
    return later(snapshot, windows=windows)


def text(browser: webdriver.Chrome, name: str) -> str:
    """What an element shows, in one step: an update may swap it at any time."""
    script = "return document.getElementById(arguments[0]).innerText"
    return str(browser.execute_script(script, name)).replace("\N{NO-BREAK SPACE}", " ")


def wait_for_text(browser: webdriver.Chrome, name: str, words: str) -> None:
    """Waits until an element says something."""
    wait_for(lambda: words in text(browser, name), seconds=15, what=f"{name} saying {words!r}")


def severe(browser: webdriver.Chrome) -> list[str]:
    """What the console complained about."""
    return [entry["message"] for entry in browser.get_log("browser")]


def test_page_lives_without_a_complaint(browser: webdriver.Chrome, site: Site) -> None:
    """A new snapshot appears by itself; the console stays empty."""
    browser.get(site.url)
    wait_for_text(browser, "row-ttft", "14.7 ms")
    site.source.made = slower(site.source.made)
    wait_for_text(browser, "row-ttft", "777 ms")
    assert severe(browser) == []


def test_no_request_leaves_the_origin(browser: webdriver.Chrome, site: Site) -> None:
    """Page, style, script, icon and updates all come from the listener."""
    browser.get(site.url)
    site.source.made = slower(site.source.made)
    wait_for_text(browser, "row-ttft", "777 ms")
    messages = [json.loads(e["message"])["message"] for e in browser.get_log("performance")]
    urls = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert f"{site.url}live" in urls
    assert [url for url in urls if not url.startswith((site.url, "about:"))] == []


def test_update_keeps_focus_and_opened_numbers(browser: webdriver.Chrome, site: Site) -> None:
    """What the reader opened and where the keyboard stands survive an update."""
    browser.get(site.url)
    browser.execute_script("document.getElementById('plot-rate-summary').focus()")
    webdriver.ActionChains(browser).send_keys(Keys.ENTER).perform()
    history = made.history(seconds=200)
    site.source.made = slower(later(site.source.made, history=history))
    wait_for_text(browser, "row-ttft", "777 ms")
    wait_for_text(browser, "plot-rate-data", "200")
    focused, opened = browser.execute_script(
        "return [document.activeElement.id, document.getElementById('plot-rate-data').open]"
    )
    assert focused == "plot-rate-summary"
    assert opened


def test_lost_sidecar_is_said(browser: webdriver.Chrome, site: Site) -> None:
    """When the listener is gone the page says since when and keeps the figures, greyed."""
    browser.get(site.url)
    assert text(browser, "lost") == ""
    site.stop()
    wait_for_text(browser, "lost", "Connection to the sidecar lost since")
    assert "14.7 ms" in text(browser, "row-ttft")
    assert browser.execute_script("return document.body.className") == "stale"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("scene", ["lumping", "hostile", "tap_blind", "no_traffic"])
def test_page_fits_every_width(
    browser: webdriver.Chrome, site: Site, scene: str, theme: str, tmp_path: Path
) -> None:
    """From 375 to 1,600 pixels nothing needs a horizontal scroll, and a screenshot is kept."""
    site.source.made = made.SCENES[scene]()
    for width in WIDTHS:
        look(browser, width, theme)
        browser.get(site.url)
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        browser.save_screenshot(str(tmp_path / f"{scene}-{theme}-{width}.png"))
        assert wide <= width, width
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(244, 245, 247)", "dark": "rgb(14, 18, 22)"}[theme]


def test_first_screen_holds_the_main_things(browser: webdriver.Chrome, site: Site) -> None:
    """At 1280 by 800 the sentence, comparison, collectors and all plots are in view."""
    site.source.made = made.lumping()
    browser.get(site.url)
    for name in ("observations", "headline", "collectors", "plot-ttft-upstream", "plot-queue"):
        bottom = browser.execute_script(
            "const e = document.getElementById(arguments[0]);"
            "return Math.max(...[e, ...e.children].map((c) => c.getBoundingClientRect().bottom))",
            name,
        )
        assert 0 < bottom <= 800, name


def test_tab_reaches_the_main_things(browser: webdriver.Chrome, site: Site) -> None:
    """The skip link comes first, then each plot's numbers, then the raw data."""
    browser.get(site.url)
    reached = []
    for _ in range(10):
        webdriver.ActionChains(browser).send_keys(Keys.TAB).perform()
        name, outline = browser.execute_script(
            "const e = document.activeElement;"
            "return [e.id || e.getAttribute('href'), getComputedStyle(e).outlineStyle]"
        )
        reached.append(name)
        assert outline != "none", name
    assert reached[0] == "#headline"
    assert [name for name in reached if name.startswith("plot-")] == [
        f"plot-{key}-summary"
        for key in (
            *("ttft-downstream", "ttft-upstream", "itl-downstream", "itl-upstream"),
            *("rate", "queue"),
        )
    ]
    assert reached[-3:] == ["metrics", "api/v1/state", "readyz"]


def test_hostile_names_run_nothing(browser: webdriver.Chrome, site: Site) -> None:
    """Markup in names opens no dialog, breaks no policy and survives an update as text."""
    site.source.made = made.hostile()
    browser.get(site.url)
    site.source.made = slower(made.hostile())
    wait_for_text(browser, "row-ttft", "777 ms")
    assert "<script>alert('x')</script>" in text(browser, "collectors")
    assert severe(browser) == []
