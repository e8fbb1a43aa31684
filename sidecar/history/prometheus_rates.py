"""Minutes of decode rates out of one answer of Prometheus: tokens over decode seconds by series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sidecar.detect.concurrency import half_octave
from sidecar.detect.minutes import Minute
from sidecar.detect.minutes import Series as Whose
from sidecar.engines.canonical import ACCEPTANCE_RATIO, DEFINITION
from sidecar.history.growth import Grown, Growth, value
from sidecar.history.prometheus_api import Labels, Points, Series
from sidecar.history.prometheus_names import (
    ENGINE,
    INSTANCE,
    NO_SUMS,
    PER_STEP,
    Rates,
    pick,
    without,
)
from sidecar.history.records import FEWEST_TOKENS, Account

Who = tuple[str, str]  # instance and replica
Found = Mapping[str, list[Series]]  # by name


@dataclass(frozen=True, slots=True)
class Naming:
    """What the series of a Prometheus are called: ``leg`` is the one on which engines are seen,
    ``model`` the only one there is, ``several`` says that more than one sidecar is scraped.
    """

    leg: str = ""
    model: str = ""
    several: bool = False

    def whose(self, rates: Rates, labels: Labels) -> Whose:
        """The series that a label set belongs to."""
        instance, replica = who(rates, labels)
        model = pick(labels, rates.models)
        if rates.source == "wire":
            return Whose("wire", instance if self.several else "", self.model)
        if self.several and replica != instance:
            replica = f"{instance}/{replica}"
        return Whose("engine", replica, model)


def who(rates: Rates, labels: Labels) -> Who:
    """Which target was scraped, and what it speaks of."""
    return pick(labels, (INSTANCE,)), pick(labels, rates.replicas)


@dataclass(slots=True)
class _Grown:
    tokens: float = 0.0
    seconds: float = 0.0
    broken: bool = False
    whose: set[Who] = field(default_factory=set)


_Minutes = dict[tuple[float, Whose], _Grown]


def minutes(
    rates: Rates, found: Found, naming: Naming, growth: Growth, account: Account
) -> Iterator[Minute]:
    """Every minute in which a series was watched; one without tokens has no rate. In no order."""
    grown = _counted(rates, found, naming, growth)
    running = at_once(rates, found, account)
    if grown and not running:
        account.note("no metric of running requests: every minute counts as one at once")
    for (at, whose), minute in grown.items():
        if minute.broken:
            continue
        idle = minute.tokens < FEWEST_TOKENS or minute.seconds <= 0
        mean = sum(running.get((at, one), 0.0) for one in minute.whose)
        rate = None if idle else minute.tokens / minute.seconds
        yield Minute(whose, at, rate, minute.tokens, half_octave(mean))


def _counted(rates: Rates, found: Found, naming: Naming, growth: Growth) -> _Minutes:
    """Tokens and seconds by minute and series, as :mod:`sidecar.detect.minutes` counts them."""
    grown: _Minutes = {}
    sums = chosen(found, rates.sums)
    steps = set()
    for labels, points in chosen(found, rates.counts).items():
        definition = pick(labels, (DEFINITION,)) or rates.definition
        elsewhere = rates.source == "wire" and pick(labels, ("leg",)) != naming.leg
        if labels not in sums or definition in NO_SUMS or elsewhere:
            continue
        tokens = growth.of((rates.counts, labels), points)
        seconds = growth.of((rates.sums, labels), sums[labels], tell=False)
        whose = naming.whose(rates, labels)
        _add(grown, whose, who(rates, labels), tokens, seconds)
        steps |= {whose} if definition == PER_STEP else set()
    for labels, points in chosen(found, rates.accepted).items():
        accepted = growth.of((rates.accepted, labels), points, tell=False)
        if (whose := naming.whose(rates, labels)) in steps:
            _speculate(grown, whose, accepted)
    return grown


def _add(grown: _Minutes, whose: Whose, one: Who, tokens: Grown, seconds: Grown) -> None:
    for at, count in tokens.by.items():
        minute = grown.setdefault((at, whose), _Grown())
        minute.whose.add(one)
        minute.tokens += count
        minute.seconds += seconds.by.get(at, 0.0)
        minute.broken |= at not in seconds.by
    for at in tokens.broken | seconds.broken:
        grown.setdefault((at, whose), _Grown()).broken = True


def _speculate(grown: _Minutes, whose: Whose, accepted: Grown) -> None:
    """A step brings one token and those that were guessed right."""
    for at, count in accepted.by.items():
        if (at, whose) in grown:
            grown[at, whose].tokens += count
    for at in accepted.broken:
        if (at, whose) in grown:
            grown[at, whose].broken = True


def speculates(found: Found, account: Account) -> bool:
    """Whether an engine accepted a guessed token: then an event on the wire is no token."""
    names = (*ENGINE.accepted, ACCEPTANCE_RATIO.name)
    return any(
        (value(text, account) or 0.0) > 0
        for name in names
        for series in found.get(name, ())
        for _, text in series.points
    )


def chosen(found: Found, spellings: Iterable[str]) -> dict[Labels, Points]:
    """The points by label set, of a name in several spellings those of the first."""
    kept: dict[Labels, Points] = {}
    for name in spellings:
        for series in found.get(name, ()):
            kept.setdefault(series.labels, series.points)
    return kept


def at_once(rates: Rates, found: Found, account: Account) -> dict[tuple[float, Who], float]:
    """How many requests ran, by minute and target: of copies the largest, parts added up."""
    parts: dict[tuple[float, Who, Labels], float] = {}
    for labels, points in chosen(found, rates.running).items():
        one, part = who(rates, labels), without(labels, rates.copies)
        for at, text in points:
            number = value(text, account)
            if number is not None:
                key = (at, one, part)
                parts[key] = max(parts.get(key, 0.0), number)
    total: dict[tuple[float, Who], float] = {}
    for (at, one, _), number in parts.items():
        total[at, one] = total.get((at, one), 0.0) + number
    return total
