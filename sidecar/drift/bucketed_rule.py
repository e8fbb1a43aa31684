"""Latencies of which only an engine's own buckets are known, against the same hour of days before.

Whether more requests than usual are slow is tested at a bound. By how much the quantile has moved
is known as an interval only: it drifts where all of that is more than matters, it does not where
none of it is, and between the rule is refused. The wire sees each request, so that where it judges
a signal no alarm begins here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import special

from sidecar.bucketed import merged
from sidecar.drift import bucketed_ks, bucketed_words, dispersion
from sidecar.drift.baseline import Lacking
from sidecar.drift.bucketed_ks import Specified, apart
from sidecar.drift.bucketed_usual import LEAST, Slots, Usual, compare
from sidecar.drift.options import Options
from sidecar.drift.rounds import Round, adjusted
from sidecar.evaluation import Evaluation, Series, Standing, Tail


@dataclass(frozen=True, slots=True)
class Hours:
    """What is known of one series: the slots of the last hour and, by date, of the same hour on
    earlier days; ``left`` are days that are not to count, and why. ``whole`` and ``whole_days`` are
    the same of the last whole hour of the clock.
    """

    hour: Slots = ()
    days: Mapping[str, Slots] = field(default_factory=dict)
    left: tuple[tuple[str, str], ...] = ()
    whole: Slots = ()
    whole_days: Mapping[str, Slots] = field(default_factory=dict)


def judge(
    series: Mapping[Series, Hours],
    at: float,
    rounds: Round,
    covered: frozenset[str],
    options: Options,
) -> list[Evaluation]:
    """The evaluations of a round, with q among themselves, and with what fires. ``covered`` are the
    signals that the wire judges in this round.
    """
    compared = {one: _compared(hours, options) for one, hours in series.items()}
    tails = _tails(compared, options)
    found = []
    for one, hours in series.items():
        usual, firing = compared[one], rounds.firing(one)
        said = Evaluation(one, at, Standing.IDLE, n=sum(part.n for part in hours.hour))
        specified = None
        if isinstance(usual, Lacking):
            said = replace(said, standing=usual.standing, kept=usual.kept, dropped=usual.dropped)
        elif usual is not None:
            specified = _specified(hours, options)
            said = _stands(said, usual, tails[one], specified, firing, options)
            if one.signal in covered and not firing:
                said = replace(said, standing=Standing.COVERED, ks=None)
        (said,) = rounds.conclude([said], options)
        text = bucketed_words.sentence(said, usual, specified, options)
        dropped = tuple(sorted({*said.dropped, *hours.left}))
        found.append(replace(said, dropped=dropped, text=text))
    return found


def _tails(
    compared: Mapping[Series, Usual | Lacking | None], options: Options
) -> Mapping[Series, Tail]:
    """With q over the series, and what drifts."""
    usual = {one: found for one, found in compared.items() if isinstance(found, Usual)}
    phis = [found.phi for found in usual.values()]
    prior = dispersion.Prior.of(phis, options.keep_days - 1, options.prior_df)
    tails = [_tail(f, options.guard(one.signal, f.bound), prior) for one, f in usual.items()]
    qs = adjusted([tail.p for tail in tails])
    concluded = (_concluded(replace(t, q=q), options) for t, q in zip(tails, qs, strict=True))
    return dict(zip(usual, concluded, strict=True))


def _compared(hours: Hours, options: Options) -> Usual | Lacking | None:
    now = merged(hours.hour)
    return compare(now, hours.days, options) if now is not None and now.n else None


def _stands(
    plain: Evaluation,
    usual: Usual,
    tail: Tail,
    specified: Specified | None,
    firing: frozenset[str],
    options: Options,
) -> Evaluation:
    """What can be said. An alarm that was certain ends once the quantile is back where it was for
    all that is known, and no more requests than usual are slow: that much coarse buckets can tell.
    """
    change = tail.change
    decided = change.lower > change.guard or change.upper <= change.guard
    small = change.value < options.clear_share * change.guard
    back = bool(firing) and small and tail.p > options.clear_p
    ks = specified.verdict if specified and (specified.decided or back) else None
    standing = Standing.JUDGED if decided or back else Standing.UNRESOLVED
    return replace(
        plain,
        standing=standing,
        tail=tail,
        ks=ks if standing is Standing.JUDGED else None,
        improved=-change.upper > options.better(usual.bound) and 1 - tail.p < options.improved_p,
        kept=usual.kept,
        dropped=usual.dropped,
    )


def _tail(usual: Usual, guard: float, prior: dispersion.Prior) -> Tail:
    """With z and p as of :mod:`sidecar.drift.tail`, at the bound."""
    now, n, share = usual.now, usual.now.n, usual.share
    phi = dispersion.moderated(usual.phi_days, usual.phi_slots, usual.df, prior)
    df = usual.df + prior.df
    exceeding = now.above(usual.bound)
    clump = max(1.0, usual.phi_slots)
    requests, whole = (_variance(n, usual.before.n, share, one) for one in (clump, phi))
    figures = np.array([exceeding, n * share, requests, whole - requests])
    z = float(dispersion.deviations(*figures))
    p = float(special.stdtr(df, -z))
    here = usual.here
    return Tail(
        quantile=usual.quantile,
        seconds=here.lower if here.upper == math.inf else (here.lower + here.upper) / 2,
        threshold=usual.bound,
        n=n,
        exceeding=exceeding,
        expected=n * share,
        phi=phi,
        z=z,
        p=p,
        q=p,
        change=apart(here, usual.usual, guard),
        drifts=False,
    )


def _variance(n: int, size: int, share: float, phi: float) -> float:
    return phi * max(share * (1 - share) * (n + n * n / size), LEAST * phi)


def _concluded(tail: Tail, options: Options) -> Tail:
    return replace(tail, drifts=tail.q <= options.q and tail.change.lower > tail.change.guard)


def _specified(hours: Hours, options: Options) -> Specified | None:
    hour = merged(hours.whole)
    days = [day for slots in hours.whole_days.values() if (day := merged(slots)) and day.n]
    before = merged(days)
    if hour is None or before is None or len(days) < options.keep_days:
        return None
    return bucketed_ks.judge(hour, before, options)
