"""Tests of sidecar.drift.evaluating and sidecar.drift.words: what can be said, and how."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.drift import kolmogorov
from sidecar.drift.baseline import Baseline
from sidecar.drift.evaluating import conclude, evaluate
from sidecar.drift.rounds import Round
from sidecar.drift.stretch import Stretch, sum_of
from sidecar.evaluation import Evaluation, Standing
from tests.drift.hours import OPTIONS, TTFT, baseline, days, judged, lognormal, stretch, tail


def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def said(current: Stretch, made: dict[str, Stretch], *waiting: float) -> Evaluation:
    """Of an hour against days that need not make a baseline."""
    one = evaluate(TTFT, 0.0, current, waiting, Baseline.of(made, OPTIONS), OPTIONS)
    return conclude([one], Round(), OPTIONS)[0]


@pytest.mark.parametrize(
    ("n", "count", "standing", "text"),
    [
        (0, 7, Standing.IDLE, "there was no request"),
        (0, 0, Standing.IDLE, "there was no request"),
        (3_600, 0, Standing.WARMING, "0 of 3 days are known"),
        (3_600, 2, Standing.WARMING, "2 of 3 days are known"),
        (1, 7, Standing.INSUFFICIENT, "1 requests are too few"),
        (199, 7, Standing.INSUFFICIENT, "199 requests are too few"),
    ],
)
def test_what_cannot_be_judged(n: int, count: int, standing: Standing, text: str) -> None:
    """Five states that are not one another, each with its reason."""
    random = rng()
    one = said(lognormal(n)(random), days(random, lognormal(3_600), count))
    assert (one.standing, one.tail, one.shape) == (standing, None, None)
    assert one.text == f"TTFT cannot be judged: {text}"


@pytest.mark.parametrize(("n", "quantile"), [(200, 0.9), (400, 0.95), (2_000, 0.99)])
def test_the_quantile_falls_back(n: int, quantile: float) -> None:
    """To what some twenty requests lie above."""
    random = rng()
    one = said(lognormal(n)(random), days(random, lognormal(3_600)))
    assert tail(one).quantile == quantile


def test_days_that_failed_throughout() -> None:
    """Beyond the range is not too few."""
    made = {f"2026-03-0{i}": stretch(np.full(900, np.inf)) for i in (1, 2, 3)}
    assert said(lognormal(900)(rng()), made).standing is Standing.BEYOND


def test_an_hour_that_failed_throughout() -> None:
    """It drifts, with numbers that are finite."""
    one = said(stretch(np.full(3_600, np.inf)), days(rng(), lognormal(3_600)))
    assert tail(one).drifts
    assert np.isfinite([tail(one).z, tail(one).change.lower, tail(one).change.upper]).all()


def test_only_waiting_requests() -> None:
    """That is not idle."""
    one = said(Stretch.empty(), days(rng(), lognormal(3_600)), 30.0, 40.0)
    assert one.standing is Standing.INSUFFICIENT


def test_a_drift_in_words() -> None:
    """What, how much, how sure."""
    random = rng()
    before = baseline(days(random, lognormal(3_600)))
    ks = kolmogorov.judge(
        lognormal(3_600, 0.45)(random),
        sum_of(list(days(random, lognormal(3_600)).values())),
        OPTIONS,
    )
    current = lognormal(3_600, 0.45)(random)
    one = evaluate(TTFT, 0.0, current, (), before, OPTIONS, ks=ks)
    [one] = conclude([one], Round(), OPTIONS)
    text = one.text.replace("\N{NO-BREAK SPACE}", " ")
    number = r"[\d.]+"
    pattern = (
        rf"P99 of TTFT is {number} s, {number} ms \[{number} ms, {number} ms\] above the same hour "
        rf"of 7 days; {number} % of requests above its usual P99 \(expected {number} %\), "
        rf"p = \de-\d+; whole hour as specified: drifts, D = 0\.\d+, p = \de-\d+, "
        rf"P99 {number} ms \[.*\] above"
    )
    assert re.fullmatch(pattern, text), text


def test_as_usual_in_words() -> None:
    """Nobody is told of an improvement that is none."""
    random = rng()
    one = judged(lognormal(3_600)(random), baseline(days(random, lognormal(3_600))))
    assert "improvement" not in one.text
    assert "furthest" not in one.text


def test_what_was_kept_and_dropped_is_told() -> None:
    """Dates, with the reason."""
    random = rng()
    made = days(random, lognormal(3_600)) | {"2026-03-04": lognormal(3_600, 1.5)(random)}
    one = said(lognormal(3_600)(random), made)
    assert len(one.kept) == 6
    assert [date for date, _ in one.dropped] == ["2026-03-04"]


odd = st.sampled_from([0.0, 1e-4, 1e-3, 0.2, 0.2001, 0.9, 600.0, np.inf])


def odd_hour(values: list[float], n: int, weight: float) -> Stretch:
    """These over and over, of as many kinds as there are values."""
    seconds = np.resize(np.array(values), n)
    return stretch(seconds, (np.arange(n) % len(values) % 8).tolist()).weighted(weight)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(odd, min_size=1, max_size=9), st.integers(0, 3_000), st.floats(0, 2)),
        min_size=4,
        max_size=6,
    ),
    st.lists(odd, max_size=3),
)
def test_whatever_comes_it_is_judged_or_it_is_said_why(
    hours: list[tuple[list[float], int, float]], waiting: list[float]
) -> None:
    """All in one cell, empty, below and above the range, of weight 0: no error, no NaN, and
    probabilities that are some.
    """
    with np.errstate(all="raise", under="ignore"):
        made = {f"2026-03-0{i}": odd_hour(*hour) for i, hour in enumerate(hours[1:])}
        values, n, _ = hours[0]
        one = said(odd_hour(values, n, 1.0), made, *waiting)
    assert one.text
    assert (one.standing is Standing.JUDGED) == (one.tail is not None)
    if one.tail and one.shape:
        assert 0 <= one.tail.p <= one.tail.q <= 1
        assert 0 <= one.shape.p <= 1
        change = one.tail.change
        assert change.lower <= change.value <= change.upper
        assert np.isfinite([one.tail.z, one.tail.phi, one.mix, change.lower, change.upper]).all()
        assert one.tail.phi >= 1
