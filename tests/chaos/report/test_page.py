"""The page: self-contained, escaped, and drawn where the figures are."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from chaos.report import page, plots
from chaos.report.page import render, view
from chaos.report.strip import SHOWN, strip
from chaos.report.summarising import summarise
from chaos.report.timeline import stretches
from chaos.statistics import share
from chaos.vocabulary import Detected, Ending, Healing, Kind, Layer, Probe, Run
from sidecar.export.page.plot import HEIGHT, WIDTH
from tests.chaos.report.made import AT, HOSTILE, campaign, place, run, stuck, without_proof
from tests.chaos.report.test_summarising import killed_helper, only, unseen_injections


class Reader(HTMLParser):
    """Tags with their attributes, and the text outside of style sheets."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "path", "rect", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("path", "rect"):
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


def read(runs: list[Run], notes: tuple[str, ...] = ()) -> Reader:
    """The page of these runs."""
    return Reader(render(summarise(runs, notes)).decode())


CASES = {
    "many": campaign(120),
    "one": [run()],
    "none": [],
    "not injected": [without_proof(n) for n in range(3)],
    "censored": [stuck(n) for n in range(3)],
    "a message": unseen_injections(),
}


@pytest.mark.parametrize("runs", CASES.values(), ids=CASES.keys())
def test_it_needs_nothing_else(runs: list[Run]) -> None:
    """No script, no address but of the page itself, all tags closed, all ids once."""
    found = read(runs)
    assert found.open == []
    assert "script" not in {tag for tag, _ in found.tags}
    for _, attributes in found.tags:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("href", "src", "xlink:href", "action"):
            assert (attributes.get(name) or "#").startswith(("#", "data:,"))
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert "@import" not in render(summarise(runs)).decode()


@pytest.mark.parametrize("runs", CASES.values(), ids=CASES.keys())
def test_no_number_is_none(runs: list[Run]) -> None:
    """No drawing holds a NaN, and no text the word for nothing of the language."""
    found = read(runs)
    for _, attributes in found.tags:
        for name in ("d", "x", "width"):
            assert not re.search(r"nan|inf|None", attributes.get(name) or "")
    assert not re.search(r"\bNone\b|\bnan\b", found.text)


def test_hostile_texts_stay_text() -> None:
    """Mark-up shows as what it is, controls are gone, and templates are not run twice."""
    made = without_proof(
        1, fault=HOSTILE, method=HOSTILE, target=HOSTILE, campaign=HOSTILE, reason=HOSTILE
    )
    left = run(
        2,
        fault=HOSTILE,
        left_behind=HOSTILE,
        expects=(HOSTILE,),
        detected=(Detected(HOSTILE, 1.0, HOSTILE),),
        places=(
            place(HOSTILE, 2.0, (Probe(1.0, 1.5, HOSTILE, 0.2, 5), Probe(4, 5, None, 0.2, 5))),
        ),
    )
    control = run(3, kind=Kind.CONTROL, reason=HOSTILE)
    html = render(summarise([made, left, control], (HOSTILE,))).decode()
    assert "<script" not in html
    assert "{{ 1 }}" in html
    assert not [c for c in html if not c.isprintable() and c not in "\n\N{NO-BREAK SPACE}"]
    assert '<script>alert("x")</script>' in Reader(html).text


def test_a_lone_surrogate_costs_a_character() -> None:
    """And not the page."""
    assert b"port" in render(summarise([run(1, target="port\ud800")]))


def test_the_rate_is_said_beside_its_bar() -> None:
    """With both intervals, and two of three is not two of five."""
    text = " ".join(read(killed_helper()).text.replace("\N{NO-BREAK SPACE}", " ").split())
    assert "66.7 %, 2 of 3" in text
    assert "20.8–93.9 % Wilson" in text
    assert "run 4 inconclusive: target gone" in text


def test_a_bar_lies_where_its_interval_does() -> None:
    """In units of the width."""
    drawn = plots.bar(share(98, 100))
    assert drawn.rate == pytest.approx(0.98 * WIDTH)
    assert drawn.wilson == pytest.approx((0.92999 * WIDTH, 0.9945 * WIDTH), rel=1e-4)
    assert plots.bar(share(0, 0)).rate is None


def test_the_curve_climbs_where_runs_ended() -> None:
    """Four runs after 2, 4, 6 and 8 s on an axis to 8 s: a step of a quarter each."""
    runs = [run(n, places=(place("users", 2.0 * n),)) for n in range(1, 5)]
    drawn = plots.recovery(only(runs))
    assert drawn is not None
    assert drawn.path == "M0 100H75.00V75.00H150.00V50.00H225.00V25.00H300.00V0.00H300.00"
    assert [tick.replace("\N{NO-BREAK SPACE}", " ") for tick in drawn.ticks] == [
        *("0", "2 s", "4 s", "6 s", "8 s")
    ]
    assert drawn.cuts == ""


def test_censored_runs_are_marked_on_the_curve() -> None:
    """Where their watching ended, at the height the curve has there."""
    runs = [run(1, places=(place("users", 2.0),)), stuck(2)]
    drawn = plots.recovery(only(runs))
    assert drawn is not None
    assert drawn.cuts == f"M{WIDTH * 59.9 / 60:.2f} {HEIGHT / 2 - 5:.2f}v10"
    assert drawn.path.endswith(f"V50.00H{WIDTH * 59.9 / 60:.2f}")


def test_the_area_is_the_curves_interval() -> None:
    """Up along the upper bounds to the last run, and back along the lower ones, closed."""
    figures = only([run(n, places=(place("users", 2.0 * n),)) for n in range(1, 5)])
    drawn = plots.recovery(figures)
    assert drawn is not None
    assert figures.recover is not None
    steps = figures.recover.curve.steps
    xs = (75, 150, 225, 300)
    upper = [f"H{x}.00V{HEIGHT * (1 - step.upper):.2f}" for x, step in zip(xs, steps, strict=True)]
    lower = [f"V{HEIGHT * (1 - step.lower):.2f}H{x}.00" for x, step in zip(xs, steps, strict=True)]
    assert drawn.area == f"M0 100{''.join(upper)}H300.00{''.join(reversed(lower))}V100Z"


def test_a_message_has_no_curve_and_no_bar() -> None:
    """There was nothing to recover from."""
    [card] = view(summarise([run(n, layer=Layer.REPORTED) for n in range(3)])).cards
    assert (card.bar, card.curve) == (None, None)
    assert "not applicable" in card.rate


def test_faults_are_shaded_over_the_probes() -> None:
    """From the effect to the end of the undo, on the same axis as the lines."""
    probes = tuple(Probe(float(at), at + 0.5, None, 0.1, 10) for at in range(-3, 60))
    runs = [
        run(n, started_unix=AT + 100 * n, places=(place("users", 2.0, probes),)) for n in (0, 1)
    ]
    [part] = stretches(runs)
    for plot in part.plots:
        assert [shade.style for shade in plot.shades] == ["page", "page"]
    first, second = part.plots[0].shades
    length = 100 + 59.5 + 3
    assert first.x == pytest.approx(WIDTH * 3.1 / length)
    assert second.x - first.x == pytest.approx(WIDTH * 100 / length)
    assert first.width == pytest.approx(WIDTH * 0.9 / length)


def test_tokens_and_failures_are_sums_of_seconds() -> None:
    """Two whole answers of 10 tokens in a second are 20 tokens/s; one that failed is 1 there."""
    probes = [Probe(at / 2, at / 2 + 0.1, None, 0.05, 10) for at in range(20)]
    probes[8] = Probe(4.0, 4.1, "refused", None)
    [part] = stretches([run(places=(place("users", 2.0, tuple(probes)),))])
    _, tokens, failed = part.plots
    assert tokens.lines[0].figures == "mean 18.8, 10 to 20"
    assert failed.lines[0].figures == "mean 0.12, 0 to 1"


def test_long_campaigns_come_in_parts() -> None:
    """Of 50 runs: more cannot be told apart on a screen."""
    assert [part.title for part in stretches(campaign(120))] == [
        *("Runs 1 to 50", "Runs 51 to 100", "Runs 101 to 120")
    ]


def test_a_strip_has_a_row_for_each_run() -> None:
    """Those that do not count too, and says what it leaves out."""
    found = strip(only([*(run(n) for n in range(SHOWN)), without_proof(SHOWN)]))
    assert len(found.rows) == SHOWN
    assert found.more == "and 1 more run"


def test_a_row_has_its_moments_in_order() -> None:
    """Effect, failing, first success, recovered; an alarm where it fired."""
    probes = (
        Probe(0.5, 0.6, "cut", None),
        Probe(0.8, 1.0, "cut", None),
        Probe(1.0, 1.1, None, 0.1),
    )
    made = run(1, places=(place("users", 2.0, probes),), detected=(Detected("A", 1.5),))
    [row] = strip(only([made])).rows
    [(left, wide)] = row.failing
    scale = WIDTH / 4  # the axis ends at 4 s, for it recovered at 2.1 s
    assert row.effect == pytest.approx(0.1 * scale)
    assert (left, left + wide) == pytest.approx((0.5 * scale, 1.0 * scale))
    assert row.detected == pytest.approx(1.5 * scale)
    assert row.success == pytest.approx(1.1 * scale)
    assert row.recovered == pytest.approx(2.1 * scale)


def test_a_row_of_a_message_says_whether_it_was_detected() -> None:
    """It did not recover, for there was nothing to recover from."""
    told = {"layer": Layer.REPORTED}
    seen = run(1, **told, detected=(Detected("Xid", 9.0),))
    first, second = strip(only([seen, run(2, **told)])).rows
    assert (first.word, second.word) == ("detected", "not detected")
    assert (first.success, first.recovered) == (None, None)
    assert first.detected == pytest.approx(WIDTH * 9 / 10)


@pytest.mark.parametrize(
    ("runs", "tone", "words"),
    [
        ([run(1)], "calm", "1 of 1 run with proof of effect recovered; nothing was left behind"),
        ([run(1), stuck(2)], "plain", "1 of 2 runs with proof of effect recovered"),
        ([without_proof(1)], "plain", "No run that counts"),
        ([], "plain", "nothing to report"),
        ([run(1, healing=Healing(Ending.FAILED, "x"))], "alarming", "by hand"),
        ([run(1), run(2, kind=Kind.CONTROL)], "alarming", "prove nothing"),
    ],
)
def test_the_verdict_is_green_only_where_all_is_well(
    runs: list[Run], tone: str, words: str
) -> None:
    """A campaign without a proof is none that went well."""
    found = view(summarise(runs))
    assert found.tone == tone
    assert words in found.verdict


def test_strange_times_do_not_break_the_page() -> None:
    """Of a clock that was never set, or of a file that was made by hand."""
    probes = (Probe(1e300, 1e300, None, 0.1, 1), Probe(-1e300, 5.0, "cut", None))
    for started in (-1e18, 0.0, 1e300):
        odd = run(1, started_unix=started, watched=1e300, places=(place("users", 1e300, probes),))
        assert b"model-probe chaos" in page.render(summarise([odd, run(2)]))
