"""What a body in the Prometheus text format held, as far as it was wanted."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from sidecar.signals import Absence, Labels, NoData


class Bad(StrEnum):
    """Why a number may not leave its source. All signals here are counts, bytes, seconds or
    ratios: none of them is negative.
    """

    NAN = "nan"
    INFINITE = "infinite"
    NEGATIVE = "negative"
    BEYOND = "beyond"


def flaw(value: float) -> Bad | None:
    """What is wrong with a number, None when nothing is."""
    if math.isnan(value):
        return Bad.NAN
    if math.isinf(value):
        return Bad.INFINITE
    if value < 0:
        return Bad.NEGATIVE
    return Bad.BEYOND if value >= 2.0**63 else None


@dataclass(slots=True)
class Family:
    """The series of one sample name (``x_bucket`` is one): values by sorted labels, merged over
    labels that do not matter. ``repeated`` counts series that came twice (of which the first
    counts), ``flaws`` values left out.
    """

    values: dict[Labels, float] = field(default_factory=dict)
    repeated: int = 0
    flaws: Counter[Bad] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Explosion:
    """A name with very many series, and the label whose values make them."""

    name: str
    series: int
    label: str


@dataclass(slots=True)
class Exposition:
    """What a body held. ``families`` are the wanted ones by name as the source spells it, and
    ``types`` their declared types; ``samples`` counts all good lines, ``bad`` those that could not
    be read, ``exemplars`` broken ones (their samples are kept), ``dropped`` wanted series beyond
    the cap.
    """

    families: dict[str, Family] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    names: Counter[str] = field(default_factory=Counter)
    samples: int = 0
    bad: int = 0
    exemplars: int = 0
    dropped: int = 0
    explosions: tuple[Explosion, ...] = ()


def refuse(head: bytes) -> None:
    """NoData(NOT_METRICS) that says what begins so instead; an exposition of comments passes."""
    start = head.lower()
    if start.startswith(b"<"):
        what = "HTML or XML"
    elif start.startswith(b'"'):
        what = "a JSON string (the server quotes its exposition)"
    elif start.startswith((b"{", b"[")):
        what = "JSON"
    elif start.startswith(b"#"):
        return
    else:
        what = "not Prometheus text"
    raise NoData(Absence.NOT_METRICS, f"the answer is {what}; is the metrics path right?")
