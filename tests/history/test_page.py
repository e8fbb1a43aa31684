"""A replay as a page: self-contained, well-formed, and safe against what it shows."""

from __future__ import annotations

import json
import re
from functools import cache
from html.parser import HTMLParser

import pytest
from rich.console import Console

from sidecar.detect.minutes import Series
from sidecar.export.api import encode
from sidecar.history import page
from sidecar.history.drawing import span
from sidecar.history.records import Record
from sidecar.history.report import Report, document, report
from sidecar.history.terminal import show
from sidecar.history.tracks import Track
from tests.history.made import START, healthy, minutes, played
from tests.history.test_player_requests import served

HOSTILE = "</title><script>alert(1)</script>\"'&{{ 7*7 }}\x1b[2J\u202e"
_VOID = frozenset(("meta", "link", "br", "path", "img", "input"))


class Checked(HTMLParser):
    """Collects tags, and fails on one that is closed and was not open."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "data", "action")]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop() == tag


@cache
def ill(model: str = "Qwen2-7B") -> Report:
    """A series with an incident in it, and an hour of requests with a burst."""
    series = Series("engine", "r0", model)
    rates = minutes([*healthy(200), *healthy(20, mean=15), None, None, *healthy(60)], series)
    records: list[Record] = sorted(
        [*rates, *served(900, fails=range(605, 665))], key=lambda one: one.at
    )
    return report(played(records), f"csv:{model}")


def html(found: Report) -> str:
    return page.render(found).decode()


def test_it_is_well_formed_and_needs_nothing_else() -> None:
    """Every tag is closed; no script, and no address but its own anchors."""
    text = html(ill())
    checked = Checked(text)
    assert checked.open == []
    assert "script" not in checked.tags
    assert {a for a in checked.addresses if not a.startswith(("#", "data:"))} == set()
    assert not re.search(r"url\(|@import", text)


def test_alarms_are_listed_and_shaded() -> None:
    """Each with when, for how long and why; the shade lies where the alarm was."""
    found = ill()
    text = html(found)
    assert "TokenRateOutOfBand" in text
    assert "ErrorBurst" in text
    assert text.count('class="shade') >= len(found.episodes)
    band = next(e for e in found.episodes if e.rule == "TokenRateOutOfBand")
    within = span(found.first or 0.0, found.last)
    assert f'x="{within.x(band.fired):.2f}"' in text


@pytest.mark.parametrize("model", [HOSTILE, "a" * 5_000, "\ud800", "", "<svg onload=x>"])
def test_hostile_names_stay_text(model: str) -> None:
    """A model's name becomes neither a tag nor a command for a terminal or a template."""
    found = ill(model)
    text = html(found)
    checked = Checked(text)
    assert checked.open == []
    assert "script" not in checked.tags
    assert "onload" not in text or "&lt;svg" in text
    assert "\x1b" not in text
    assert ">49<" not in text
    console = Console(record=True, width=100, file=open("/dev/null", "w"))  # noqa: SIM115
    show(console, found)
    assert "\x1b[2J" not in console.export_text()


def test_a_quiet_history_says_so() -> None:
    """Nothing alarmed is a result, shown as one."""
    text = html(report(played(minutes(healthy(200))), "x"))
    assert "Nothing would have alarmed" in text
    assert 'class="shade' not in text


def test_what_could_not_be_judged_is_named() -> None:
    """A page without errors is no claim that there were none."""
    text = html(report(played(minutes(healthy(30))), "x"))
    assert "a baseline needs 60 active minutes" in text
    assert "there are no requests in the data" in text


def test_as_json_it_is_strict() -> None:
    """Plain JSON, with the evidence of each alarm."""
    found = json.loads(encode(document(ill(HOSTILE))))
    band = next(alarm for alarm in found["alarms"] if alarm["rule"] == "TokenRateOutOfBand")
    assert band["evidence"]["mean"] == pytest.approx(42.6, abs=1)
    assert band["labels"]["model"] == HOSTILE
    assert {"fired", "resolved", "seconds", "text", "meaning", "action"} <= band.keys()


def test_a_year_of_minutes_is_drawn_in_bounded_memory() -> None:
    """Slots widen by themselves, and the least and the most of each stay."""
    track = Track()
    for n in range(525_600):
        track.add(START + 60 * n, 5.0 if n == 300_000 else 40.0)
    cells = track.cells()
    assert 400 < len(cells) <= 1_025
    assert min(cell.least for cell in cells) == 5.0
    assert max(cell.most for cell in cells) == 40.0


@pytest.mark.parametrize("seconds", [60, 3_600, 86_400, 7 * 86_400, 400 * 86_400])
def test_ticks_are_few_and_round(seconds: float) -> None:
    """Between one and eight, each within the plot."""
    ticks = span(START + 17, START + 17 + seconds).ticks
    assert 1 <= len(ticks) <= 9
    assert all(0 <= tick.share <= 100 for tick in ticks)


def test_the_styles_of_the_status_page_are_included() -> None:
    """One look for both pages."""
    assert "--downstream" in html(ill())
