"""Times and durations as people and programs write them, and the two hours a year that are odd."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sidecar.config import ConfigError
from sidecar.history.records import Account, Flaw, Left

_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
_ZONE_WORD = re.compile(r"\s+(?:UTC|GMT|Z)$")
_EARLIEST = 315_532_800.0  # 1980: no clock that was ever set says less
_TOLERANCE_SECONDS = 300.0


def duration(text: str) -> float:
    """Seconds of ``90m``, ``7d`` or ``1d12h``; ConfigError otherwise."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ConfigError(f"{text!r} is no duration; such as 30m, 12h, 7d or 1d12h")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def zone(name: str) -> ZoneInfo:
    """A time zone by its name in the IANA database; ConfigError for none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(f"{name!r} is no time zone known here; such as Europe/Berlin") from error


def since(text: str, now: float) -> float:
    """``7d`` before now, or a moment with its zone."""
    if _DURATION.match(text):
        return now - duration(text)
    try:
        return Clock(None, now).read(text, Account())
    except Left as error:
        raise ConfigError(
            f"{text!r} is neither a duration (7d) nor a time with its zone"
        ) from error


class Clock:
    """Reads the times of one file. A local time is taken to be of ``zone``.

    The hour that comes twice when summer time ends is told apart by what came before: of the two
    moments the one nearer to the last row. ``now`` is what a time may not lie ahead of.
    """

    def __init__(self, zone: ZoneInfo | None, now: float) -> None:
        self._zone = zone
        self._latest = now + _TOLERANCE_SECONDS
        self._last: float | None = None

    def read(self, text: str, account: Account, scale: float = 1.0) -> float:
        """Unix seconds of ISO 8601 or of a number (times ``scale``); raises :class:`Left`."""
        text = text.strip()
        if not text:
            raise Left(Flaw.NO_TIME)
        if _NUMBER.fullmatch(text):
            return self._checked(float(text) * scale)
        if text.lower() in ("nan", "inf", "+inf", "-inf"):
            raise Left(Flaw.NOT_A_NUMBER)
        try:
            moment = datetime.fromisoformat(_ZONE_WORD.sub("+00:00", text))
        except ValueError as error:
            raise Left(Flaw.MALFORMED) from error
        return self.of(moment, account)

    def of(self, moment: datetime, account: Account) -> float:
        """Unix seconds of a moment that may lack its zone."""
        try:
            at = moment.timestamp() if moment.tzinfo else self._local(moment, account)
        except (OverflowError, OSError, ValueError) as error:
            if isinstance(error, Left):
                raise
            raise Left(Flaw.MALFORMED) from error
        return self._checked(at)

    def _local(self, moment: datetime, account: Account) -> float:
        if self._zone is None:
            raise Left(Flaw.NO_ZONE)
        first = moment.replace(tzinfo=self._zone, fold=0)
        if first.astimezone(UTC).astimezone(self._zone).replace(tzinfo=None, fold=0) != moment:
            raise Left(Flaw.NONEXISTENT)
        second = moment.replace(tzinfo=self._zone, fold=1)
        early, late = first.timestamp(), second.timestamp()
        if early == late:
            return early
        account.ambiguous += 1
        if self._last is None:
            return early
        return early if abs(early - self._last) < abs(late - self._last) else late

    def _checked(self, at: float) -> float:
        if at > self._latest:
            raise Left(Flaw.AHEAD)
        if at < _EARLIEST:
            raise Left(Flaw.BEFORE)
        self._last = at
        return at


def written(at: float) -> str:
    """``2026-03-01 14:05`` in UTC."""
    return (datetime.fromtimestamp(0, UTC) + timedelta(seconds=at)).strftime("%Y-%m-%d %H:%M")
