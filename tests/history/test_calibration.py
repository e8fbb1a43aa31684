"""Calibrated tables: the specification's, what they leave out, and how well they are known."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest
import yaml

from sidecar.config import Settings, from_values
from sidecar.detect.minutes import Minute, Series
from sidecar.history import calibrated
from sidecar.history.calibration import Calibration
from sidecar.history.learned import Row
from sidecar.history.records import Account
from tests.history.made import DAY, SERIES, START, correlated, healthy, minutes

QWEN = Series("engine", "r0", "Qwen2-7B")
LLAMA = Series("engine", "r1", "Llama3-8B")


def learned(*streams: Iterable[Minute], source: str = "") -> Calibration:
    """A calibration after these minutes."""
    calibration = Calibration(Account())
    calibration.learn(sorted(chain(*streams), key=lambda minute: minute.at), source)
    return calibration


def rows(*streams: Iterable[Minute], source: str = "") -> list[Row]:
    return learned(*streams, source=source).rows("H200")


def test_the_table_of_the_specification() -> None:
    """Qwen2-7B 42.6 ± 3.8 gives a lower bound of 33.1, Llama3-8B 38.2 ± 4.1 one of 27.95."""
    week = 7 * DAY
    llama, qwen = rows(
        minutes(healthy(week, 1, 42.6, 3.8), QWEN),
        minutes(healthy(week, 2, 38.2, 4.1), LLAMA),
    )
    for row, mean, sigma, lower in ((qwen, 42.6, 3.8, 33.1), (llama, 38.2, 4.1, 27.95)):
        assert row.mean == pytest.approx(mean, abs=2 * row.mean_off)
        assert row.sigma == pytest.approx(sigma, abs=2 * row.sigma_off)
        assert row.lower == pytest.approx(lower, abs=0.4)
        assert row.lower == row.mean - 2.5 * row.sigma
        assert row.mean_off < 0.2
        assert (row.gpu, row.concurrency) == ("H200", 4)
        assert row.minutes + row.left_out == week


def test_each_concurrency_is_a_row_of_its_own() -> None:
    """121, 51 and 22 tokens/s a sequence are one healthy engine under three loads."""
    streams = [
        minutes(healthy(120, n, mean, mean / 12), QWEN, START + 1e4 * n, at_once)
        for n, (mean, at_once) in enumerate(((121, 1), (51, 8), (22, 32)))
    ]
    assert [(row.concurrency, round(row.mean, -1)) for row in rows(*streams)] == [
        (1, 120.0),
        (8, 50.0),
        (32, 20.0),
    ]


def test_wild_minutes_do_not_widen_the_band() -> None:
    """One minute in fifty at a fifth of the rate: σ stays what it is, as in the detector."""
    rates = [8.0 if n % 50 == 49 else rate for n, rate in enumerate(healthy(3 * DAY))]
    [row] = rows(minutes(rates))
    assert row.sigma == pytest.approx(3.8, rel=0.12)


def test_an_incident_is_left_out_and_said() -> None:
    """Six hours of a slowed engine in two days: not part of the table, and counted."""
    rates = [*healthy(DAY, 1), *healthy(360, 2, 25.0, 2.0), *healthy(DAY, 3)]
    [row] = rows(minutes(rates))
    assert row.mean == pytest.approx(42.6, abs=0.4)
    assert row.left_out > 330


def test_the_interval_allows_for_autocorrelation() -> None:
    """It holds the real mean nearly as often as it says, also where minutes go in waves; one that
    took them for independent would not.
    """
    held = naive = 0
    for seed in range(30):
        [row] = rows(minutes(correlated(400, 0.7, seed)))
        held += abs(row.mean - 40) <= row.mean_off
        naive += abs(row.mean - 40) <= 1.96 * row.sigma / row.minutes**0.5
    assert held >= 26
    assert naive <= 21


def test_replicas_are_put_together() -> None:
    """Their means differ: σ covers that too, since the configuration has one level for all."""
    [row] = rows(
        minutes(healthy(DAY, 1, 40, 2), QWEN),
        minutes(healthy(DAY, 2, 44, 2), Series("engine", "r1", "Qwen2-7B")),
    )
    assert (row.replicas, row.minutes) == (2, 2 * DAY)
    assert row.mean == pytest.approx(42, abs=0.2)
    assert row.sigma == pytest.approx(8**0.5, abs=0.2)


def test_the_engines_word_before_the_wires() -> None:
    """The configuration has one level for both; --source picks the other."""
    wire = Series("wire", "", "Qwen2-7B")
    streams = [list(minutes(healthy(90), QWEN)), list(minutes(healthy(90, mean=39), wire))]
    assert [row.source for row in rows(*streams)] == ["engine"]
    assert [row.source for row in rows(*streams, source="wire")] == ["wire"]


def test_too_few_minutes_make_no_row() -> None:
    """Of 59 minutes nothing is known well enough, and it is said of which there are how many."""
    calibration = learned(minutes(healthy(59)))
    assert calibration.rows() == []
    assert calibration.short() == [("Qwen2-7B", 4, 59)]


def test_idle_minutes_do_not_count() -> None:
    """They have no value."""
    calibration = learned(minutes([None] * 500))
    assert calibration.rows() == []
    assert calibration.idle == 500


HOSTILE = (
    "m: {x}\n- 1",
    "'\"",
    "null",
    "1e3",
    "#",
    "ü\u202e",
    "a" * 300,
    "${jndi:ldap://x}",
    "!x y",
)


@pytest.mark.parametrize("model", HOSTILE)
def test_what_it_writes_is_what_the_configuration_reads(tmp_path: Path, model: str) -> None:
    """The YAML is loaded by sidecar.config as it is, whatever the model is called."""
    found = rows(minutes(healthy(100), Series("engine", "", model)))
    text = calibrated.config(found, "a\nb: c", START, START + 6_000)
    (tmp_path / "levels.yaml").write_text(text, encoding="utf-8")
    from sidecar.config import load

    [level] = load(tmp_path / "levels.yaml").rate.levels
    assert (level.model, level.concurrency) == (model, 4)
    assert level.mean == pytest.approx(found[0].mean, abs=0.001)
    assert level.sigma == pytest.approx(found[0].sigma, abs=0.001)


def test_the_configuration_changes_nothing_about_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is made from nothing, not from the table before it."""
    levels = '[{"mean": 99, "sigma": 1}]'
    monkeypatch.setenv("MODELPROBE_RATE", f'{{"levels": {levels}}}')
    assert Settings().rate.levels
    [row] = rows(minutes(healthy(500)))
    assert row.mean == pytest.approx(42.6, abs=1)


def test_a_sidecar_with_the_table_judges_its_first_minute() -> None:
    """That is what it is for."""
    from tests.history.made import played

    [row] = rows(minutes(healthy(500)))
    values = yaml.safe_load(calibrated.config([row], "x", START, START))
    settings = from_values("calibrated", values)
    player = played(minutes([*healthy(2), 20, 20, 20]), settings)
    assert {e.rule for e in player.episodes.all} >= {"TokenRateOutOfBand"}
    assert player.drawn[SERIES].judged == 5
