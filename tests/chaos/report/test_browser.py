"""The page in Chromium: nothing overflows, nothing is asked for, both colour schemes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver

from chaos.report.page import render
from chaos.report.summarising import summarise
from tests.chaos.report.made import campaign, stuck, without_proof
from tests.chaos.report.test_summarising import unseen_injections

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
CASES = {
    "many": campaign(60),
    "none": [],
    "not injected": [without_proof(n) for n in range(3)],
    "censored": [stuck(n) for n in range(3)],
    "a message": unseen_injections(),
}
# Elements whose text is cut or hangs out at the right, except in what scrolls by itself.
OVERFLOWING = """
const wide = document.documentElement.clientWidth;
return [...document.querySelectorAll("body *")]
  .filter(e => e.getBoundingClientRect().right > wide + 1 && e.getClientRects().length)
  .map(e => e.tagName + "." + e.getAttribute("class")).slice(0, 5);
"""
# Texts that have so little room that they break within words.
SQUEEZED = """
return [...document.querySelectorAll("#rates .fault, .said, .facts li, .times td, .strip .word")]
  .filter(e => e.getClientRects().length && e.getBoundingClientRect().width < 60
    && e.textContent.length > 7)
  .map(e => e.tagName + "." + e.getAttribute("class")).slice(0, 5);
"""


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


@pytest.mark.parametrize("name", CASES)
def test_it_fits_every_width_in_both_schemes(
    browser: webdriver.Chrome, tmp_path: Path, name: str
) -> None:
    """Every element lies within the window, with all parts open; nothing is logged or asked for."""
    file = tmp_path / "page.html"
    file.write_bytes(render(summarise(CASES[name])))
    browser.get("about:blank")
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(file.as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(e => e.open = true)")
    grounds = set()
    for scheme in ("light", "dark"):
        for width in (320, 400, 768, 1200, 1600):
            metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            assert browser.execute_script(OVERFLOWING) == [], (scheme, width)
            assert browser.execute_script(SQUEEZED) == [], (scheme, width)
        script = "return getComputedStyle(document.body).backgroundColor"
        grounds.add(browser.execute_script(script))
    assert len(grounds) == 2
    assert browser.get_log("browser") == []
    asked = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    addresses = {
        message["params"]["request"]["url"]
        for message in asked
        if message["method"] == "Network.requestWillBeSent"
        and message["params"]["documentURL"] == file.as_uri()  # not of Chromium's own first tab
    }
    assert file.as_uri() in addresses
    assert addresses <= {file.as_uri(), "data:,"}
