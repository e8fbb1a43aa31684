"""The last minute of joined requests: one slot a second, quantiles of single differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from sidecar.legs.pairing import Join, Reason, Unjoined
from sidecar.signals import End
from sidecar.windows import quantile

WINDOW_SECONDS = 60
_SLOT_VALUES = 200  # kept a second and phase; beyond, quantiles are of the first ones
_BROKEN = (End.SERVER_CLOSED, End.ERROR_EVENT)


class Phase(StrEnum):
    """Where in a request the gateway adds."""

    REQUEST = "request"
    FIRST_TOKEN = "first_token"  # noqa: S105 - a token of text
    END = "end"


@dataclass(frozen=True, slots=True)
class PhaseWindow:
    """What the gateway added in one phase: ``n`` requests, in seconds."""

    phase: Phase
    n: int
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class JoinWindow:
    """Clients' LLM requests that were decided in the last minute. ``unjoined`` are the reasons of
    those that were not joined, the most frequent first; ``refused`` the gateway answered by itself
    with 3xx or 4xx and are in no other number. ``retried`` took more than one attempt, ``hidden``
    of them ended well; ``broken`` ended well for the client although the engine broke off.
    ``ttft_p50`` is of joined requests, as clients saw them; None where none had a first token.
    """

    seconds: float
    joined: int
    unjoined: tuple[tuple[Reason, int], ...] = ()
    refused: int = 0
    retried: int = 0
    hidden: int = 0
    broken: int = 0
    ttft_p50: float | None = None
    phases: tuple[PhaseWindow, ...] = ()

    @property
    def requests(self) -> int:
        """How many there were."""
        return self.joined + sum(n for _, n in self.unjoined)

    @property
    def ratio(self) -> float | None:
        """The share joined, None of none."""
        return self.joined / self.requests if self.requests else None

    def phase(self, wanted: Phase) -> PhaseWindow | None:
        """One phase, None where it was not measured."""
        return next((one for one in self.phases if one.phase is wanted), None)


@dataclass(slots=True)
class Slot:
    """What was decided in one second."""

    second: int
    counts: Counter[str] = field(default_factory=Counter)
    unjoined: Counter[Reason] = field(default_factory=Counter)
    ttft: list[float] = field(default_factory=list)
    added: dict[Phase, list[float]] = field(default_factory=lambda: {p: [] for p in Phase})

    def add_join(self, join: Join) -> None:
        """Counts one, but not what the gateway added."""
        down, several = join.downstream, len(join.attempts) > 1
        self.counts["joined"] += 1
        self.counts["retried"] += several
        self.counts["hidden"] += several and down.done
        self.counts["broken"] += down.done and join.answer.end in _BROKEN
        if down.first_token is not None and len(self.ttft) < _SLOT_VALUES:
            self.ttft.append(down.first_token - down.start)

    def add_unjoined(self, outcome: Unjoined) -> None:
        """Counts a client's request that was not joined."""
        request = outcome.request
        if request.end is End.COMPLETE and 300 <= (request.status or 0) < 500:
            self.counts["refused"] += 1
        else:
            self.unjoined[outcome.reason] += 1

    def measure(self, phase: Phase, seconds: float) -> None:
        """Keeps one difference."""
        if len(self.added[phase]) < _SLOT_VALUES:
            self.added[phase].append(seconds)


def added(join: Join) -> Iterator[tuple[Phase, float]]:
    """What the gateway added, by phase, in seconds; the phases that both legs had. The request's is
    until the first attempt, the others are from the answering one.
    """
    down, answer = join.downstream, join.answer
    if join.whole:  # else there may have been an earlier one
        yield Phase.REQUEST, join.attempts[0].start - down.start
    if down.first_token is not None and answer.first_token is not None:
        yield Phase.FIRST_TOKEN, down.first_token - answer.first_token
    if down.end is End.COMPLETE and answer.end is End.COMPLETE:
        yield Phase.END, down.finish - answer.finish


def summarise(slots: Sequence[Slot], seconds: float) -> JoinWindow:
    """The window that these slots make."""
    counts: Counter[str] = Counter()
    unjoined: Counter[Reason] = Counter()
    for slot in slots:
        counts.update(slot.counts)
        unjoined.update(slot.unjoined)
    return JoinWindow(
        seconds=seconds,
        joined=counts["joined"],
        unjoined=tuple(unjoined.most_common()),
        refused=counts["refused"],
        retried=counts["retried"],
        hidden=counts["hidden"],
        broken=counts["broken"],
        ttft_p50=quantile([value for slot in slots for value in slot.ttft], 0.5),
        phases=tuple(_phases(slots)),
    )


def _phases(slots: Sequence[Slot]) -> Iterator[PhaseWindow]:
    for phase in Phase:
        values = sorted(value for slot in slots for value in slot.added[phase])
        p50, p99 = quantile(values, 0.5), quantile(values, 0.99)
        if p50 is not None and p99 is not None:
            yield PhaseWindow(phase, len(values), p50, p99)
