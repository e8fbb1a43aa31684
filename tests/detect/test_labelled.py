"""Tests of how labelled series are scored in bench/detectors_labelled and chosen on."""

from pathlib import Path

from bench import detectors_choice as choice
from bench import detectors_labelled as labelled
from bench.detectors_labelled import Count


def flags(text: str) -> list[bool]:
    return [letter == "#" for letter in text]


def test_an_event_counts_once() -> None:
    """Two alarms within one event detect it once; one outside is false; one event is missed."""
    labels = flags("..####...##..")
    alarms = flags("..#.#..#.....")
    assert labelled.score(alarms, labels) == Count(detected=1, false=1, missed=1)


def test_an_alarm_that_outlasts_its_event_is_not_false() -> None:
    """A tail of less than a day belongs to its detection."""
    labels, alarms = flags("..##......"), flags("...#####..")
    assert labelled.score(alarms, labels) == Count(detected=1)


def test_an_alarm_without_end_is_worthless() -> None:
    """It detects both events, and is false again on each of thirty days."""
    labels = [i in (100, 101, 400) for i in range(720)]
    assert labelled.score([True] * 720, labels) == Count(detected=2, false=29)
    assert labelled.score([True] * 720, [False] * 720) == Count(false=30)


def test_the_judged_series_has_no_say() -> None:
    """A rule that is good on one series only is not chosen for that one."""
    scores = {
        "lucky": [Count(detected=9), Count(missed=5), Count(missed=5)],
        "steady": [Count(detected=3, false=3), Count(detected=3, false=3), Count(detected=4)],
    }
    counts, picked = choice.held_out(scores)
    assert picked[0] == "steady"
    assert counts[0] == Count(detected=3, false=3)


def test_equal_series_are_left_out_together(tmp_path: Path) -> None:
    """Two files with the same values are one series with two sets of labels."""
    folder = tmp_path / "microsoft-cloud-monitoring/data/middle-tier-api-dependency-latency"
    folder.mkdir(parents=True)
    for name, label in (("one", 0), ("two", 1)):
        rows = f'TimeStamp,Value,Label\n"2018-06-17T00:00:00Z",1.5,{label}\n'
        (folder / f"{name}.csv").write_text(rows)
    (series,) = labelled.read(tmp_path)
    assert series.names == ("one", "two")
    assert series.labels == ((False,), (True,))


def test_rules_see_no_future() -> None:
    """Changing what comes later changes no flag of what came before."""
    values = [50.0 + (hour * 7) % 11 for hour in range(200)]
    later = [*values[:150], *[500.0] * 50]
    for rules in (labelled.charts(), labelled.simple()):
        for name, rule in list(rules.items())[::9]:
            assert rule(values)[:150] == rule(later)[:150], name
