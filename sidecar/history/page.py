"""A replay as one page that needs nothing else: no script, no request, both colour schemes.

Autoescape is always on and no value is ever marked safe, so that a hostile model name stays text.
The styles of the status page are included as a template of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from sidecar import __version__
from sidecar.detect import errors, slo
from sidecar.export.alarms import subject
from sidecar.export.intake import safe_label
from sidecar.export.page.plot import HEIGHT, WIDTH
from sidecar.export.page.render import FOLDER as STYLES
from sidecar.history.drawing import Plot, Shade, Span, plot, shade, span
from sidecar.history.episodes import Episode, labels_of
from sidecar.history.report import RULES, Report, titled, unjudged
from sidecar.history.terminal import sentences
from sidecar.history.times import written
from sidecar.history.tracks import Answers
from sidecar.signals import Leg
from sidecar.units import count, duration, number, percent

_FOLDER = Path(__file__).parent
_PLOTS = 24
_SHOWN = 200
_OF_WIRE = {rule.name for rule in (*errors.RULES, *slo.RULES)}


@dataclass(frozen=True, slots=True)
class Row:
    """One alarm for people."""

    rule: str
    subject: str
    severity: str
    fired: str
    lasted: str
    firing: bool
    text: str
    evidence: str
    meaning: str
    action: str


@dataclass(frozen=True, slots=True)
class View:
    """The whole page."""

    version: str
    origin: str
    when: str
    length: str
    verdict: str
    rows: tuple[Row, ...]
    more: str
    plots: tuple[Plot, ...]
    plots_more: str
    span: Span
    account: tuple[str, ...]
    unjudged: tuple[str, ...]


def render(report: Report) -> bytes:
    """The document, UTF-8."""
    html = _template().render(view=view(report))
    return html.encode("utf-8", "replace")  # a lone surrogate must cost one character, not the page


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader([_FOLDER, STYLES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(width=WIDTH, height=HEIGHT)
    return environment.get_template("report.html")


def view(report: Report) -> View:
    """What the page says."""
    within = span(report.first or 0.0, report.last)
    plots = sorted(_plots(report, within), key=lambda found: not found.shades)  # alarms first
    many = len(report.episodes) + report.more
    begun = report.first is not None
    return View(
        version=__version__,
        origin=safe_label(report.origin),
        when=f"{written(report.first or 0.0)} to {written(report.last)} UTC" if begun else "",
        length=duration(report.last - (report.first or 0.0)) if begun else "no record",
        verdict=f"{count(many, 'alarm')} would have fired"
        if many
        else "Nothing would have alarmed",
        rows=tuple(_row(episode, report.last) for episode in report.episodes[:_SHOWN]),
        more=f"and {count(many - _SHOWN, 'more alarm')}" if many > _SHOWN else "",
        plots=tuple(plots[:_PLOTS]),
        plots_more=f"and {len(plots) - _PLOTS} more series" if len(plots) > _PLOTS else "",
        span=within,
        account=tuple(sentences(report.account)),
        unjudged=tuple(unjudged(report)),
    )


def _row(episode: Episode, last: float) -> Row:
    rule = RULES[episode.rule]
    evidence = " · ".join(
        f"{safe_label(name.replace('_', ' '))} "
        + (safe_label(value) if isinstance(value, str) else number(value))
        for name, value in episode.evidence
    )
    return Row(
        rule=episode.rule,
        subject=safe_label(subject(episode.labels)),
        severity=episode.severity.value,
        fired=written(episode.fired),
        lasted=duration(episode.lasted(last)),
        firing=episode.resolved is None,
        text=safe_label(episode.text[:1].upper() + episode.text[1:]),
        evidence=evidence,
        meaning=rule.meaning,
        action=rule.action,
    )


def _plots(report: Report, within: Span) -> Iterator[Plot]:
    """The rates, each with its own alarms, then the legs with theirs; empty ones are left out."""
    for at, (series, drawn) in enumerate(report.series):
        on_it = labels_of(series)
        found = plot(
            f"rate-{at}",
            safe_label(titled(series)),
            "tokens/s of one sequence",
            (
                ("rate", "engine", drawn.rate),
                ("baseline", "baseline", drawn.mean),
                ("lower bound", "bound", drawn.lower),
            ),
            within,
            number,
            _shades((e for e in report.episodes if e.labels == on_it), report, within),
        )
        if found is not None:
            yield found
    for leg, answers in report.legs:
        yield from _of_leg(leg, answers, report, within)


def _of_leg(leg: Leg, answers: Answers, report: Report, within: Span) -> Iterator[Plot]:
    on_it = (
        episode
        for episode in report.episodes
        if episode.rule in _OF_WIRE and dict(episode.labels).get("leg", leg.value) == leg.value
    )
    shades = _shades(on_it, report, within)
    for key, title, track, write in (
        ("requests", "Requests a minute", answers.requests, number),
        ("failed", "Failed share", answers.failed, percent),
        ("ttft", "TTFT, P95 of each minute", answers.ttft, duration),
        ("duration", "Request duration, P95 of each minute", answers.duration, duration),
    ):
        lines = ((leg.value, leg.value, track),)
        found = plot(f"{key}-{leg}", title, "", lines, within, write, shades)
        if found is not None:
            yield found


def _shades(episodes: Iterable[Episode], report: Report, within: Span) -> list[Shade]:
    """Where alarms were on. An objective's has no leg: it is shown on each."""
    found = []
    for episode in episodes:
        until = report.last if episode.resolved is None else episode.resolved
        lasted = duration(episode.lasted(report.last))
        title = f"{episode.rule}, {written(episode.fired)} UTC, for {lasted}"
        found.append(shade(within, episode.fired, until, episode.severity.value, title))
    return found
