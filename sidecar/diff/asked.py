"""What the two operands of a comparison may be, and what each means.

``WHEN[@WHERE]``: a period, a deploy or a stored run, and whose requests of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from sidecar.config import ConfigError
from sidecar.evaluation import Series
from sidecar.history.records import Account, Flaw, Left
from sidecar.history.times import Clock, duration
from sidecar.signals import Leg

DEPLOY = "deploy:last"
_BACK = re.compile(r"-\d[\d.smhdw]*")
_LOOKS_LIKE_TIME = re.compile(r"now|-\d|\d{4}-\d\d-\d\d[T ]")
_WHY = {
    Flaw.NO_ZONE: "has no zone: end it with Z or +01:00",
    Flaw.AHEAD: "lies ahead of this machine's clock",
    Flaw.BEFORE: "lies before 1980",
}
_SHOWN = 120  # characters
LEGS = frozenset(leg.value for leg in Leg)


@dataclass(frozen=True, slots=True)
class Where:
    """Whose requests: of one server, of one leg, or of all."""

    server: str = ""
    leg: str = ""

    @classmethod
    def of(cls, text: str) -> Where:
        """What follows ``@``."""
        return cls(leg=text) if text in LEGS else cls(server=text)

    def has(self, series: Series) -> bool:
        """Whether a series is meant."""
        return self.server in ("", series.server) and self.leg in ("", series.leg)


@dataclass(frozen=True, slots=True)
class Period:
    """From ``start`` to ``end``, Unix seconds."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Asked:
    """One operand. ``when`` is a period, a file, or None for the last deploy."""

    text: str
    when: Period | Path | None
    where: Where


def operand(text: str, now: float) -> Asked:
    """What one means; ConfigError says what it could be."""
    if text.startswith("--"):
        raise ConfigError(f"{_shown(text)} is no option; --help lists them")
    if _is_file(text):
        return Asked(text, Path(text), Where())
    when, at, where = text.rpartition("@")
    if not at:
        when, where = text, ""
    elif not (when and where):
        raise ConfigError(
            f"{_shown(text)}: WHEN@WHERE, such as -1h/now@10.0.0.1:8000 or -1h/now@upstream"
        )
    if when == DEPLOY:
        return Asked(text, None, Where.of(where))
    if "/" in when and _LOOKS_LIKE_TIME.match(when):
        return Asked(text, period(when, now), Where.of(where))
    if _is_file(when):
        return Asked(text, Path(when), Where.of(where))
    raise ConfigError(
        f"{_shown(text)} is no period (START/END), not {DEPLOY}, and no file of that name is "
        "there; with --during PERIOD operands are servers or legs"
    )


def during(text: str, found: Period) -> Asked:
    """An operand beside ``--during``: a server or a leg of that period."""
    if not text or text.startswith("-"):
        raise ConfigError(f"{_shown(text)} is no server; with --during name two, as 10.0.0.1:8000")
    return Asked(text, found, Where.of(text.removeprefix("@")))


def period(text: str, now: float) -> Period:
    """``START/END``; ConfigError."""
    start, slash, end = text.partition("/")
    if not slash or "/" in end:
        raise ConfigError(f"{_shown(text)} is no period: START/END, such as -2h/now")
    found = Period(_moment(start, now), _moment(end, now))
    if found.end <= found.start:
        raise ConfigError(f"{_shown(text)} ends before it begins; START/END, such as -2h/now")
    return found


def _moment(text: str, now: float) -> float:
    """A time with its zone, ``now``, or ``-2h`` for so long ago."""
    if text == "now":
        return now
    if _BACK.fullmatch(text):
        return now - duration(text[1:])
    try:
        return Clock(None, now).read(text, Account())
    except Left as error:
        why = _WHY.get(error.flaw, "is no time: 2026-11-29T10:00Z, now, or -2h for two hours ago")
        raise ConfigError(f"{_shown(text)} {why}") from error


def _shown(text: str) -> str:
    """As it was given, but not endless: the remedy comes behind it."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # too long to be a name
        return False
