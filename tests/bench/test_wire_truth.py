"""What the tap said beside what was sent: no difference stays unseen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.wire_truth import Asked, Compared, compare
from sidecar import gaps
from sidecar.signals import End, RequestTiming
from sidecar.testing import timing

MS = 1_000_000
GAP_MS = 11
TOKENS = 5


def asked(name: str, sent: int = 0) -> Asked:
    """A request whose first token was sent after 23 ms, the others every 11."""
    stamps = tuple(sent + (23 + GAP_MS * at) * MS for at in range(TOKENS))
    return Asked(name, sent, stamps[-1] + MS, stamps)


def told(name: str, **changes: object) -> RequestTiming:
    """What a tap that sees all of it says."""
    right = timing(
        request_id=name,
        ttft_seconds=0.023,
        events=TOKENS + 2,
        token_events=TOKENS,
        gaps=((gaps.index(GAP_MS * MS), TOKENS - 1),),
        end=End.COMPLETE,
    )
    return replace(right, **changes)  # type: ignore[arg-type]  # any field of it


def test_a_tap_that_sees_all() -> None:
    """Nothing is lost, and the medians differ by no more than a bucket is wide."""
    found = compare([asked("a"), asked("b", 7)], [told("b"), told("a")])
    assert (found.requests, found.lost, found.strange) == (2, 0, 0)
    assert found.ttft_error_seconds == pytest.approx(0, abs=1e-9)
    assert found.itl_error_seconds < 0.03 * GAP_MS / 1e3


def test_a_late_tap() -> None:
    """A TTFT that is told 3 ms too long is 3 ms off."""
    found = compare([asked("a")], [told("a", ttft_seconds=0.026)])
    assert found.ttft_error_seconds == pytest.approx(0.003)
    assert found.ttft_p99_seconds == pytest.approx(0.003)


@pytest.mark.parametrize(
    ("records", "lost", "strange"),
    [
        ([told("a")], TOKENS + 2, 0),
        ([told("a"), told("b", events=TOKENS)], 2, 0),
        ([told("a"), told("b", events=TOKENS + 5)], 3, 0),
        ([told("a"), told("b", token_events=TOKENS - 1)], 1, 0),
        ([told("a"), told("b"), told("c")], TOKENS + 2, 1),
        ([told("a"), told("b"), told("b")], TOKENS + 2, 1),
        ([told("a"), told("b", end=End.LOST)], 0, 1),
    ],
    ids=["unseen", "fewer", "more", "text", "made-up", "twice", "ended"],
)
def test_every_difference_counts(records: list[RequestTiming], lost: int, strange: int) -> None:
    """A request that is missing, counted wrong either way, made up, told twice or ended wrongly."""
    found = compare([asked("a"), asked("b")], records)
    assert (found.lost, found.strange) == (lost, strange)


def test_a_blind_tap_is_no_result() -> None:
    """A tap that timed nothing gives an error, not an error of zero."""
    with pytest.raises(ValueError, match="timed none"):
        compare([asked("a")], [])


def test_errors_have_no_sign() -> None:
    """Early is as wrong as late."""
    early = Compared(1, 0, 0, 0.019, 0.023, 0.004, 0.019, 0.009, 0.011)
    assert early.ttft_error_seconds == pytest.approx(0.004)
    assert early.itl_error_seconds == pytest.approx(0.002)
