"""The form of an engine's name table: its own names, what they are here, and how copies combine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from sidecar.signals import Kind, Labels, Metric


class Clock(StrEnum):
    """When a counter moves: with every step, or in one jump when a request finishes. A rate of
    the second kind is bursts, not speed.
    """

    PER_STEP = "per_step"
    AT_FINISH = "at_finish"


class Role(StrEnum):
    """What answers: an engine, or a gateway in front of engines."""

    ENGINE = "engine"
    GATEWAY = "gateway"


class Combine(StrEnum):
    """How series become one that differ in labels we do not keep."""

    SUM = "sum"
    MAX = "max"
    NEWEST = "newest"  # the value is the wall clock; the labels of the latest series hold the news


@dataclass(frozen=True, slots=True)
class Was:
    """A former name of the same thing, and the version up to which it was (``0.9``)."""

    raw: str
    until: str


@dataclass(frozen=True, slots=True)
class Name:
    """One of an engine's own metrics and what it is here.

    ``raw`` is its name without the table's prefix (with ``plain``, the whole name: one that other
    programs use too). ``where`` are labels a series must have, ``where_not`` must not have;
    ``unless`` is a raw name that makes this one redundant where it is there. ``labels`` are given
    to the series; ``by`` turns its own labels into ours, ``(own, ours)``. ``scale`` turns its unit
    into ours.
    ``count`` makes a histogram of one bucket of two counters: ``raw`` is the sum of durations and
    ``count`` the name of how many. ``optional`` ones appear with their first use or with an option
    only, and are not called missing.
    """

    raw: str
    metric: Metric
    labels: Labels = ()
    by: tuple[tuple[str, str], ...] = ()
    where: Labels = ()
    where_not: Labels = ()
    unless: str = ""
    scale: float = 1.0
    clock: Clock | None = None
    combine: Combine | None = None
    definition: str = ""
    count: str = ""
    was: tuple[Was, ...] = ()
    plain: bool = False
    optional: bool = False
    since: str = ""
    note: str = ""

    @property
    def how(self) -> Combine:
        """How series combine: ratios take the worst, everything else adds up."""
        if self.combine:
            return self.combine
        worst = self.metric.kind is Kind.GAUGE and self.metric.name.endswith("_ratio")
        return Combine.MAX if worst else Combine.SUM


@dataclass(frozen=True, slots=True)
class NameTable:
    """How one engine or gateway names things.

    ``prefixes`` start names that only it exposes; a colon and an underscore there are one.
    ``parts`` are labels of data-parallel engines behind one endpoint: kept apart as ``dp_rank``.
    ``copies`` are labels of ranks that each publish the same number: of them one value counts.
    ``models`` are labels that hold the model's name. ``source`` says where this was read.
    Where it answers, the engines of ``instead_of`` do not: it repeats names of theirs.
    """

    engine: str
    title: str
    prefixes: tuple[str, ...]
    names: tuple[Name, ...]
    source: str
    role: Role = Role.ENGINE
    parts: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    metrics_path: str = "/metrics"
    instead_of: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def spellings(self, name: Name) -> Iterator[tuple[str, Was | None]]:
        """Every full name under which it may appear, normalised, the current ones first."""
        for former in (None, *name.was):
            raw = former.raw if former else name.raw
            for prefix in ("",) if name.plain else self.prefixes:
                yield normal(prefix + raw), former


def normal(name: str) -> str:
    """Colons are underscores: some collectors and exporters rewrite them."""
    return name.replace(":", "_")
