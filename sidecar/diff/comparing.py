"""All of one side against all of the other: signals, figures, what they say together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sidecar.diff import figures, latency
from sidecar.diff.figures import decode_seconds
from sidecar.diff.findings import BAD, FigureFound, Found, SignalFound, Verdict
from sidecar.diff.judging import together
from sidecar.diff.latency import Pair
from sidecar.diff.sides import SIGNALS, Measured, Side
from sidecar.record import SLOT_SECONDS
from sidecar.units import duration, number, percent

GUARD = 0.10  # of A's figure; less is no difference that matters
_UNIT_RATIO = 0.85  # of gaps per request, below which their unit may have changed
_FEWEST_REQUESTS = 100.0
_KEEPS_UNKNOWN = frozenset({Verdict.SAME, Verdict.FASTER, Verdict.NOT_SLOWER, Verdict.FEWER})


def compare(a: Side, b: Side, guard: float = GUARD) -> Found:
    """What is to be said of B beside A. ``guard`` is a share of A's figures."""
    both = {
        name: (a.signals[name], b.signals[name])
        for name in SIGNALS
        if name in a.signals and name in b.signals
    }
    signals, figures_, tests = _tested(both, guard)
    notes = _missing(a, b)
    unit = _unit(both, signals, guard)
    if unit is not None:
        notes.append(unit.text)
        signals["itl"] = replace(signals["itl"], verdict=Verdict.UNIT_CHANGED, why=unit.why)
        figures_ = [
            replace(one, verdict=Verdict.UNIT_CHANGED, why=unit.why) if one.name == "rate" else one
            for one in figures_
        ]
    verdicts = [one.verdict for one in signals.values()]
    verdicts += [one.verdict for one in figures_]
    if a.signals.keys() - b.signals.keys():
        verdicts.append(Verdict.UNKNOWN)
    overall = together(verdicts)
    if b.alarmed and overall in _KEEPS_UNKNOWN:
        overall = Verdict.UNKNOWN
    notes += _alarmed(a, b)
    return Found(tuple(signals.values()), tuple(figures_), overall, tests, tuple(notes))


def _tested(
    both: Mapping[str, tuple[Measured, Measured]], guard: float
) -> tuple[dict[str, SignalFound], list[FigureFound], int]:
    """Signals and figures, and how many differences are tested in all."""
    pairs = {name: Pair.of(name, *two) for name, two in both.items()}
    rated = "itl" in both and figures.rated(*both["itl"])
    counted = "duration" in both and figures.counted(*both["duration"])
    tests = max(1, sum(len(latency.tested(pair)) for pair in pairs.values()) + rated + counted)
    signals = {name: latency.compare(pair, tests, guard) for name, pair in pairs.items()}
    found = [figures.rate(*both["itl"], tests, guard)] if rated else []
    if counted:
        found.append(figures.failed(*both["duration"], tests))
    return signals, found, tests


def _missing(a: Side, b: Side) -> list[str]:
    found = []
    for name in SIGNALS:
        if name in a.signals and name not in b.signals:
            found.append(f"{name}: B has none, so that nothing is known of it")
        elif name in b.signals and name not in a.signals:
            found.append(f"{name}: A has none, so that B's is compared with nothing")
    return found


def _alarmed(a: Side, b: Side) -> list[str]:
    """Hours leave out what was recorded while an alarm fired: what is left looks better."""
    found = []
    for name, side in (("A", a), ("B", b)):
        if side.alarmed:
            lost = duration(side.alarmed * SLOT_SECONDS)
            found.append(
                f"{name}: {lost} in which its drift alarm fired are not in the stored hours; "
                "without them it looks better than it was"
            )
    return found


@dataclass(frozen=True, slots=True)
class _Unit:
    text: str
    why: str


def _unit(
    both: Mapping[str, tuple[Measured, Measured]], signals: Mapping[str, SignalFound], guard: float
) -> _Unit | None:
    """Whether ITL moved the way it does when events carry more tokens, or fewer: as many times
    slower as there are fewer of them a request, while no request takes longer.
    """
    if "itl" not in both or "duration" not in both:
        return None
    (gaps_a, gaps_b), (whole_a, whole_b) = both["itl"], both["duration"]
    if min(whole_a.n, whole_b.n) < _FEWEST_REQUESTS:
        return None
    then, now = gaps_a.n / whole_a.n, gaps_b.n / whole_b.n
    spent = (decode_seconds(gaps_b) / whole_b.n) / max(decode_seconds(gaps_a) / whole_a.n, 1e-12)
    slower = decode_seconds(gaps_b) / gaps_b.n > decode_seconds(gaps_a) / gaps_a.n
    how = f"{number(round(then, 1))} gaps a request in A, {number(round(now, 1))} in B"
    verdict = signals["duration"].verdict
    if now <= _UNIT_RATIO * then and slower and spent <= 1 + guard and verdict not in BAD:
        return _Unit(
            f"each event carries more tokens: its unit changed ({how}, while the time that a "
            f"request decodes went to {percent(spent)}), so ITL and rate are not comparable; if "
            "answers were shorter instead, they did become slower",
            "each event carries more tokens",
        )
    if then <= _UNIT_RATIO * now and not slower and spent >= 1 - guard:
        return _Unit(
            f"each event carries fewer tokens: its unit changed ({how}, while the time that a "
            f"request decodes went to {percent(spent)}), so ITL and rate are not comparable",
            "each event carries fewer tokens",
        )
    return None
