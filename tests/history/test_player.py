"""Replays: what would have alarmed, and what would not."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.config import Settings
from sidecar.detect.minutes import Minute
from sidecar.history.csv_file import CsvFile, Table
from sidecar.history.player import Player
from sidecar.history.records import Account
from tests.history.made import DAY, NOW, SERIES, START, csv, healthy, minutes, played

HOUR = 3_600.0


def rules(player: Player) -> set[str]:
    return {episode.rule for episode in player.episodes.all}


def week(slow_day: int | None = None) -> Iterator[Minute]:
    """Seven days with idle nights; one of them at 60 % of its rate from 08:00 to 20:00."""
    rng = random.Random(11)
    rates: list[float | None] = []
    for number in range(7 * DAY):
        day, hour = divmod(number / 60, 24)
        slowed = day == slow_day and 8 <= hour < 20
        rate = rng.gauss(42.6, 3.8) * (0.6 if slowed else 1.0)
        rates.append(None if hour < 6 else rate)
    return minutes(rates)


def test_a_week_with_a_slowed_day() -> None:
    """It alarms from its third minute to its end and never else, and a week takes seconds."""
    began = time.perf_counter()
    player = played(week(slow_day=3))
    assert time.perf_counter() - began < 10
    slow = START + 3 * 86_400 + 8 * HOUR
    band, *more = [e for e in player.episodes.all if e.rule == "TokenRateOutOfBand"]
    [shifted] = [e for e in player.episodes.all if e.rule == "TokenRateShifted"]
    assert 60 <= band.fired - slow <= 300
    assert sum(e.lasted(player.last) for e in (band, *more)) > 11 * HOUR
    assert shifted.lasted(player.last) == pytest.approx(12 * HOUR, rel=0.02)
    for episode in (band, *more, shifted):
        assert slow < episode.fired < (episode.resolved or 0) < slow + 12.2 * HOUR
    evidence = dict(band.evidence)
    assert evidence["mean"] == pytest.approx(42.6, abs=0.5)
    assert float(evidence["rate_tokens_per_second"]) < float(evidence["lower"])


def test_a_quiet_week_with_idle_nights_is_quiet() -> None:
    """Six idle hours a night make no alarm and forget nothing."""
    player = played(week())
    assert player.episodes.all == []
    drawn = player.drawn[SERIES]
    assert (drawn.minutes, drawn.idle) == (7 * DAY, 7 * 360)
    assert drawn.judged == 7 * DAY - 7 * 360 - 60


def preemption_storm(tmp_path: Path) -> Path:
    """Field case 34 B after a day of ordinary load: running 8 -> 7, KV cache full, 240 -> 55."""
    rng = random.Random(3)
    rows = [
        f"{START + 60 * n},{240 + rng.gauss(0, 8):.1f},14000,{rng.choice([6, 8, 9])},0.7"
        for n in range(DAY)
    ]
    kv = (0.912, 0.941, 0.969, 0.999)
    at = START + 60 * DAY
    rows += [f"{at + 60 * n},240,14000,8,{share}" for n, share in enumerate(kv)]
    rows += [f"{at + 60 * (4 + n)},55,3300,7,0.999" for n in range(10)]
    return csv(tmp_path, "time,rate,tokens,running,kv_cache_usage_ratio", *rows)


def test_a_preemption_storm_alarms(tmp_path: Path) -> None:
    """Field case 34 B: within three minutes of the fall, not while the cache only fills."""
    account = Account()
    player = Player(Settings(), account)
    player.play(CsvFile(preemption_storm(tmp_path), Table(), NOW).records(account))
    band = next(e for e in player.episodes.all if e.rule == "TokenRateOutOfBand")
    fall = START + 60 * (DAY + 4)
    assert 0 < band.fired - fall <= 180
    assert not [e for e in player.episodes.all if e.fired < fall]
    assert account.notes == ["columns not used: kv_cache_usage_ratio"]


def test_a_slow_five_percent_is_no_sudden_drop() -> None:
    """Field case 35 B: 68.55 to 64.97 tokens/s over eleven points stays quiet."""
    falling = [68.55, 67.43, 67.15, 66.88, 66.29, 65.74, 65.42, 65.23, 65.24, 65.23, 64.97]
    before = healthy(DAY, mean=68.6, sigma=0.4)
    assert played(minutes([*before, *falling])).episodes.all == []


def test_a_hole_is_not_watched() -> None:
    """It neither fires nor resolves anything: what fired before it still does after it."""
    slow = [20.0 + 0.01 * n for n in range(10)]
    before = list(minutes([*healthy(300), *slow]))
    after = minutes(slow, begin=before[-1].at + 5 * HOUR)
    player = played([*before, *after])
    [shifted] = [e for e in player.episodes.all if e.rule == "TokenRateShifted"]
    assert shifted.resolved is None


def test_disabled_rules_do_not_alarm() -> None:
    """A replay obeys the configuration."""
    slow = minutes([*healthy(300), *healthy(20, mean=15)])
    settings = Settings().model_copy(
        update={
            "alarms": Settings().alarms.model_copy(update={"disabled": ("TokenRateOutOfBand",)})
        }
    )
    assert rules(played(slow, settings)) == {"TokenRateShifted", "TokenRateDown"}
