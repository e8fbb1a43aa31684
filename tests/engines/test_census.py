"""Tests of sidecar.engines.census."""

from sidecar.engines.census import Census


def census(**series: int) -> Census:
    """Names with so many series, each with a label of as many values."""
    made = Census()
    for name, number in series.items():
        for i in range(number):
            made.add(name.encode(), b'{path="/%d",method="GET"} 1' % i)
    return made


def test_series_are_counted_by_name() -> None:
    """All of them, wanted or not."""
    assert census(a=7, b=11).names() == {"a": 7, "b": 11}


def test_more_than_a_thousand_series_are_an_explosion() -> None:
    """Told with the label that makes them; a thousand are not."""
    (explosion,) = census(a=1_000, b=1_201).explosions()
    assert (explosion.name, explosion.series, explosion.label) == ("b", 1_201, "path")


def test_the_worst_ten_are_told() -> None:
    """Thousands of exploding names would push other sentences out."""
    told = census(**{f"n{i}": 1_001 + i for i in range(13)}).explosions()
    assert [explosion.series for explosion in told] == list(range(1_013, 1_003, -1))


def test_names_have_a_cap_and_a_longest() -> None:
    """Made-up names cost no memory; those that are known go on being counted."""
    made = census(**{f"n{i}": 1 for i in range(5_003)})
    made.add(b"n0", b" 1")
    made.add(b"x" * 256, b" 1")
    assert len(made.names()) == 5_000
    assert made.names()["n0"] == 2
