"""One series where several names make it together; and none that is no sound number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from sidecar.engines.exposition import Bad, flaw
from sidecar.signals import Histogram, Labels, Sample

_MAX_SERIES = 500  # of one metric, for as long as the target says them


def joined(samples: Iterable[Sample | Histogram]) -> Iterator[Sample | Histogram]:
    """Adds up what comes under one name and labels, such as looked up = found + missed; of ratios
    the worst.
    """
    found: dict[tuple[str, Labels], Sample | Histogram] = {}
    for sample in samples:
        key = (sample.metric, sample.labels)
        before = found.get(key)
        if isinstance(before, Sample) and isinstance(sample, Sample):
            worst = sample.metric.endswith("_ratio")
            both = max(before.value, sample.value) if worst else before.value + sample.value
            found[key] = Sample(sample.metric, both, sample.labels)
        else:
            found.setdefault(key, sample)
    yield from found.values()


def sound(
    samples: Iterable[Sample | Histogram], flaws: Counter[Bad]
) -> Iterator[Sample | Histogram]:
    """Leaves out, and counts, what is too large although its parts are not."""
    for sample in samples:
        wrong = flaw(sample.sum if isinstance(sample, Histogram) else sample.value)
        if wrong:
            flaws[wrong] += 1
        else:
            yield sample


def capped(samples: Iterable[Sample | Histogram]) -> Iterator[Sample | Histogram]:
    """So many of one metric: labels that are capped each can still be many together."""
    seen: Counter[str] = Counter()
    for sample in samples:
        seen[sample.metric] += 1
        if seen[sample.metric] <= _MAX_SERIES:
            yield sample
