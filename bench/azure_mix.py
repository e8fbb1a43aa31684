"""What another mix alone makes of a latency, and how much of it strata of requests explain.

The requests of one condition are weighed anew: kinds have other shares, each request has the
latency that it had. The share that then lies above the old P95 is the truth that a correction by
strata is to expect.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.azure_fixture import Measured
from sidecar.record import stratum

_QUANTILE = 0.95
_WIDTHS = (4.0, 2**0.5)  # of strata of one size alone, as factors of it
Floats = NDArray[np.float64]


def explained(
    found: Sequence[Measured], scenario: str, moved: Mapping[str, float]
) -> Iterator[dict[str, object]]:
    """Rows for TTFT by request size and for duration by token events: how many times as many lie
    above the P95, in truth and by strata: by those of that size alone, and by the recorder's.
    """
    weights = np.array([moved[one.kind] for one in found])
    ttft = np.array([one.timing.ttft_seconds or math.inf for one in found])
    duration = np.array([one.timing.seconds for one in found])
    asked = np.array([one.timing.request_bytes for one in found], dtype=np.float64)
    answered = np.array([one.timing.token_events for one in found], dtype=np.float64)
    for signal, seconds, size in (("ttft", ttft, asked), ("duration", duration, answered)):
        above = (seconds > np.quantile(seconds, _QUANTILE)).astype(np.float64)
        row: dict[str, object] = {"scenario": scenario, "signal": signal}
        row["true_ratio"] = float((weights @ above) / weights.sum() / above.mean())
        for width in _WIDTHS:
            row[f"ratio_by_{width:.2g}"] = _expected(above, weights, _stratum(size, width))
        row["ratio_recorded"] = _expected(above, weights, _recorded(found, signal == "duration"))
        yield row


def _recorded(found: Sequence[Measured], both: bool) -> NDArray[np.int64]:
    """By request bytes, and with ``both`` by token events, too."""
    timings = [one.timing for one in found]
    kinds = [stratum(one.request_bytes, one.token_events * both) for one in timings]
    return np.array(kinds, dtype=np.int64)


def _stratum(size: Floats, width: float) -> NDArray[np.int64]:
    """Of equal ratios, from 2 on."""
    steps = np.floor(np.log(np.maximum(size, 2.0) / 2) / math.log(width))
    found: NDArray[np.int64] = steps.astype(np.int64)
    return found


def _expected(above: Floats, weights: Floats, stratum: NDArray[np.int64]) -> float:
    """The standardised share above, over what it was."""
    whole = sum(
        weights[stratum == one].sum() * above[stratum == one].mean() for one in np.unique(stratum)
    )
    return float(whole / weights.sum() / above.mean())


def tell(rows: Sequence[Mapping[str, object]]) -> None:
    """In words."""
    print("\nthe mix alone: how many times as many lie above the usual P95 in truth, and by strata")
    for row in rows:
        print(
            f"  {row['scenario']:<32}{row['signal']:<10}{row['true_ratio']:.2f}   strata of a "
            f"factor 4: {row['ratio_by_4']:.2f}, of 1.4: {row['ratio_by_1.4']:.2f}, as recorded: "
            f"{row['ratio_recorded']:.2f}"
        )
