"""The page as HTML: what it says in each state, and that nothing gets out of its text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from dataclasses import replace as changed
from html.parser import HTMLParser

import pytest

from sidecar.export.page.render import Page
from sidecar.signals import CollectorState, Leg
from sidecar.snapshot import Snapshot
from tests.export import made

PAGE = Page("0.1.0")


@dataclass
class Document(HTMLParser):
    """A page taken apart: its tags, its text by the nearest id, and its ids."""

    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: dict[str, str] = field(default_factory=dict)
    _open: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag not in ("meta", "link", "path", "circle"):
            self._open.append((tag, found.get("id") or ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag, f"{tag} closes another element"

    def handle_data(self, data: str) -> None:
        for _, name in self._open:
            if name:
                self.text[name] = f"{self.text.get(name, '')} {data}"

    def words(self, name: str) -> str:
        """The text under an id, spaces made even."""
        return " ".join(self.text.get(name, "").split())


def show(snapshot: Snapshot, late: float = 0.4) -> Document:
    """The whole page for a snapshot, read ``late`` seconds after it."""
    document = Document()
    document.feed(PAGE.page(snapshot, snapshot.at + late).decode())
    document.close()
    return document


def row(snapshot: Snapshot, name: str) -> str:
    """The words of one row of the comparison."""
    return show(snapshot).words(f"row-{name}")


@pytest.mark.parametrize("scene", made.SCENES)
def test_every_state_is_well_formed(scene: str) -> None:
    """Each element closes, and no id is there twice."""
    document = show(made.SCENES[scene]())
    ids = [attrs["id"] for _, attrs in document.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert not document._open


@pytest.mark.parametrize("scene", made.SCENES)
def test_nothing_inline_and_nothing_foreign(scene: str) -> None:
    """No inline style, script or handler, and no address outside the origin."""
    for tag, attrs in show(made.SCENES[scene]()).tags:
        assert tag != "style"
        assert not any(name == "style" or name.startswith("on") for name in attrs)
        assert tag != "script" or attrs.get("src") == "static/page.js"
        for name in ("href", "src"):
            assert not re.match(r"(\w+:)?//|/|\w+:", attrs.get(name) or "")


def test_hostile_strings_stay_text() -> None:
    """A name made of markup is shown as it is and makes no element."""
    document = show(made.hostile())
    assert sum(tag == "script" for tag, _ in document.tags) == 1
    assert "<script>alert('x')</script>" in document.words("collectors")
    assert "{{ 7 * 7 }}" in document.words("collectors")


def test_endless_reason_is_cut() -> None:
    """A reason of kilobytes takes a few lines."""
    assert len(show(made.hostile()).words("collectors")) < 800


def test_wire_beside_engine() -> None:
    """The three voices stand side by side, each with its own number."""
    assert row(made.snapshot(), "ttft") == (
        "Time to first token median of 60 s 14.7 ms p99 31.2 ms 13.8 ms p99 28.9 ms – not exposed"
    )
    assert row(made.snapshot(), "queue").endswith("7 running 1 waiting")
    assert "815 /s tokens" in row(made.snapshot(), "rate")
    assert "10.0 ms mean, from its counters" in row(made.snapshot(), "itl")


def test_gateway_overhead_is_the_difference() -> None:
    """What the gateway adds is the client side's median less the engine side's."""
    assert "+192 ms" in row(made.lumping(), "overhead")


def test_lumping_is_said_in_a_sentence() -> None:
    """The incident the engine cannot see is the first thing on the page."""
    assert "Clients receive tokens in lumps" in show(made.lumping()).words("observations")
    assert show(made.snapshot()).words("observations") == ""


def test_no_traffic_is_not_zero() -> None:
    """Before the first request the wire's figures are dashes with the reason."""
    for name in ("ttft", "itl", "rate", "queue", "requests"):
        words = row(made.no_traffic(), name)
        assert words.count("– no request yet") == 2, name
    assert "Wire: no request yet." in show(made.no_traffic()).words("plot-ttft-downstream")
    assert row(made.no_traffic(), "queue").endswith("0 running 0 waiting")
    assert "needs two scrapes" in row(made.no_traffic(), "rate")


def test_blind_tap_withdraws_the_wire() -> None:
    """Windows of before the tap went blind are not shown, and the strip says why it is blind."""
    document = show(made.tap_blind())
    for name in ("ttft", "itl", "rate", "queue", "requests"):
        assert document.words(f"row-{name}").count("– tap blind") == 2, name
    assert "818 /s" in document.words("row-rate")
    assert (
        "read 1 min 23 s ago blind no permission : /run/model-probe/probed.sock"
        in document.words("collectors")
    )


def test_missing_tap_is_not_a_blind_one() -> None:
    """Without any wire tap in the configuration the page says just that."""
    assert row(made.snapshot(collectors=()), "ttft").count("no wire tap") == 2


def test_engines_down_and_what_clients_get() -> None:
    """Engines that refuse have no figures; their requests fail, and that is measured."""
    document = show(made.engines_down())
    for name in ("rate", "queue"):
        assert document.words(f"row-{name}").endswith("– engine blind")
    assert "479 479 failed" in document.words("row-requests")
    assert "Clients saw 479 of 479 requests fail" in document.words("observations")
    assert "refused" in document.words("collectors")


def test_some_engines_down_is_said_beside_the_sum() -> None:
    """A sum over fewer replicas than configured is marked."""
    alive = made.snapshot()
    dead = made.engines_down().collectors[2]
    snapshot = changed(alive, collectors=(*alive.collectors[:2], dead))
    assert "1 of 2 blind" in row(snapshot, "queue")


def test_gateway_down_is_silence_not_zero_latency() -> None:
    """Nobody gets through: latencies are dashes, the number of requests is a measured 0."""
    assert row(made.gateway_down(), "ttft").count("– none in the last 60 s") == 2
    assert "0 0 failed 0 0 failed" in row(made.gateway_down(), "requests")


def test_first_request_still_open() -> None:
    """A request in flight is seen before any has ended."""
    windows = tuple(changed(made.quiet(leg), open_requests=1) for leg in Leg)
    words = row(changed(made.no_traffic(), windows=windows), "queue")
    assert words.count("1 open") == 2
    assert "first request still open" in row(changed(made.no_traffic(), windows=windows), "ttft")


def test_stand_in_badge() -> None:
    """A stand-in is named at the top for as long as it is one."""
    status = made.status("nvml", CollectorState.FIRING, stand_in=True)
    assert "Stand-in data: nvml" in show(made.snapshot(collectors=(status,))).words("top")
    assert "Stand-in" not in show(made.snapshot()).words("top")


def test_old_snapshot_is_called_stale() -> None:
    """When the sidecar's own pipeline stands still the page does not say live."""
    assert "Live 14:13:20 UTC" in show(made.snapshot()).words("top")
    words = show(made.snapshot(), late=75).words("top")
    assert "Live" not in words
    assert "Stale: the last snapshot is 1 min 15 s old" in words


@pytest.mark.parametrize("state", list(CollectorState))
def test_state_is_a_word_and_a_shape(state: CollectorState) -> None:
    """Each state is written out and has a mark of its own, besides its colour."""
    document = show(made.snapshot(collectors=(made.status("one", state),)))
    assert document.words("collectors").endswith(f" {state}") or f" {state} " in document.words(
        "collectors"
    )
    assert any(attrs.get("class") == f"mark {state}" for _, attrs in document.tags)


def test_plots_are_described() -> None:
    """Each plot is an image with a title, its latest values, and a table of numbers to open."""
    document = show(made.snapshot())
    images = [attrs for tag, attrs in document.tags if tag == "svg" and attrs.get("role") == "img"]
    assert len(images) == 6
    for attrs in images:
        for name in (attrs["aria-labelledby"] or "").split():
            assert document.words(name), name
    assert "p50 13.5 ms, p99 28.5 ms." in document.words("plot-ttft-downstream-desc")
    assert sum(tag == "summary" for tag, _ in document.tags) == 6


def test_live_part_has_the_sections_of_the_page() -> None:
    """Every section that changes has an id that the document has too."""
    now = made.AT + 0.4
    live, page = Document(), show(made.snapshot())
    live.feed(PAGE.live(made.snapshot(), now).decode())
    ids = {attrs["id"] for _, attrs in live.tags if "data-live" in attrs}
    assert ids >= {"top", "observations", "figures", "collectors", "plot-rate"}
    assert ids == {attrs["id"] for _, attrs in page.tags if "data-live" in attrs}


def test_page_refreshes_without_a_script() -> None:
    """Where scripts are off the page reloads itself."""
    html = PAGE.page(made.snapshot(), made.AT).decode()
    assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in html
