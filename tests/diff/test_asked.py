"""What operands may be, and what is said of those that mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.config import ConfigError
from sidecar.diff.asked import Asked, Period, Where, during, operand, period

NOW = 1_780_000_000.0  # 2026-05-28 20:26:40 UTC


def test_times_with_their_zone() -> None:
    """As ISO 8601 has them; nine o'clock in Berlin is seven by UTC."""
    assert period("2026-05-28T09:00+02:00/2026-05-28T07:30Z", NOW) == Period(
        1_779_951_600.0, 1_779_953_400.0
    )


def test_times_before_now() -> None:
    """Durations back, and now."""
    assert period("-2h/now", NOW) == Period(NOW - 7_200, NOW)
    assert period("-1d12h/-30m", NOW) == Period(NOW - 129_600, NOW - 1_800)


def test_whose_requests() -> None:
    """A server or a leg behind the @; the words of legs are no servers."""
    assert operand("-1h/now@10.0.0.1:8000", NOW).where == Where(server="10.0.0.1:8000")
    assert operand("-1h/now@upstream", NOW).where == Where(leg="upstream")
    assert operand("-1h/now@[::1]:8000", NOW).where == Where(server="[::1]:8000")
    assert operand("-1h/now", NOW).where == Where()


def test_a_deploy_and_a_file(tmp_path: Path) -> None:
    """The last deploy has its time in the file of alarms; a file is one that is there."""
    run = tmp_path / "run@2.jsonl"
    run.write_text("")
    assert operand("deploy:last@upstream", NOW) == Asked(
        "deploy:last@upstream", None, Where(leg="upstream")
    )
    assert operand(str(run), NOW) == Asked(str(run), run, Where())
    assert operand(f"{run}@10.0.0.1:8000", NOW).where == Where(server="10.0.0.1:8000")


def test_beside_during_operands_are_servers() -> None:
    """Of one period; an @ before them is no matter."""
    found = Period(1.0, 2.0)
    assert during("10.0.0.1:8000", found).where == Where(server="10.0.0.1:8000")
    assert during("@downstream", found).where == Where(leg="downstream")
    with pytest.raises(ConfigError, match="is no server"):
        during("-1h/now", found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("yesterday", "is no period"),
        ("2026-05-28T09:00/now", "has no zone: end it with Z"),
        ("-1h/-2h", "ends before it begins"),
        ("now/now", "ends before it begins"),
        ("-1h/now/now", "is no period: START/END"),
        ("2026-05-28T09:00Z/2027-01-01T00:00Z", "lies ahead"),
        ("2026-15-28T09:00Z/now", "is no time"),
        ("-1x/now", "is no time"),
        ("-1h/now@", "WHEN@WHERE"),
        ("@upstream", "WHEN@WHERE"),
        ("--sav", "is no option"),
        ("nothing/there.jsonl", "no file of that name"),
        ("", "is no period"),
    ],
)
def test_what_means_nothing(text: str, said: str) -> None:
    """The word is named, and what it could be."""
    with pytest.raises(ConfigError, match=said):
        operand(text, NOW)


def test_an_endless_operand_leaves_room_for_the_remedy() -> None:
    """It is cut short."""
    with pytest.raises(ConfigError) as raised:
        operand("x" * 3_000, NOW)
    assert len(str(raised.value)) < 400
