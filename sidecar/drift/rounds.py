"""From the evaluations of a round to what fires: many series, again and again.

A thousand series at p < 0.01 each hour would be 240 false alarms a day, so that the p-values of a
round are judged together (Benjamini and Hochberg, "Controlling the false discovery rate", JRSS B
57, 1995), and once is not enough to fire, nor to clear.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sidecar.drift.options import Options
from sidecar.evaluation import Evaluation, Series, Shape, Standing, Tail

RULES = ("tail", "shape", "ks")


def adjusted(values: Sequence[float]) -> list[float]:
    """The q of each p: the least rate of false discoveries at which it would be one."""
    p = np.asarray(values, dtype=np.float64)
    order = np.argsort(-p, kind="stable")
    ranks = np.arange(len(p), 0, -1)
    q = np.empty(len(p))
    q[order] = np.minimum.accumulate(p[order] * len(p) / ranks)
    return [min(1.0, float(one)) for one in q]


@dataclass(slots=True)
class Memory:
    """What is known of one rule on one series: the latest verdicts (None: not judged), whether it
    fires, and how many evaluations in a row have been good since.
    """

    recent: list[bool | None] = field(default_factory=list)
    firing: bool = False
    good: int = 0

    def take(self, drifts: bool | None, is_good: bool, options: Options) -> None:
        """After one more evaluation; one without a verdict neither fires nor clears."""
        needed, of = options.fire
        self.recent = [*self.recent, drifts][-of:]
        if drifts is None:
            return
        if not self.firing:
            self.firing, self.good = self.recent.count(True) >= needed, 0
            return
        self.good = self.good + 1 if is_good else 0
        if self.good >= options.clear_rounds:
            self.firing, self.good, self.recent = False, 0, []

    @property
    def idle(self) -> bool:
        """Whether it may as well be forgotten."""
        return not self.firing and True not in self.recent


class Round:
    """The memory of all series. Not safe for several threads."""

    def __init__(self, memories: Mapping[tuple[Series, str], Memory] | None = None) -> None:
        self._memories = dict(memories or {})

    def conclude(self, evaluations: Iterable[Evaluation], options: Options) -> list[Evaluation]:
        """The same with q, with what drifts now, and with what fires: ``tail`` and ``shape`` after
        2 of 3, ``ks`` at once and as long as its hour says so.
        """
        judged = _corrected(list(evaluations), options)
        return [replace(one, firing=self._firing(one, options)) for one in judged]

    def firing(self, series: Series) -> frozenset[str]:
        """The rules that fire on a series, whether or not it is evaluated now."""
        return frozenset(
            rule for rule in RULES if (kept := self._memories.get((series, rule))) and kept.firing
        )

    def keep(self, series: Container[Series]) -> None:
        """Forgets all others: they are gone."""
        self._memories = {key: kept for key, kept in self._memories.items() if key[0] in series}

    def _firing(self, one: Evaluation, options: Options) -> frozenset[str]:
        for rule, verdict in _VERDICTS.items():
            key = (one.series, rule)
            if one.standing is Standing.WARMING:
                # Nothing is left to compare with: it was reset, or fired for most of the days. As
                # long as it fired, no day would become usual again.
                self._memories.pop(key, None)
                continue
            memory = self._memories.setdefault(key, Memory())
            drifts, good = verdict(one, options)
            if one.standing is not Standing.JUDGED:
                drifts = None
            if rule != "ks":
                memory.take(drifts, good, options)
            elif drifts is not None:  # as specified: of its hour alone
                memory.firing = drifts
            if memory.idle:
                del self._memories[key]
        return self.firing(one.series)

    def to_json(self) -> dict[str, object]:
        """``memories``: signal, leg, server, rule, recent verdicts, firing, good."""
        rows = [
            [key.signal, key.leg, key.server, rule, list(kept.recent), kept.firing, kept.good]
            for (key, rule), kept in self._memories.items()
        ]
        return {"memories": rows}

    @classmethod
    def from_json(cls, state: object) -> Round:
        """Raises ValueError for what :meth:`to_json` did not write."""
        match state:
            case {"memories": list(rows)}:
                return cls(dict(_memory(row) for row in rows))
        raise ValueError(f"no state of rounds: {state!r:.80}")


def _memory(row: object) -> tuple[tuple[Series, str], Memory]:
    match row:
        case [str(signal), str(leg), str(server), rule, list(recent), bool(firing), int(good)] if (
            rule in RULES and all(one in (True, False, None) for one in recent)
        ):
            return (Series(signal, leg, server), rule), Memory(recent, firing, good)
    raise ValueError(f"no memory of a series: {row!r:.200}")


def _corrected(evaluations: list[Evaluation], options: Options) -> list[Evaluation]:
    """With q over the series of the round, of each of the two tests for itself."""
    found = [(i, e.tail, e.shape) for i, e in enumerate(evaluations) if e.tail and e.shape]
    tails = adjusted([tail.p for _, tail, _ in found])
    shapes = adjusted([shape.p for _, _, shape in found])
    for (i, tail, shape), tail_q, shape_q in zip(found, tails, shapes, strict=True):
        tail, shape = replace(tail, q=tail_q), replace(shape, q=shape_q)
        evaluations[i] = replace(
            evaluations[i],
            tail=replace(tail, drifts=_tail_drifts(tail, options)),
            shape=replace(shape, drifts=_shape_drifts(shape, options)),
        )
    return evaluations


def _tail_drifts(tail: Tail, options: Options) -> bool:
    return tail.q <= options.q and tail.change.value > tail.change.guard


def _shape_drifts(shape: Shape, options: Options) -> bool:
    known = shape.q <= options.q and shape.value > options.shape_critical
    return known and shape.change.value > shape.change.guard


Judge = Callable[[Evaluation, Options], tuple[bool | None, bool]]


def _tail(one: Evaluation, options: Options) -> tuple[bool | None, bool]:
    tail = one.tail
    if tail is None:
        return None, False
    small = tail.change.value < options.clear_share * tail.change.guard
    return tail.drifts, small and tail.p > options.clear_p


def _shape(one: Evaluation, options: Options) -> tuple[bool | None, bool]:
    # The change of a P99.9 is mostly chance, so that it would hardly ever be seen to be small.
    shape = one.shape
    return (None, False) if shape is None else (shape.drifts, shape.p > options.clear_p)


def _ks(one: Evaluation, options: Options) -> tuple[bool | None, bool]:
    return (None, False) if one.ks is None else (one.ks.drifts, not one.ks.drifts)


_VERDICTS: dict[str, Judge] = {"tail": _tail, "shape": _shape, "ks": _ks}
