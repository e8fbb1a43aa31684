"""What buckets say for certain, of random data and of a few that are awkward."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.bucketed import Bucketed, Interval, Step, between, merged
from sidecar.signals import Histogram
from tests.drift.engines import REAL, bucketed, cumulative

SECONDS = st.lists(st.floats(0, 3_000, allow_subnormal=False), min_size=1, max_size=60)
BOUNDS = st.sampled_from(REAL) | st.lists(
    st.floats(0, 1_000, allow_subnormal=False), min_size=1, max_size=9, unique=True
).map(lambda found: tuple(sorted(found)))


def inside(value: float, place: Interval | None, slack: float = 0.0) -> bool:
    """As buckets have it: above the lower end, 0 in the first one."""
    assert place is not None
    above = value > place.lower - slack or value == place.lower == 0
    return above and value <= place.upper + slack


@given(SECONDS, BOUNDS, st.floats(0, 1))
def test_a_quantile_lies_within_its_interval(
    seconds: list[float], bounds: tuple[float, ...], q: float
) -> None:
    """The smallest duration that a share of q does not exceed."""
    rank = min(len(seconds), max(1, math.ceil(q * len(seconds) - 1e-9)))
    assert inside(sorted(seconds)[rank - 1], bucketed(seconds, bounds).quantile(q))


@given(SECONDS, BOUNDS, st.data())
def test_the_mean_of_a_tail_lies_within_its_interval(
    seconds: list[float], bounds: tuple[float, ...], data: st.DataObject
) -> None:
    """Whatever the data, from the sum and counts alone."""
    bound = data.draw(st.sampled_from(bounds))
    tail = [one for one in seconds if one > bound]
    found = bucketed(seconds, bounds).tail_mean(bound)
    if not tail:
        assert found is None
        return
    slack = 1e-9 * (math.fsum(seconds) + 1) + 1e-9
    assert inside(math.fsum(tail) / len(tail), found, slack)


@given(SECONDS, BOUNDS, st.data())
def test_counts_above_a_bound_are_exact(
    seconds: list[float], bounds: tuple[float, ...], data: st.DataObject
) -> None:
    """Which is what makes a test at a bound a valid one; so is the mean."""
    bound = data.draw(st.sampled_from(bounds))
    one = bucketed(seconds, bounds)
    assert one.above(bound) == sum(value > bound for value in seconds)
    assert one.mean == pytest.approx(math.fsum(seconds) / len(seconds))


@given(SECONDS, SECONDS, BOUNDS, BOUNDS)
def test_together_they_are_what_was_counted_together(
    some: list[float], more: list[float], mine: tuple[float, ...], theirs: tuple[float, ...]
) -> None:
    """With different bounds, on those that both have."""
    both = bucketed(some, mine).merge(bucketed(more, theirs))
    common = tuple(bound for bound in mine if bound in theirs)
    wanted = bucketed([*some, *more], common)
    assert (both.bounds, both.counts) == (wanted.bounds, wanted.counts)
    assert both.sum == pytest.approx(wanted.sum)


@given(st.lists(SECONDS, min_size=2, max_size=8), BOUNDS, st.data())
def test_deltas_add_up_over_a_reset_at_any_place(
    batches: list[list[float]], bounds: tuple[float, ...], data: st.DataObject
) -> None:
    """A process that begins anew after a scrape: all that came later is in the deltas, unless it
    has overtaken what was there, and then they hold less and never more.
    """
    reset = data.draw(st.integers(1, len(batches) - 1))
    shown: list[list[float]] = []
    scrapes = [cumulative(batches[0], bounds)]
    for i, batch in enumerate(batches[1:], 1):
        shown = [batch] if i == reset else [*(shown or [batches[0]]), batch]
        scrapes.append(cumulative([value for part in shown for value in part], bounds))
    steps = [between(a, b) for a, b in pairwise(scrapes)]
    total = merged(stretch for _, stretch in steps if stretch is not None)
    wanted = bucketed([value for batch in batches[1:] for value in batch], bounds)
    seen = [step for step, _ in steps]
    if seen.count(Step.RESET) == 1 and seen.count(Step.GREW) == len(seen) - 1:
        assert total is not None
        assert total.counts == wanted.counts
        assert total.sum == pytest.approx(wanted.sum, abs=1e-6)
    else:  # the new process has more in every bucket than the old one had
        assert Step.RESET not in seen
        assert (total.n if total else 0) <= wanted.n


def test_fewer_in_any_bucket_is_a_reset() -> None:
    """Even where the number of all has grown meanwhile."""
    bounds = (0.1, 1.0)
    step, found = between(cumulative([0.05] * 7, bounds), cumulative([0.5] * 11, bounds))
    assert (step, found) == (Step.RESET, bucketed([0.5] * 11, bounds))


def test_changed_bounds_are_a_new_start() -> None:
    """What it shows may be older."""
    before, after = cumulative([0.05], (0.1, 1.0)), cumulative([0.05, 0.06], (0.1, 0.5))
    assert between(before, after) == (Step.REBOUNDED, None)


def test_a_sum_that_goes_back_is_refused() -> None:
    """No count fell, so that it is no reset that can be seen."""
    before = cumulative([0.9], (0.1, 1.0))
    assert between(before, replace(before, sum=0.8)) == (Step.BACKWARDS, None)


@pytest.mark.parametrize(
    "bad",
    [
        {"counts": (3, 2, 4)},
        {"sum": math.nan},
        {"sum": -1.0},
        {"bounds": (0.1, 1.0, 2.0)},
        {"bounds": (1.0, 0.1, math.inf)},
        {"bounds": (), "counts": ()},
    ],
)
def test_what_contradicts_itself_is_refused(bad: dict[str, object]) -> None:
    """Neither counted nor taken for a reset."""
    before = cumulative([0.05, 0.5, 0.6], (0.1, 1.0))
    worse = replace(before, **bad)  # type: ignore[arg-type]
    assert between(before, worse) == (Step.UNSOUND, None)


def test_the_last_bucket_has_no_upper_end() -> None:
    """Above the last bound, more cannot be known."""
    one = bucketed([0.2, 3.0, 9.0], (0.5, 1.0))
    assert one.quantile(0.99) == Interval(1.0, math.inf)
    assert one.quantile(0.3) == Interval(0.0, 0.5)


def test_of_nothing_nothing_is_known() -> None:
    """No quantile, no mean, none above."""
    one = bucketed([], (0.5, 1.0))
    assert (one.quantile(0.5), one.mean, one.tail_mean(0.5), one.above(1.0)) == (None,) * 3 + (0,)
    assert merged([]) is None


def test_a_summary_says_only_its_mean() -> None:
    """It has no bound at all."""
    one = Bucketed((), (4,), 2.0)
    assert (one.mean, one.quantile(0.99)) == (0.5, Interval(0.0, math.inf))


def test_a_sum_that_contradicts_the_counts_gives_no_tail() -> None:
    """Scrapes catch engines between a count and its sum."""
    assert Bucketed((0.5, 1.0), (0, 2, 0), 0.2).tail_mean(0.5) is None


def test_only_bounds_can_be_asked_about() -> None:
    """Between them there is no exact answer."""
    with pytest.raises(ValueError, match="none of the bounds"):
        bucketed([0.2], (0.5, 1.0)).above(0.7)


def test_a_cumulative_histogram_is_taken_apart() -> None:
    """Its counts are up to each bound, ours between them."""
    one = Histogram("m", (0.1, 1.0, math.inf), (2, 5, 7), 9.0)
    assert Bucketed.of(one).counts == (2, 3, 2)
    assert tuple(accumulate(Bucketed.of(one).counts)) == one.counts
