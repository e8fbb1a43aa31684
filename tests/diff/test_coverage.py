"""Of 300 pairs, how many intervals hold the truth, and how often nothing is called moved."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from sidecar.diff.comparing import compare
from sidecar.diff.findings import Verdict
from tests.diff.made import Service, side

_QUANTILES = (0.5, 0.95, 0.99)
REPETITIONS, LEAST = 300, 0.93


@dataclass(frozen=True)
class Held:
    """Shares, by quantile, of the intervals that hold; and of pairs that are called moved."""

    raw: list[float]
    mixed: list[float]
    moved: float


def truth(service: Service) -> np.ndarray:
    long = replace(service, n=1_000_000, minutes=60 * 24 * 40)
    return np.quantile(long.drawn(np.random.default_rng(99))[0], _QUANTILES)


def simulate(a: Service, b: Service, seed: int) -> Held:
    """Intervals that are shown, of all of them."""
    rng = np.random.default_rng(seed)
    then, now = truth(a), truth(b)
    raw = np.zeros(3)
    mixed: list[list[bool]] = [[], [], []]
    usual = truth(replace(a, long=b.long))
    moved = 0
    for _ in range(REPETITIONS):
        found = compare(side("A", ttft=a.ttft(rng)), side("B", ttft=b.ttft(rng)))
        moved += found.verdict in (Verdict.SLOWER, Verdict.FASTER)
        for i, one in enumerate(found.signals[0].quantiles):
            raw[i] += one.raw.lower <= now[i] - then[i] <= one.raw.upper
            if one.judged is not None:
                known = one.judged.difference
                mixed[i].append(bool(known.lower <= now[i] - usual[i] <= known.upper))
    shares = [float(np.mean(held)) for held in mixed if len(held) > REPETITIONS / 3]
    return Held(list(raw / REPETITIONS), shares, moved / REPETITIONS)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Service(), Service()),
        (Service(), Service(median=0.42)),
        (Service(clump=0.15), Service(clump=0.15)),
        (Service(long=0.2), Service(long=0.5)),
        (Service(long=0.2, clump=0.15), Service(long=0.5, clump=0.15)),
    ],
    ids=["iid", "iid, 20 % slower", "clumped", "mix", "mix, clumped"],
)
def test_intervals_hold(a: Service, b: Service) -> None:
    """At least 93 % of the intervals of 95 %, raw and at the mix of B."""
    held = simulate(a, b, seed=1)
    assert min(held.raw) >= LEAST
    assert len(held.mixed) >= 2
    assert min(held.mixed) >= LEAST
    if a.median == b.median:
        assert held.moved <= 0.05


def test_medians_hold_where_what_is_slow_stays_slow() -> None:
    """Blocks of 150 s that resemble the ones before them: the median's interval allows for it."""
    lasting = Service(clump=0.15, rho=0.6)
    held = simulate(lasting, lasting, seed=2)
    assert held.raw[0] >= LEAST
    assert held.moved <= 0.05
