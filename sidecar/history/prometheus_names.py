"""What a token rate is made of in Prometheus: a sidecar's own metrics, or an engine's raw ones.

Raw names come from the name tables of :mod:`sidecar.engines`, in their present and former
spellings, for those who never ran a sidecar. Where both are there, the sidecar's own count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sidecar import traffic
from sidecar.engines import canonical, tables
from sidecar.engines.table import Name, NameTable
from sidecar.history.prometheus_api import Labels
from sidecar.signals import Leg

NO_SUMS = ("running_mean", "request_mean")  # definitions of which no sum is decode seconds
PER_STEP = "per_step"
INSTANCE = "instance"  # Prometheus' own label: which target was scraped


@dataclass(frozen=True, slots=True)
class Rates:
    """Where the sums and counts of intervals between tokens are, and how many requests run.

    ``sums``, ``counts``, ``running`` and ``accepted`` (tokens that speculation guessed right) are
    spellings of one name each, the present one first. ``models`` are labels that hold the model,
    ``replicas`` the replica; of series that differ in ``copies`` alone one counts. ``definition``
    is what one observation is, where no label says so.
    """

    source: str
    sums: tuple[str, ...]
    counts: tuple[str, ...]
    running: tuple[str, ...]
    replicas: tuple[str, ...]
    models: tuple[str, ...]
    accepted: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    definition: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that it needs."""
        return (*self.sums, *self.counts, *self.accepted, *self.running)

    @property
    def counters(self) -> tuple[str, ...]:
        """Those that grow."""
        return (*self.sums, *self.counts, *self.accepted)

    def in_(self, there: frozenset[str]) -> bool:
        """Whether rates can be made of the names that exist."""
        return not (there.isdisjoint(self.sums) or there.isdisjoint(self.counts))


def _own(source: str, histogram: str, running: str, replicas: tuple[str, ...]) -> Rates:
    engine = source == "engine"
    return Rates(
        source=source,
        sums=(f"{histogram}_sum",),
        counts=(f"{histogram}_count",),
        running=(running,),
        replicas=replicas,
        models=("model",) if engine else (),
        accepted=(canonical.ACCEPTED_TOKENS.name,) if engine else (),
    )


ENGINE = _own("engine", canonical.ITL.name, canonical.RUNNING.name, ("replica",))
WIRE = _own("wire", traffic.ITL.name, traffic.OPEN.name, ("leg",))
OWN = (ENGINE, WIRE)


def raw(known: Iterable[NameTable] | None = None) -> tuple[Rates, ...]:
    """One for each engine whose own histogram has the intervals between tokens."""
    found = (_raw(table) for table in (tables() if known is None else known))
    return tuple(one for one in found if one is not None)


def _raw(table: NameTable) -> Rates | None:
    names = {
        name.metric: name for name in reversed(table.names) if name.definition not in NO_SUMS
    }  # of several for one metric the first
    intervals, running = names.get(canonical.ITL), names.get(canonical.RUNNING)
    if intervals is None or running is None or intervals.count or intervals.scale != 1.0:
        return None
    histogram = _spellings(table, intervals)
    return Rates(
        source="engine",
        sums=tuple(f"{name}_sum" for name in histogram),
        counts=tuple(f"{name}_count" for name in histogram),
        running=_spellings(table, running),
        replicas=(INSTANCE,),
        models=table.models,
        accepted=_spellings(table, names.get(canonical.ACCEPTED_TOKENS)),
        copies=table.copies,
        definition=intervals.definition,
    )


def _spellings(table: NameTable, name: Name | None) -> tuple[str, ...]:
    """As the engine writes it, and with the colons that some collectors rewrite."""
    if name is None:
        return ()
    words = [name.raw, *(former.raw for former in name.was)]
    found = [prefix + word for word in words for prefix in table.prefixes]
    return tuple(dict.fromkeys(s for n in found for s in (n, n.replace(":", "_"))))


# Of a sidecar's own counters, what is kept apart of each.
REQUESTS = traffic.REQUESTS.name
LATENCIES: Mapping[str, str] = {
    f"{traffic.TTFT.name}_bucket": "ttft",
    f"{traffic.ITL.name}_bucket": "itl",
    f"{traffic.DURATION.name}_bucket": "duration",
}
LEGS = {leg.value: leg for leg in Leg}


def pick(labels: Labels, wanted: tuple[str, ...]) -> str:
    """The value of the first of these labels that is there, empty when none is."""
    held = dict(labels)
    return next((held[name] for name in wanted if held.get(name)), "")


def without(labels: Labels, dropped: tuple[str, ...]) -> Labels:
    """The labels but these."""
    return tuple(pair for pair in labels if pair[0] not in dropped)
