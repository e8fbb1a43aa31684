"""What misses its target is said."""

from __future__ import annotations

from bench import wire_words

MET = dict.fromkeys(wire_words.TARGETS, 0.0) | {"events_per_second": 5_003.0}


def test_all_met() -> None:
    """Figures within their targets miss none."""
    assert wire_words.missed(MET) == []


def test_one_beyond() -> None:
    """A figure beyond its target is named, and so is a rate below its own."""
    found = wire_words.missed(MET | {"cpu_ratio": 1.021, "events_per_second": 4_999.0})
    assert found == ["cpu_ratio", "events_per_second"]


def test_no_figure_meets_nothing() -> None:
    """A bound that is not known, or a key that is not there, has not met its target."""
    found = wire_words.missed({**MET, "cpu_ratio_upper": None})
    assert found == ["cpu_ratio_upper"]
    assert set(wire_words.missed({})) == {*wire_words.TARGETS, "events_per_second"}
