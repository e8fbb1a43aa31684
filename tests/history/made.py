"""Histories that are made up: minutes of rates, files of them, and what plays them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from sidecar.config import Settings
from sidecar.detect.minutes import Minute, Series
from sidecar.history.csv_file import CsvFile, Table
from sidecar.history.player import Player
from sidecar.history.records import Account, Record

START = 1_750_032_000.0  # 2025-06-16 00:00 UTC, a Monday
NOW = START + 60 * 86_400
SERIES = Series("engine", "r0", "Qwen2-7B")
DAY = 1_440


def minutes(
    rates: Iterable[float | None],
    series: Series = SERIES,
    begin: float = START,
    concurrency: int = 4,
    tokens: float = 1_000.0,
) -> Iterator[Minute]:
    """One minute a rate, each stamped at its end."""
    for number, rate in enumerate(rates, 1):
        count = tokens if rate is not None else 0.0
        yield Minute(series, begin + 60 * number, rate, count, concurrency)


def healthy(count: int, seed: int = 1, mean: float = 42.6, sigma: float = 3.8) -> list[float]:
    """Independent normal rates."""
    rng = random.Random(seed)
    return [rng.gauss(mean, sigma) for _ in range(count)]


def correlated(
    count: int, rho: float, seed: int, mean: float = 40.0, sigma: float = 3.0
) -> list[float]:
    """An AR(1) series."""
    rng = random.Random(seed)
    state = rng.gauss(0, sigma)
    found = []
    for _ in range(count):
        found.append(mean + state)
        state = rho * state + rng.gauss(0, sigma * (1 - rho**2) ** 0.5)
    return found


def played(records: Iterable[Record], settings: Settings | None = None) -> Player:
    """A player after these records."""
    player = Player(settings or Settings(), Account())
    player.play(records)
    return player


def iso(at: float) -> str:
    """A time with its zone."""
    return datetime.fromtimestamp(at, UTC).isoformat()


def csv(tmp_path: Path, *rows: str, name: str = "history.csv") -> Path:
    """A file of these rows."""
    path = tmp_path / name
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def read(path: Path, table: Table | None = None, now: float = NOW) -> tuple[list[Record], Account]:
    """All records of a csv file, and its account."""
    account = Account()
    return list(CsvFile(path, table or Table(), now).records(account)), account
