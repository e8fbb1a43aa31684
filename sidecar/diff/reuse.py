"""What of the prefixes was found in the KV cache, out of a sidecar's own counters in Prometheus.

The file of alarms holds latencies alone. Shown beside them, since less reuse explains a slower
first token; no verdict rests on it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from sidecar.detect.minutes import MINUTE_SECONDS
from sidecar.diff.asked import Where
from sidecar.diff.clumping import deviations
from sidecar.diff.findings import Bounds, Reuse
from sidecar.diff.judging import ALPHA
from sidecar.engines.canonical import DEFINITION, PREFIX_HITS, PREFIX_QUERIES
from sidecar.history.growth import Growth
from sidecar.history.prometheus import PART_SECONDS, Span
from sidecar.history.prometheus_api import Api, Labels
from sidecar.history.prometheus_names import INSTANCE, pick
from sidecar.history.records import Account
from sidecar.record import SLOT_SECONDS

_FEWEST_BLOCKS = 2
_Minutes = Mapping[tuple[Labels, float], float]


def reuse(api: Api, start: float, end: float, where: Where) -> Reuse:
    """From ``start`` to ``end`` (Unix seconds), of a server the engine whose ``replica`` or
    ``instance`` has its name. Raises NoData where Prometheus does not answer.
    """
    span = Span.of(start, end)
    looked = _grown(api, PREFIX_QUERIES.name, span, where)
    found = _grown(api, PREFIX_HITS.name, span, where)
    if not looked:
        whose = f" whose replica or instance is {where.server}" if where.server else ""
        return Reuse(None, f"Prometheus has no {PREFIX_QUERIES.name} of that time{whose}")
    blocks: defaultdict[float, list[float]] = defaultdict(lambda: [0.0, 0.0])
    definitions = {pick(labels, (DEFINITION,)) for labels, _ in looked}
    wanted = "tokens" if "tokens" in definitions else min(definitions)
    for (labels, at), many in looked.items():
        hits = found.get((labels, at))
        if hits is not None and pick(labels, (DEFINITION,)) == wanted:
            block = blocks[at // SLOT_SECONDS]
            block[0] += hits
            block[1] += many
    return _share(np.array([block for block in blocks.values() if block[1] > 0]))


def _grown(api: Api, name: str, span: Span, where: Where) -> _Minutes:
    """By labels and minute; minutes in which a counter began anew are left out."""
    growth = Growth(MINUTE_SECONDS, Account())
    grown: dict[tuple[Labels, float], float] = {}
    start = span.start
    while start <= span.end:
        end = min(start + PART_SECONDS - MINUTE_SECONDS, span.end)
        for series in api.matrix(f"last_over_time({name}[60s])", start, end, MINUTE_SECONDS):
            names = {pick(series.labels, ("replica",)), pick(series.labels, (INSTANCE,))}
            if where.server and where.server not in names:
                continue
            for at, many in growth.of(series.labels, series.points).by.items():
                grown[series.labels, at] = many
        start = end + MINUTE_SECONDS
    return grown


def _share(blocks: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Reuse:
    """A ratio of sums over blocks of five minutes, and how sure it is by how they differ."""
    if not blocks.size:
        return Reuse(None, "nothing was looked up in the prefix cache in that time")
    hits, looked = blocks.T
    value, many = float(hits.sum() / looked.sum()), len(blocks)
    if many < _FEWEST_BLOCKS:
        return Reuse(Bounds(value, 0.0, 1.0))
    squares = float(((hits - value * looked) ** 2).sum()) * many / (many - 1)
    half = deviations(many - 1.0, ALPHA) * math.sqrt(squares) / float(looked.sum())
    return Reuse(Bounds(value, max(0.0, value - half), min(1.0, value + half)))
