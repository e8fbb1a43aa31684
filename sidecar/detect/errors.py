"""Requests that fail: a burst that is seen in seconds, and the plain share of answers with 5xx."""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.config import Settings, SloSettings
from sidecar.detect.recent import Recent
from sidecar.ledger import Tally
from sidecar.signals import Leg
from sidecar.snapshot import Snapshot
from sidecar.units import count, duration, percent
from sidecar.verdicts import Rule, Severity, Verdict

BURST = Rule(
    "ErrorBurst",
    Severity.PAGE,
    "Half or more of at least five requests that ended in the last 10 s failed: cut short, an "
    "error in the stream, no answer, 5xx or 429.",
    "The leg says where: upstream failures are the engine's, downstream ones alone the gateway's.",
    clear_seconds=20.0,
    hard=True,
)
RATIO = Rule(
    "ServerErrors",
    Severity.PAGE,
    "The share of answers with a status of 5xx is above the limit (by default 5 % over 5 min, of "
    "at least 20 requests), and at least five are.",
    "Read the statuses in modelprobe_wire_requests_total; 503 is a gateway without an engine or an "
    "engine that sheds load, 500 an engine that fails.",
    clear_seconds=60.0,
    hard=True,
)
RULES = (BURST, RATIO)
_BURST_SECONDS, _BURST_REQUESTS, _BURST_SHARE = 10.0, 5, 0.5
_FEWEST_ERRORS = 5
_ENOUGH = 0.9  # of a window has to be watched before it is judged


def from_settings(settings: Settings) -> Errors:
    """The detector with the limits of `slo`."""
    return Errors(settings.slo)


class Errors:
    """Judges each watched leg."""

    name = "errors"
    rules = RULES

    def __init__(self, settings: SloSettings) -> None:
        self._settings = settings
        self._short = {leg: Recent(_BURST_SECONDS) for leg in Leg}
        self._long = {leg: Recent(settings.error_seconds) for leg in Leg}

    def judge(self, snapshot: Snapshot, clock: float) -> Iterator[Verdict]:
        """Two verdicts a leg."""
        tallies = snapshot.tallies
        for leg in Leg if tallies is None else tallies:
            tally = tallies.get(leg) if tallies is not None else None
            self._short[leg].note(clock, tally)
            self._long[leg].note(clock, tally)
            labels = (("leg", leg.value),)
            yield self._burst(labels, self._short[leg].over())
            yield self._ratio(labels, self._long[leg].over())

    def _burst(
        self, labels: tuple[tuple[str, str], ...], seen: tuple[float, Tally] | None
    ) -> Verdict:
        if seen is None:
            return BURST.judge(labels, None)
        seconds, tally = seen
        ended = tally.ended - tally.cancelled
        bad: bool | None = tally.failed >= _BURST_SHARE * ended
        if bad and ended < _BURST_REQUESTS:
            bad = None  # nobody came, or too few to say: neither is well
        text = f"{tally.failed} of {count(ended, 'request')} failed in {seconds:.0f} s"
        return BURST.judge(labels, bad, text, _figures(seconds, ended, tally.failed))

    def _ratio(
        self, labels: tuple[tuple[str, str], ...], seen: tuple[float, Tally] | None
    ) -> Verdict:
        if seen is None:
            return RATIO.judge(labels, None)
        seconds, tally = seen
        failed = self._too_many(min(1.0, seconds / self._settings.error_seconds), tally)
        share = tally.server_errors / tally.ended if tally.ended else None
        text = (
            f"{percent(share)} of {count(tally.ended, 'answer')} are 5xx in the last "
            f"{duration(seconds)}"
        )
        evidence = _figures(seconds, tally.ended, tally.server_errors)
        return RATIO.judge(labels, failed, text, evidence)

    def _too_many(self, covered: float, tally: Tally) -> bool | None:
        """Silence says nothing, and neither does the beginning of a window, unless it would be too
        many even if all that was not watched, at the same traffic, were good. Too few requests do
        not alarm; that none of them failed in all that time is well.
        """
        if not tally.ended:
            return None
        if tally.ended < self._settings.minimum_requests:
            return False if covered >= _ENOUGH and not tally.server_errors else None
        share = tally.server_errors / tally.ended
        if share > self._settings.error_ratio and tally.server_errors < _FEWEST_ERRORS:
            return None  # an anecdote: two of thirty, at 1 % each, come every other hour
        if share * covered > self._settings.error_ratio:
            return True
        return share > self._settings.error_ratio if covered >= _ENOUGH else None


def _figures(seconds: float, ended: int, bad: int) -> tuple[tuple[str, float | str], ...]:
    return (("window_seconds", seconds), ("requests", float(ended)), ("failed", float(bad)))
