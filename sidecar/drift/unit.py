"""Whether gaps between tokens grew because each event carries more of them.

With speculative decoding one event brings several tokens: the gaps grow, there are fewer of them,
and requests take no longer. The wire cannot count tokens in an event, so this looks at what users
have of it. Answers that became shorter while decoding became slower look the same from here; the
sentence says both.
"""

from __future__ import annotations

import numpy as np

from sidecar import loghist
from sidecar.drift.quantiles import seconds_of
from sidecar.drift.stretch import Floats, Stretch

_FEWER = 1.25  # times as many gaps a request before
_LONGER = 1.05  # times the median of request times, and of the time spent in gaps
_MIDDLES: Floats = np.array([loghist.middle(cell) for cell in range(loghist.CELLS)])


def ratio(
    gaps: Stretch, requests: Stretch, gaps_before: Stretch, requests_before: Stretch
) -> float | None:
    """How many times as many gaps a request had before, where that explains longer gaps: requests
    take no longer, nor does what is spent in gaps. None where it does not, or nothing is known.
    """
    if min(gaps.n, requests.n, gaps_before.n, requests_before.n) <= 0:
        return None
    fewer = (gaps_before.n / requests_before.n) / (gaps.n / requests.n)
    if fewer < _FEWER:
        return None
    if _median(requests) > _LONGER * _median(requests_before):
        return None
    spent = _mean(gaps) * gaps.n / requests.n
    spent_before = _mean(gaps_before) * gaps_before.n / requests_before.n
    return fewer if spent <= _LONGER * spent_before else None


def _median(one: Stretch) -> float:
    return seconds_of(np.cumsum(one.counts), 0.5)


def _mean(one: Stretch) -> float:
    return float(one.counts @ _MIDDLES / one.n)
