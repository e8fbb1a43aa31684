"""Tests of sidecar.engines.joining."""

from collections import Counter

from sidecar.engines import canonical
from sidecar.engines.exposition import Bad
from sidecar.engines.joining import capped, joined, sound
from sidecar.signals import Histogram, Sample


def test_what_has_one_name_and_labels_is_one_series() -> None:
    """Counts and levels add up, of ratios the worst counts; labels keep things apart."""
    found = joined(
        [
            Sample(canonical.RUNNING.name, 3),
            Sample(canonical.RUNNING.name, 4),
            Sample(canonical.RUNNING.name, 5, (("model", "m"),)),
            Sample(canonical.KV_USAGE.name, 0.97),
            Sample(canonical.KV_USAGE.name, 0.04),
        ]
    )
    assert [sample.value for sample in found if isinstance(sample, Sample)] == [7, 5, 0.97]


def test_of_two_histograms_the_first_counts() -> None:
    """Their bounds may differ: nothing is mixed."""
    one, other = (Histogram("h", (1.0,), (number,), 3.0) for number in (7, 11))
    assert list(joined([one, other])) == [one]


def test_numbers_that_are_none_are_left_out_and_counted() -> None:
    """Beyond range by their sum or by a unit's scale."""
    flaws: Counter[Bad] = Counter()
    good = Sample("a", 7)
    bad = [Sample("b", 2.0**63), Sample("c", float("inf")), Histogram("h", (1.0,), (7,), 2.0**64)]
    assert list(sound([*bad, good], flaws)) == [good]
    assert flaws == {Bad.BEYOND: 2, Bad.INFINITE: 1}


def test_one_metric_has_so_many_series_and_leaves_others_theirs() -> None:
    """Two labels of fifty values make 2,500."""
    many = [Sample("a", 1, (("x", str(i)),)) for i in range(2_503)]
    few = [Sample("b", 1, (("x", str(i)),)) for i in range(7)]
    kept = Counter(sample.metric for sample in capped([*many, *few]))
    assert kept == {"a": 500, "b": 7}
