"""What a summary says in sentences, the same for a terminal and for the page.

All text that came from outside is made safe for a terminal here; the page escapes it once more.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.report import words
from chaos.report.summary import Aside, Counts, Figures, Summary
from chaos.vocabulary import Ending, Layer
from sidecar.units import count, duration, number

LAYERS = {
    Layer.REPORTED: "a message only; the device was well",
    Layer.API: "a call was made to fail; the device was well",
    Layer.REAL: "the process or device really was in that state",
}
ENDINGS = {
    Ending.HEALED: "undone and seen to be",
    Ending.MOOT: "nothing left to undo",
    Ending.FAILED: "failed",
}
SHOWN = 10  # runs that are named one by one


def title(one: Figures) -> str:
    """``gpu_oom by balloon``."""
    return f"{words.plain(one.fault)} by {words.plain(one.method)}"


def rate(one: Figures) -> str:
    """The rate with Wilson's interval, or why there is none."""
    if one.recovery is None:
        seen = count(one.proven, "proven run") if one.proven else "in no run was it seen"
        return f"recovery not applicable: a message leaves nothing to recover from ({seen})"
    if one.recovery.rate is None:
        return "no recovery rate: no run that counts"
    found = one.recovery
    inside = f"Wilson {words.bounds(found.wilson)}, Clopper–Pearson {words.bounds(found.clopper)}"
    return f"recovered {words.of(found)} = {words.ratio(found.rate)} ({inside})"


def times(one: Figures) -> Iterator[tuple[str, str, str]]:
    """Name, median and P95 of each time, for those that have any."""
    if one.recover is not None and one.proven:
        yield "to recover", words.seconds(one.recover.median), words.seconds(one.recover.p95)
    for place in one.places:
        seen = place.interruption
        give = f"±{duration(place.period)}"
        name = f"interruption, {words.plain(place.name)} {give}"
        yield name, words.seconds(seen.median), words.seconds(seen.p95)
    if one.detection.share.hits:
        found = one.detection
        yield "to detect", words.seconds(found.median), words.seconds(found.p95)


def about(one: Figures) -> Iterator[str]:
    """What else there is to say of one fault."""
    found = one.detection
    if one.proven and not found.share.n:
        yield "no sidecar was seen: whether it would have been detected is not known"
    elif one.proven:
        text = f"detected {words.of(found.share)}"
        if found.share.hits:
            text += f" ({words.bounds(found.share.wilson)}): {counted(found.rules)}"
        yield text
    if one.recover is not None and one.recover.censored:
        yield f"{count(one.recover.censored, 'run')} did not recover while watched (censored)"
    if one.unseen:
        yield f"{count(one.unseen, 'run')} recovered at a time that is not known"
    if one.quiet:
        yield f"in {count(one.quiet, 'run')} no request failed"
    if one.endings:
        ended = "; ".join(f"{ENDINGS[Ending(name)]}: {many}" for name, many in one.endings)
        yield f"healed by {words.plain(one.heals_by)}; {ended}"
    yield from asides(one)


def asides(one: Figures) -> Iterator[str]:
    """What does not count, with the reasons of the first few."""
    if not one.aside:
        return
    yield (f"not counted: {one.not_injected} not injected, {one.inconclusive} inconclusive")
    yield from (f"  {line}" for line in listed(one.aside))


def listed(runs: tuple[Aside, ...]) -> Iterator[str]:
    """A line for each run, the first few of many."""
    for run in runs[:SHOWN]:
        outcome = run.outcome.value.replace("_", " ")
        yield f"run {run.number} {outcome}: {words.plain(run.reason) or 'no reason given'}"
    if len(runs) > SHOWN:
        yield f"and {count(len(runs) - SHOWN, 'more run')}"


def counted(found: Counts) -> str:
    """``EngineDown 9, TtftHigh 2``."""
    return ", ".join(f"{words.plain(name)} {many:,}" for name, many in found)


def shams(summary: Summary) -> str:
    """False alarms, or that nobody looked for any."""
    found = summary.shams
    aside = f"; {found.inconclusive} inconclusive" if found.inconclusive else ""
    if not found.alarmed.n:
        return f"no sham run that a sidecar watched: false alarms are not known{aside}"
    upper = number(found.interval.upper)
    text = (
        f"{count(found.alarmed.n, 'sham run')}: {found.alarmed.hits} with a false alarm "
        f"({words.bounds(found.alarmed.wilson)}); {count(found.alarms, 'alarm')} in "
        f"{duration(3600 * found.hours)}, {number(found.per_hour)} an hour "
        f"({number(found.interval.lower)}–{upper})"
    )
    return text + (f": {counted(found.rules)}" if found.rules else "") + aside


def controls(summary: Summary) -> str:
    """Whether the proofs of effect say no where there is none."""
    found = summary.controls
    if not found.n:
        return "no control run: nothing shows that a fault that missed is told as such"
    text = f"{count(found.n, 'control run')}: {found.not_injected} not injected, as it must be"
    if found.inconclusive:
        text += f"; {found.inconclusive} inconclusive"
    if found.wrong:
        text += (
            f"; {len(found.wrong)} counted as injected though aimed past the target: the proofs of "
            "effect prove nothing here"
        )
    return text


def healing(summary: Summary) -> str:
    """How undoing went over all runs."""
    known = {ending: many for ending, many in summary.endings if many}
    if not known:
        return "nothing was to be undone"
    return "; ".join(f"{ENDINGS[ending]}: {many:,}" for ending, many in known.items())


def header(summary: Summary) -> Iterator[tuple[str, str]]:
    """Where the figures come from."""
    if summary.first is not None and summary.last is not None:
        length = duration(summary.last - summary.first)
        yield "when", f"{words.moment(summary.first)} UTC, for {length}"
    yield "runs", f"{len(summary.runs):,}"
    if summary.campaigns:
        yield "campaign", words.listed(summary.campaigns)
        yield "seed", words.listed(str(seed) for seed in summary.seeds)
        yield "target", words.listed(summary.targets)
    for settings in summary.settings:
        yield "settings", words.plain(settings)
    yield "version", words.plain(summary.version)
