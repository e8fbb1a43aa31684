"""Tests of sidecar.detect.recent: how much counters grew in the last seconds."""

import pytest

from sidecar.detect.recent import Recent
from sidecar.ledger import Tally


def test_a_single_point_has_no_window() -> None:
    """What was counted before we looked is not counted in the last seconds."""
    recent = Recent(10.0)
    assert recent.over() is None
    recent.note(100.0, Tally(ended=900))
    assert recent.over() is None


def test_what_is_told_is_the_growth() -> None:
    """Every field is what came in between, over the seconds that were seen."""
    recent = Recent(10.0)
    recent.note(100.0, Tally(ended=900, failed=7, decode_seconds=1.5))
    recent.note(104.0, Tally(ended=911, failed=10, decode_seconds=4.0))
    assert recent.over() == (4.0, Tally(ended=11, failed=3, decode_seconds=2.5))


def test_old_growth_leaves_the_window() -> None:
    """A burst is out of a window of 10 s after 10 s, and the window stays as long as it is."""
    recent = Recent(10.0)
    recent.note(0.0, Tally())
    for second in range(1, 31):
        recent.note(float(second), Tally(ended=50 if second >= 3 else 0))
        seconds, tally = recent.over() or (0.0, Tally())
        assert seconds == min(second, 10.0)
        assert tally.ended == (50 if 3 <= second <= 12 else 0)


def test_blindness_voids_the_window() -> None:
    """What was counted before and after a blind moment makes no window together."""
    recent = Recent(10.0)
    recent.note(1.0, Tally(ended=1))
    recent.note(2.0, Tally(ended=2))
    recent.note(3.0, None)
    assert recent.over() is None
    recent.note(4.0, Tally(ended=90))
    assert recent.over() is None
    recent.note(5.0, Tally(ended=91))
    assert recent.over() == (1.0, Tally(ended=1))


@pytest.mark.parametrize("field", ["ended", "failed", "token_events", "decode_seconds"])
def test_a_counter_that_goes_back_starts_anew(field: str) -> None:
    """Whichever of them it is: it was reset, and no growth is ever negative."""
    recent = Recent(10.0)
    recent.note(1.0, Tally(ended=9, failed=9, token_events=9, decode_seconds=9.0))
    recent.note(2.0, Tally(**{**dict.fromkeys(("ended", "failed", "token_events"), 9), field: 1}))
    assert recent.over() is None


def test_memory_is_bounded_by_the_window() -> None:
    """A day of seconds holds a window of points."""
    recent = Recent(10.0)
    for second in range(86_400):
        recent.note(float(second), Tally(ended=second))
    assert len(recent._points) == 11
