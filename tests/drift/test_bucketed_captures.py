"""The bounds that the tests use are those that engines have, and what captures of them say."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.bucket_recorder import SIGNALS
from sidecar.bucketed import Bucketed, Interval
from sidecar.signals import Histogram
from tests.drift.engines import FIXTURES, SGLANG_TTFT, SHARED, TGI_DURATION, VLLM_TTFT, translated


def shown(path: Path) -> dict[str, Bucketed]:
    """What a capture has counted, by signal."""
    if not path.exists():
        pytest.skip("the shared samples are not beside this checkout")
    return {
        SIGNALS[one.metric]: Bucketed.of(one)
        for one in translated(path).samples
        if isinstance(one, Histogram) and one.metric in SIGNALS
    }


@pytest.mark.parametrize(
    ("path", "signal", "bounds"),
    [
        (FIXTURES / "vllm-0.32.0-load.prom", "ttft", VLLM_TTFT),
        (SHARED / "sglang-1.prom", "ttft", SGLANG_TTFT),
        (SHARED / "tgi-1.prom", "duration", TGI_DURATION),
    ],
)
def test_the_bounds_are_those_of_the_engine(
    path: Path, signal: str, bounds: tuple[float, ...]
) -> None:
    """As it showed them."""
    assert shown(path)[signal].bounds == bounds


@pytest.mark.parametrize(
    ("path", "signals"),
    [
        (FIXTURES / "vllm-0.32.0-overload.prom", {"ttft", "itl", "duration"}),
        (SHARED / "sglang-1.prom", {"ttft", "itl", "duration"}),
        (SHARED / "tgi-1.prom", {"duration"}),
        (SHARED / "triton-2.prom", {"duration"}),
    ],
)
def test_what_engines_tell(path: Path, signals: set[str]) -> None:
    """TGI and Triton have no histogram of the first token, nor of the gaps."""
    assert set(shown(path)) == signals


@pytest.mark.parametrize("path", [FIXTURES / "vllm-0.32.0-overload.prom", SHARED / "sglang-1.prom"])
def test_sums_and_counts_agree(path: Path) -> None:
    """So that the mean of a tail is known, within the buckets it lies in."""
    for one in shown(path).values():
        for bound in one.bounds:
            if one.above(bound):
                found = one.tail_mean(bound)
                assert found is not None
                assert bound <= found.lower <= found.upper


def test_a_summary_tells_no_quantile() -> None:
    """Triton's request duration is two counters."""
    one = shown(SHARED / "triton-2.prom")["duration"]
    assert one.bounds == ()
    if one.n:
        assert one.quantile(0.99) == Interval(0.0, float("inf"))
