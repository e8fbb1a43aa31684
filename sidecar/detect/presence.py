"""Whether the engine, the gateway, and what tells us of them are there at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from sidecar.collectors import listeners
from sidecar.config import Settings
from sidecar.signals import Absence, CollectorState, CollectorStatus, Labels, Leg
from sidecar.snapshot import TARGETS, Snapshot
from sidecar.verdicts import Rule, Severity, Verdict

GATEWAY_GONE = Rule(
    "GatewayGone",
    Severity.PAGE,
    "Nobody listens any more on a watched port that clients use: the gateway's, or the service's "
    "own where there is no gateway.",
    "Start it; its log and the kernel's (a kill for memory) say why it ended.",
    hold_seconds=3.0,
    hard=True,
)
ENGINE_GONE = Rule(
    "EngineGone",
    Severity.PAGE,
    "An engine that was there refuses connections, or nobody listens on its port any more.",
    "Its log and the kernel's say why it ended; a GPU that needs a reset keeps it from starting.",
    hold_seconds=3.0,
    hard=True,
)
METRICS_UNAVAILABLE = Rule(
    "MetricsUnavailable",
    Severity.TICKET,
    "The metrics of an engine or gateway do not answer while its requests do.",
    "It is not down. Look at what serves its metrics: multiprocess folder, label explosion, port.",
    hold_seconds=60.0,
    clear_seconds=30.0,
)
SOURCE_BLIND = Rule(
    "SourceBlind",
    Severity.TICKET,
    "A source that was read before has not been for a minute; what it tells is unknown, not good.",
    "The collector's reason on the page names the thing and the remedy, and so does "
    "model-probe doctor.",
    hold_seconds=60.0,
    clear_seconds=30.0,
)
RULES = (GATEWAY_GONE, ENGINE_GONE, METRICS_UNAVAILABLE, SOURCE_BLIND)
_GONE = (Absence.REFUSED, Absence.NOT_FOUND, Absence.CLOSED)
# In a row: between two scrapes a server may have restarted, or dropped one call. A connection that
# is closed in the middle happens to servers that live, so that it takes one more.
_ATTEMPTS = {Absence.REFUSED: 2, Absence.NOT_FOUND: 2, Absence.CLOSED: 3}
_LOCAL = ("127.0.0.1", "localhost", "::1")
_KEY, _NAMES = "presence/seen", "names"
_MOST_NAMES = 1_000


def from_settings(settings: Settings) -> Presence:
    """The detector; the settings say which port is which engine's."""
    urls = ((urlsplit(target.url), target.name) for target in settings.engines)
    return Presence({str(u.port): name for u, name in urls if u.hostname in _LOCAL and u.port})


class Presence:
    """Judges each port, target and collector that was once there: one that never was is a matter
    of the settings or still starting, which readiness and doctor tell. ``engines`` are names of
    engines by their port on this machine, so that one that is gone is one alarm.
    """

    name = "presence"
    rules = RULES

    def __init__(self, engines: Mapping[str, str] | None = None) -> None:
        self._engines = engines or {}
        self._seen: set[str] = set()
        self._failures: dict[str, dict[Absence, int]] = {}  # by collector: what it recovered from

    def judge(self, snapshot: Snapshot, clock: float) -> Iterator[Verdict]:
        """Verdicts on ports, on engines, on metrics, on sources."""
        yield from self._ports(snapshot)
        for status in snapshot.collectors:
            if status.state in (CollectorState.FIRING, CollectorState.ATTACHED):
                self._seen.add(status.name)
                self._failures[status.name] = dict(status.failures)
            if status.name in self._seen:
                yield from self._collector(snapshot, status)

    def _ports(self, snapshot: Snapshot) -> Iterator[Verdict]:
        for sample in snapshot.scalars(listeners.UP.name):
            found = dict(sample.labels)
            port, down = found.get("port", ""), sample.value == 0
            if not down:
                self._seen.add(f"port:{port}")
            never = f"port:{port}" not in self._seen  # it may be starting
            gateway = found.get("leg") == Leg.DOWNSTREAM and port not in self._engines
            replica = self._engines.get(port)
            labels: Labels = (("replica", replica),) if replica else (("port", port),)
            text = f"nobody listens on port {port}"
            rule = GATEWAY_GONE if gateway else ENGINE_GONE
            yield rule.judge(labels, None if never else down, text)

    def _collector(self, snapshot: Snapshot, status: CollectorStatus) -> Iterator[Verdict]:
        role, _, replica = status.name.partition(":")
        blind = _blind(status)
        gone = status.absence in _GONE if blind else False
        if status.name.startswith(TARGETS):
            labels = (("replica", replica),)
            if role == "engine":
                text = f"{replica}: {status.reason}"
                yield ENGINE_GONE.judge(labels, self._gone(status, blind), text)
            yield _unavailable(snapshot, replica, blind)
        told = status.absence is Absence.RELEASED or (gone and role == "engine")
        yield SOURCE_BLIND.judge(
            (("collector", status.name),),
            None if told else blind,
            f"{status.name} is blind: {status.reason}",
            (("absence", (status.absence or "").replace("_", " ")),),
        )

    def _gone(self, status: CollectorStatus, blind: bool | None) -> bool | None:
        """A target that times out or answers 500 may live: that is not for this rule to say."""
        if not blind:
            return blind
        if status.absence not in _GONE:
            return None
        before = self._failures.get(status.name, {})
        attempts = sum(
            count - (before.get(absence, 0) if count >= before.get(absence, 0) else 0)
            for absence, count in status.failures
            if absence in _GONE  # a time-out or a 500 is of one that lives
        )
        return True if attempts >= _ATTEMPTS[status.absence] else None

    def heed(self, alarms: object, marks: object) -> None:
        """What was there was there, whatever happens."""

    def remember(self) -> Mapping[str, Mapping[str, object]]:
        """What was ever there: an engine that does not come back after a reboot is gone."""
        return {_KEY: {_NAMES: sorted(self._seen)[:_MOST_NAMES]}}

    def recall(self, kept: Mapping[str, Mapping[str, object]]) -> None:
        """What was there before."""
        names = kept.get(_KEY, {}).get(_NAMES)
        if isinstance(names, list):
            self._seen.update(name for name in names if isinstance(name, str))


def _blind(status: CollectorStatus) -> bool | None:
    """None while it is only being opened."""
    if status.state is CollectorState.STARTING:
        return None
    return status.state is CollectorState.BLIND


def _unavailable(snapshot: Snapshot, replica: str, blind: bool | None) -> Verdict:
    found = [
        o.text
        for o in snapshot.observations
        if o.kind == "metrics_unavailable" and o.subject == replica
    ]
    # Blind, and nothing to say that its requests are answered: that is not well.
    failed = True if found else None if blind or blind is None else False
    text = found[0] if found else ""
    return METRICS_UNAVAILABLE.judge((("replica", replica),), failed, text)
