"""A summary as one page that needs nothing else: no script, no request, both colour schemes.

Autoescape is always on and no value is ever marked safe, so that a hostile name stays text. The
styles of the status page and of a replay's page are included as templates of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from chaos.report import plots, sentences, strip, timeline, words
from chaos.report.summary import Figures, Summary
from sidecar.export.page.plot import HEIGHT, WIDTH
from sidecar.export.page.render import FOLDER as STYLES
from sidecar.history import drawing
from sidecar.units import count

_FOLDER = Path(__file__).parent
_REPLAY = Path(drawing.__file__).parent


@dataclass(frozen=True, slots=True)
class Card:
    """One fault by one method on one layer."""

    key: str
    title: str
    layer: str
    meaning: str
    bar: plots.Bar | None
    rate: str
    times: tuple[tuple[str, str, str], ...]
    facts: tuple[str, ...]
    curve: plots.Recovery | None
    strip: strip.Strip


@dataclass(frozen=True, slots=True)
class View:
    """The whole page."""

    origin: str
    when: str
    header: tuple[tuple[str, str], ...]
    verdict: str
    tone: str
    notes: tuple[str, ...]
    cards: tuple[Card, ...]
    stretches: tuple[timeline.Stretch, ...]
    shams: str
    controls: str
    wrong: tuple[str, ...]
    healing: str
    left: tuple[str, ...]


def render(summary: Summary) -> bytes:
    """The document, UTF-8."""
    html = _template().render(view=view(summary))
    return html.encode("utf-8", "replace")  # a lone surrogate must cost one character, not the page


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader([_FOLDER, _REPLAY, STYLES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(width=WIDTH, height=HEIGHT)
    return environment.get_template("campaign.html")


def view(summary: Summary) -> View:
    """What the page says."""
    header = dict(sentences.header(summary))
    return View(
        origin=", ".join(header[name] for name in ("campaign", "target") if name in header),
        when=header.get("when", ""),
        header=tuple(header.items()),
        verdict=_verdict(summary),
        tone=_tone(summary),
        notes=tuple(words.plain(note) for note in summary.notes),
        cards=tuple(_card(at, one) for at, one in enumerate(summary.faults)),
        stretches=timeline.stretches(summary.runs),
        shams=sentences.shams(summary),
        controls=sentences.controls(summary),
        wrong=tuple(sentences.listed(summary.controls.wrong)),
        healing=sentences.healing(summary),
        left=tuple(
            f"{words.plain(left.fault)} on {words.plain(left.target)}, {words.plain(left.id)}: "
            f"{words.plain(left.text)}"
            for left in summary.left
        ),
    )


def _verdict(summary: Summary) -> str:
    if not summary.runs:
        return "No runs: there is nothing to report"
    if summary.left:
        return f"{count(len(summary.left), 'run')} left something behind: see to it by hand"
    if summary.controls.wrong:
        return "A control run counted as injected: the proofs of effect prove nothing here"
    rates = [one.recovery for one in summary.faults if one.recovery]
    hits, n = sum(rate.hits for rate in rates), sum(rate.n for rate in rates)
    away = f"{hits:,} of {count(n, 'run')} with proof of effect recovered"
    if not n:
        away = "No run that counts in a rate of recovery"
    left = "nothing was left behind"
    if summary.unlooked:
        left = "whether device memory was left behind was not looked at"
    return f"{away}; {left}"


def _away(summary: Summary) -> int:
    rates = [one.recovery for one in summary.faults if one.recovery]
    return sum(rate.n - rate.hits for rate in rates)


def _tone(summary: Summary) -> str:
    """A class of the verdict: green is only where everything proven went well."""
    if summary.left or summary.controls.wrong:
        return "alarming"
    proven = any(one.proven for one in summary.faults)
    well = proven and not _away(summary) and not summary.unlooked
    return "calm" if well else "plain"


def _card(at: int, one: Figures) -> Card:
    return Card(
        key=f"fault-{at}",
        title=sentences.title(one),
        layer=one.layer.value,
        meaning=sentences.LAYERS[one.layer],
        bar=plots.bar(one.recovery) if one.recovery else None,
        rate=sentences.rate(one),
        times=tuple(sentences.times(one)),
        facts=tuple(sentences.about(one)),
        curve=plots.recovery(one),
        strip=strip.strip(one),
    )
