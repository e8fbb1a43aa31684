"""Hours of made-up latencies for the tests of sidecar.drift."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sidecar.drift.baseline import Baseline, pool
from sidecar.drift.evaluating import conclude, evaluate
from sidecar.drift.options import Options
from sidecar.drift.rounds import Round
from sidecar.drift.stretch import Floats, Stretch
from sidecar.evaluation import Evaluation, Series, Shape, Standing, Tail

TTFT = Series("ttft", "downstream", "10.0.0.1:8000")
OPTIONS = Options()
Make = Callable[[np.random.Generator], Stretch]


def stretch(seconds: Floats, kinds: Sequence[int] | None = None) -> Stretch:
    """An hour of 24 blocks that these lie evenly in."""
    block = np.arange(len(seconds)) * 24 // max(1, len(seconds))
    return Stretch.sampled(seconds, block, None if kinds is None else np.array(kinds, np.int64))


def lognormal(n: int, median: float = 0.35, sigma: float = 0.45) -> Make:
    """A maker of hours with ``n`` requests."""
    return lambda rng: stretch(median * np.exp(sigma * rng.standard_normal(n)))


def days(rng: np.random.Generator, make: Make, count: int = 7) -> dict[str, Stretch]:
    """So many days, by date."""
    return {f"2026-03-{day + 1:02}": make(rng) for day in range(count)}


def baseline(made: dict[str, Stretch], options: Options = OPTIONS) -> Baseline:
    """The baseline of days that make one."""
    found = Baseline.of(made, options)
    assert isinstance(found, Baseline)
    return found


def judged(
    current: Stretch,
    before: Baseline,
    waiting: Sequence[float] = (),
    series: Series = TTFT,
    options: Options = OPTIONS,
) -> Evaluation:
    """One evaluation, concluded as a round of its own."""
    one = evaluate(
        series, 0.0, current, waiting, before, options, pool=pool([before, before, before])
    )
    return conclude([one], Round(), options)[0]


def tail(one: Evaluation) -> Tail:
    """Of a judged evaluation."""
    assert one.standing is Standing.JUDGED
    assert one.tail is not None
    return one.tail


def shape(one: Evaluation) -> Shape:
    """Of a judged evaluation."""
    assert one.shape is not None
    return one.shape
