"""What waits to be written: the latest standings, and bounded queues of transitions and levels."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sidecar.alarms.standing import Key, Standing, Transition
from sidecar.alarms.tables import LEVELS, Change

TRANSITIONS = 2_000
LEVEL_BYTES = 262_144
_BATCH_BYTES = 4_194_304  # of levels in one transaction, so that alarms do not wait for them


@dataclass(frozen=True, slots=True)
class Parcel:
    """One change and what it stands for: round ``round`` with its ``standings``, handed over at
    ``at`` (monotonic).
    """

    change: Change
    round: int
    at: float
    standings: tuple[Standing, ...]
    last: int  # number of its last transition


class Outbox:
    """Safe from any thread; no call waits for a disk. What is dropped is counted."""

    def __init__(self) -> None:
        self.rounds = 0
        self.dropped_transitions = 0
        self.dropped_levels = 0
        self._mutex = threading.Lock()
        self._at = 0.0
        self._standings: tuple[Standing, ...] | None = None
        self._transitions: deque[tuple[int, Transition]] = deque()
        self._numbered = 0
        self._levels: dict[str, str] = {}

    def put(self, standings: tuple[Standing, ...], transitions: Iterable[Transition]) -> None:
        """A round: everything there is, and what happened. It replaces the round before it."""
        with self._mutex:
            self.rounds += 1
            self._standings, self._at = standings, time.monotonic()
            for transition in transitions:
                self._numbered += 1
                self._transitions.append((self._numbered, transition))
            while len(self._transitions) > TRANSITIONS:
                self._transitions.popleft()
                self.dropped_transitions += 1

    def level(self, key: str, payload: str) -> bool:
        """A detector's level as JSON; False, counted, when it is too large, no JSON, or one more
        than can wait.
        """
        fits = len(payload) <= LEVEL_BYTES and _is_text(key) and _is_json(payload)
        with self._mutex:
            if not fits or (key not in self._levels and len(self._levels) >= LEVELS):
                self.dropped_levels += 1
                return False
            self._levels[key] = payload
            return True

    def take(self, written: Mapping[Key, Standing]) -> Parcel | None:
        """What differs from ``written``, None when no round has come yet. It stays here until
        :meth:`done`, so that a write that failed loses nothing.
        """
        with self._mutex:
            standings, rounds, at = self._standings, self.rounds, self._at
            transitions, last = tuple(t for _, t in self._transitions), self._numbered
            levels = tuple(self._some_levels())
        if standings is None:
            return None
        kept = {standing.alarm.key for standing in standings}
        change = Change(
            standings=tuple(s for s in standings if written.get(s.alarm.key) != s),
            gone=tuple(key for key in written if key not in kept),
            transitions=transitions,
            levels=levels,
        )
        return Parcel(change, rounds, at, standings, last)

    def done(self, parcel: Parcel) -> None:
        """Forgets what was written, unless it has been renewed since."""
        with self._mutex:
            while self._transitions and self._transitions[0][0] <= parcel.last:
                self._transitions.popleft()
            for key, payload in parcel.change.levels:
                if self._levels.get(key) is payload:
                    del self._levels[key]

    def _some_levels(self) -> Iterable[tuple[str, str]]:
        room = _BATCH_BYTES
        for key, payload in self._levels.items():
            if room <= 0:
                return
            room -= len(payload)
            yield key, payload


def _is_text(key: str) -> bool:
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_json(payload: str) -> bool:
    try:
        json.loads(payload, parse_constant=_refuse)  # NaN and Infinity are not JSON
        payload.encode()
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(word: str) -> None:
    raise ValueError(word)
