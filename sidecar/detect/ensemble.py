"""All detectors together: a bug of one does not silence the others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import structlog

from sidecar.config import Settings
from sidecar.detect import detectors
from sidecar.detect.detector import Detector, Learning
from sidecar.snapshot import Snapshot
from sidecar.verdicts import Alarm, Mark, Verdict

log = structlog.get_logger("watch")


class Ensemble:
    """One of each, as the settings want them. ``failures`` counts, by name, what went wrong."""

    def __init__(self, settings: Settings) -> None:
        self.failures: Counter[str] = Counter()
        self._all: tuple[Detector, ...] = ()
        self.equip(settings)

    def equip(self, settings: Settings) -> None:
        """New ones that know what the old ones knew."""
        known = self.known()
        self._all = detectors(settings)
        names = {rule.name for detector in self._all for rule in detector.rules}
        self.rules = frozenset(names - set(settings.alarms.disabled))
        self.recall(known)

    @property
    def names(self) -> tuple[str, ...]:
        """Theirs, in the order of the table."""
        return tuple(detector.name for detector in self._all)

    def judge(self, snapshot: Snapshot, clock: float) -> list[Verdict]:
        """The verdicts of all rules that are not disabled."""
        verdicts: list[Verdict] = []
        for detector in self._all:
            with self._isolated(detector):
                found = list(detector.judge(snapshot, clock))
                verdicts += (verdict for verdict in found if verdict.rule in self.rules)
        return verdicts

    def heed(self, alarms: tuple[Alarm, ...], marks: tuple[Mark, ...]) -> None:
        """Tells those that learn when not to."""
        for detector in self._learning():
            with self._isolated(detector):
                detector.heed(alarms, marks)

    def known(self) -> dict[str, str]:
        """What they know, as JSON by key."""
        known: dict[str, str] = {}
        for detector in self._learning():
            with self._isolated(detector):
                known |= {key: json.dumps(what) for key, what in detector.remember().items()}
        return known

    def recall(self, texts: Mapping[str, str]) -> None:
        """What was known before."""
        kept = dict(_mappings(texts))
        for detector in self._learning():
            with self._isolated(detector):
                detector.recall(kept)

    def _learning(self) -> Iterator[Learning]:
        for detector in self._all:
            if hasattr(detector, "remember"):
                yield detector  # type: ignore[misc]  # told by what it can do

    @contextmanager
    def _isolated(self, detector: Detector) -> Iterator[None]:
        try:
            yield
        except Exception:  # whatever a detector may do wrong, the others go on
            self.failures[detector.name] += 1
            if self.failures[detector.name] == 1:
                log.exception("detector failed", detector=detector.name)


def _mappings(texts: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, object]]]:
    for key, text in texts.items():
        try:
            payload = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            continue  # somebody wrote into the file
        if isinstance(payload, dict):
            yield key, payload
