"""What a reader of a terminal is told: the account of the sources, and the report of a replay."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from sidecar.export.alarms import subject
from sidecar.history.episodes import Episode
from sidecar.history.records import MEANINGS, Account
from sidecar.history.report import Report, titled, unjudged
from sidecar.history.times import written
from sidecar.units import count, duration, number
from sidecar.verdicts import Severity

_SHOWN = 50
_STYLES = {Severity.PAGE: "bold red", Severity.TICKET: "yellow"}


def plain(text: str) -> str:
    """Text of a foreign source on one line, without what could drive a terminal."""
    text = text.replace("\N{NO-BREAK SPACE}", " ")  # which we write ourselves, and is not printable
    return "".join(c if c.isprintable() else "?" for c in text)[:256]


def sentences(account: Account) -> Iterator[str]:
    """What was read and what became of it, a line each."""
    yield f"read {account.read:,}, kept {count(account.records, 'record')}"
    for flaw, many in account.flaws.most_common():
        yield f"left out {many:,}: {flaw.value.replace('_', ' ')} ({MEANINGS[flaw]})"
    if account.sorted:
        yield f"{account.sorted:,} came out of order and were put in their place"
    if account.ambiguous:
        yield (
            f"{account.ambiguous:,} local times are of the hour that comes twice; told apart by "
            "what came before"
        )
    yield from (plain(note) for note in account.notes)


def tell(console: Console, account: Account) -> None:
    """Prints the account."""
    for sentence in sentences(account):
        console.print(Text(sentence, style="dim"))


def show(console: Console, report: Report) -> None:
    """Prints what would have alarmed."""
    if report.first is not None:
        length = duration(report.last - report.first)
        span = f"{written(report.first)} to {written(report.last)} UTC ({length})"
        console.print(Text(span, style="bold"))
    tell(console, report.account)
    for series, drawn in report.series[:_SHOWN]:
        console.print(
            Text(
                f"{plain(titled(series))}: {count(drawn.minutes, 'minute')}, {drawn.idle:,} idle, "
                f"{drawn.judged:,} judged"
            )
        )
    for line in unjudged(report):
        console.print(Text(line, style="dim"))
    if not report.episodes:
        console.print(Text("Nothing would have alarmed.", style="bold green"))
        return
    many = count(len(report.episodes) + report.more, "alarm")
    console.print(Text(f"{many} would have fired:", style="bold red"))
    for episode in report.episodes[:_SHOWN]:
        console.print(_lines(episode, report.last))
    rest = len(report.episodes) + report.more - _SHOWN
    if rest > 0:
        console.print(Text(f"and {count(rest, 'more alarm')}; --html and --json have them"))


def _lines(episode: Episode, last: float) -> Text:
    """One alarm: when, for how long, what; under it why, and the figures."""
    lasted = duration(episode.lasted(last))
    still = "" if episode.resolved is not None else ", still firing"
    text = Text(f"\n{written(episode.fired)}  {lasted}{still}  ")
    text.append(episode.rule, style=_STYLES[episode.severity])
    text.append(f" ({episode.severity.value})  {plain(subject(episode.labels))}", style="dim")
    text.append(f"\n  {plain(episode.text)}")
    figures = ", ".join(
        f"{name.replace('_', ' ')} {plain(value) if isinstance(value, str) else number(value)}"
        for name, value in episode.evidence
    )
    return text.append(f"\n  {figures}", style="dim")
