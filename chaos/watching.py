"""A service watched from one place or two, and what its usual latency is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from chaos import judging
from chaos.judging import Usual
from chaos.probing import Prober
from chaos.vocabulary import Probe, Watched

BEFORE = 5.0  # seconds before a fault that are kept, to be seen beside it


class Watching:
    """The places, the one that decides first."""

    def __init__(self, probers: Sequence[Prober], clock: Callable[[], float]) -> None:
        self._probers, self._clock = probers, clock
        self._usual: dict[str, Usual] = {}
        self._first: dict[str, Usual] = {}

    def unsteady(self) -> list[str]:
        """The places from which it does not answer as it should, in time. Its time is what was
        usual before the first fault: a service that each fault leaves a little slower is not well.
        """
        return [prober.place.name for prober in self._probers if not self._well(prober)]

    def _well(self, prober: Prober) -> bool:
        place = prober.place
        since = self._clock() - 2 * judging.STEADY * place.period - place.deadline
        probes, usual = prober.since(since), self._first.get(place.name)
        if not judging.steady(probes, usual):
            return False
        bound = usual or Usual.of(judging.latest(probes))
        return not self._late(prober, bound, self._clock())

    def learn(self) -> None:
        """What is usual, from the answers that showed it to be steady: those before them may have
        waited for the end of a fault. Older ones are forgotten.
        """
        for prober in self._probers:
            usual = Usual.of(judging.latest(prober.probes))
            self._usual[prober.place.name] = usual
            self._first.setdefault(prober.place.name, usual)
            prober.forget(self._clock() - 60.0)

    def failed(self, since: float) -> str:
        """The places at which a request has failed since then; empty if none."""
        bad = (p.place.name for p in self._probers if any(a.failure for a in p.since(since)))
        return " and ".join(bad)

    def unwell(self, start: float, since: float, now: float) -> list[str]:
        """The places at which it has not been well since ``since`` seconds after ``start``, as it
        looked at ``now``.
        """
        return [
            one.place.name
            for one in self._probers
            if judging.recovered(self._probes(one, start, now), since, self._usual[one.place.name])
            is None
        ]

    def places(self, start: float, effect: float | None, now: float) -> tuple[Watched, ...]:
        """All that was seen by ``now`` of a run that began at ``start``."""
        return tuple(
            judging.watched(
                one.place.name,
                self._probes(one, start, now),
                effect,
                self._usual[one.place.name],
                one.place.period,
            )
            for one in self._probers
        )

    def _probes(self, prober: Prober, start: float, now: float) -> list[Probe]:
        """In seconds since ``start``. A request that is still open has not succeeded; once it is
        older than any answer should be, it has failed.
        """
        usual = self._usual[prober.place.name]
        over = [
            replace(probe, sent=probe.sent - start, ended=probe.ended - start)
            for probe in prober.since(start - BEFORE)
        ]
        late = self._late(prober, usual, now)
        return over + [judging.unanswered(sent - start, now - start) for sent in late]

    def _late(self, prober: Prober, usual: Usual, now: float) -> list[float]:
        """When those were sent that are still open, and for too long."""
        return [sent for sent in prober.open.values() if now - sent > usual.whole]
