"""One evaluation of one series: what can be said, the tests, and the round that concludes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from sidecar.drift import mix, shape, tail, words
from sidecar.drift.baseline import Baseline, Lacking
from sidecar.drift.compared import Compared
from sidecar.drift.dispersion import Prior
from sidecar.drift.options import Options
from sidecar.drift.rounds import Round
from sidecar.drift.stretch import Stretch
from sidecar.evaluation import Evaluation, Ks, Series, Standing

_NO_POOL: Mapping[float, Prior] = MappingProxyType({})


def evaluate(
    series: Series,
    at: float,
    current: Stretch,
    waiting: Sequence[float],
    baseline: Baseline | Lacking,
    options: Options,
    *,
    ks: Ks | None = None,
    pool: Mapping[float, Prior] = _NO_POOL,
) -> Evaluation:
    """The hour before ``at`` against its baseline, as if it were alone: q is p, nothing drifts yet.

    ``waiting`` are ages in seconds of requests that are open. ``pool`` is the usual dispersion by
    quantile (:func:`sidecar.drift.baseline.pool`). ``ks`` is of the latest whole hour, and passed
    on. The order of what hinders: no request, no baseline, kinds that it lacks, too few requests.
    """
    say = partial(
        Evaluation,
        series,
        at,
        n=round(current.n),
        ks=ks,
        kept=baseline.kept,
        dropped=baseline.dropped,
    )
    if current.n <= 0:
        return say(Standing.INSUFFICIENT if waiting else Standing.IDLE)
    if isinstance(baseline, Lacking):
        return say(baseline.standing)
    found = mix.compare(current, baseline.kinds)
    if found.unknown > options.max_unknown:
        return say(Standing.UNLIKE, unknown=found.unknown)
    level = baseline.level(current.n * (1 - found.unknown))
    if level is None:
        return say(Standing.INSUFFICIENT, unknown=found.unknown)
    compared = Compared.of(current, found, waiting, baseline, level, pool)
    usual = compared.usual_seconds(level.quantile)
    tested = tail.judge(compared, options.guard(series.signal, usual))
    return say(
        Standing.JUDGED,
        tail=tested,
        shape=shape.judge(compared, series.signal, options),
        improved=-tested.change.value > options.better(usual)
        and tail.less(tested.z, compared.df) < options.improved_p,
        mix=found.at(level.cell),
        unknown=found.unknown,
    )


def conclude(
    evaluations: Iterable[Evaluation], rounds: Round, options: Options
) -> list[Evaluation]:
    """The evaluations of a round with their q, with what fires, and in words."""
    concluded = rounds.conclude(evaluations, options)
    return [replace(one, text=words.sentence(one, options)) for one in concluded]
