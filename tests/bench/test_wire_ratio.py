"""The arithmetic of interleaved pairs."""

from __future__ import annotations

import math
import random
from itertools import islice, pairwise

import pytest

from bench import wire_ratio


def _drawn(rng: random.Random, ratio: float, n: int) -> list[tuple[float, float]]:
    """Pairs that both vary by a tenth, and every seventh by a neighbour on one side."""
    found = []
    for number in range(n):
        pair = [ratio * rng.lognormvariate(0, 0.1), rng.lognormvariate(0, 0.1)]
        if number % 7 == 0:
            pair[rng.randrange(2)] *= 3
        found.append((pair[0], pair[1]))
    return found


def test_interval_holds_the_truth() -> None:
    """Of a thousand series of pairs with a known ratio some 95 % have it in their interval."""
    rng, truth = random.Random(1), 1.02
    found = [wire_ratio.ratio(_drawn(rng, truth, 61)) for _ in range(1_000)]
    assert 0.92 < sum(one.lower <= truth <= one.upper for one in found) / 1_000 <= 1.0


def test_neither_side_is_favoured() -> None:
    """What is over what only turns the ratio round."""
    pairs = _drawn(random.Random(2), 1.3, 31)
    one, other = wire_ratio.ratio(pairs), wire_ratio.ratio([(b, a) for a, b in pairs])
    assert one.point == pytest.approx(1 / other.point)
    assert one.lower == pytest.approx(1 / other.upper)


def test_what_every_pair_has_is_found() -> None:
    """Pairs that all differ alike give just that, and an interval of no width."""
    found = wire_ratio.ratio([(1.03 * at, at) for at in (2.0, 3.0, 5.0, 7.0, 11.0)])
    assert found.point == pytest.approx(1.03)
    assert found.half_width == pytest.approx(0, abs=1e-9)


def test_a_neighbour_is_set_aside() -> None:
    """A few pairs that another program fell on do not move the ratio."""
    quiet = [(1.0 + at / 1_000, 1.0) for at in range(23)]
    assert wire_ratio.ratio([*quiet, (9.0, 1.0), (1.0, 7.0)]).point == pytest.approx(
        1.011, abs=2e-3
    )


def test_too_few_have_no_interval() -> None:
    """Three pairs have a mean and no bounds, which is not the same as bounds of 1."""
    found = wire_ratio.ratio([(1.0, 1.0)] * 3)
    assert (found.lower, found.upper, found.n) == (0.0, math.inf, 3)


@pytest.mark.parametrize("pairs", [[], [(1.0, 0.0)], [(-1.0, 1.0)], [(math.nan, 1.0)]])
def test_no_ratio_of_nothing(pairs: list[tuple[float, float]]) -> None:
    """Without pairs, or with one that is no measurement, there is an error and no figure."""
    with pytest.raises(ValueError, match="positive numbers"):
        wire_ratio.ratio(pairs)


def test_orders_take_turns() -> None:
    """Each pair turns the order of the one before round, from a start that the seed decides."""
    for seed in range(5):
        found = list(islice(wire_ratio.orders(random.Random(seed)), 7))
        assert all(first != second for first, second in found)
        assert all(a != b for a, b in pairwise(found))
    starts = {next(wire_ratio.orders(random.Random(seed))) for seed in range(13)}
    assert len(starts) == 2


def test_shams_are_of_alike_halves() -> None:
    """Two halves in a row that are both with the tap, or both without, make a pair; no others."""
    halves = [(True, 2.0), (False, 3.0), (False, 5.0), (True, 7.0), (True, 11.0)]
    assert wire_ratio.shams(halves) == [(5.0, 3.0), (11.0, 7.0)]
