"""A service watched from one place or two, and what its usual latency is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from chaos import judging
from chaos.judging import Usual
from chaos.probing import Prober
from chaos.vocabulary import Probe, Watched

BEFORE = 5.0  # seconds before a fault that are kept, to be seen beside it
LEARNED = 40  # answers from which the usual latency is learned


class Watching:
    """The places, the one that decides first."""

    def __init__(self, probers: Sequence[Prober], clock: Callable[[], float]) -> None:
        self._probers, self._clock = probers, clock
        self._usual: dict[str, Usual] = {}

    def unsteady(self) -> list[str]:
        """The places from which it does not answer as it should, in time."""
        return [prober.place.name for prober in self._probers if not self._well(prober)]

    def _well(self, prober: Prober) -> bool:
        place = prober.place
        since = self._clock() - 2 * judging.STEADY * place.period - place.deadline
        return judging.steady(prober.since(since), self._usual.get(place.name))

    def learn(self) -> None:
        """What is usual, from the answers up to now; older ones are forgotten."""
        for prober in self._probers:
            self._usual[prober.place.name] = Usual.of(prober.probes[-LEARNED:])
            prober.forget(self._clock() - 60.0)

    def well(self, start: float, since: float) -> bool:
        """Whether it has been well at every place since ``since`` seconds after ``start``."""
        return all(
            judging.recovered(self._probes(one, start), since, self._usual[one.place.name])
            is not None
            for one in self._probers
        )

    def places(self, start: float, effect: float | None) -> tuple[Watched, ...]:
        """All that was seen of a run that began at ``start``."""
        return tuple(
            judging.watched(
                one.place.name,
                self._probes(one, start),
                effect,
                self._usual[one.place.name],
                one.place.period,
            )
            for one in self._probers
        )

    def _probes(self, prober: Prober, start: float) -> list[Probe]:
        """In seconds since ``start``. A request that is still open has not succeeded; once it is
        older than any answer should be, it has failed.
        """
        now, usual = self._clock(), self._usual[prober.place.name]
        over = [
            replace(probe, sent=probe.sent - start, ended=probe.ended - start)
            for probe in prober.since(start - BEFORE)
        ]
        late = [sent for sent in prober.open.values() if now - sent > usual.whole]
        return over + [judging.unanswered(sent - start, now - start) for sent in late]
