"""`model-probe baseline` with what engines count themselves, beside what the wire saw."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sidecar.alarms import schema
from sidecar.analyst import bucket_rows, reading
from sidecar.analyst.bucket_pages import Row, pack
from sidecar.analyst.calendar import ended
from sidecar.bucketed import Bucketed
from sidecar.drift.bucketed_rule import Hours
from sidecar.evaluation import ENGINE, Series
from sidecar.units import duration
from tests.analyst.made import DAY, A, Line, slot
from tests.analyst.test_commands import NOW, run

R0, R1 = (Series("ttft", ENGINE, name) for name in ("r0/m", "r1\x1b[31m"))
HELD = Bucketed((0.1, 0.5), (30, 8, 2), 9.0)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with two hours of yesterday, of the wire and of two engines."""
    monkeypatch.setattr("sidecar.commands.baseline.time.time", lambda: NOW)
    line = Line(tmp_path / "alarms.db", at=NOW - DAY - 7_800)
    for _ in range(26):
        line.at += 300.0
        line.slots.put(replace(slot(line.at - 300.0), buckets={R0: HELD, R1: HELD}))
    line.slots.close()
    return tmp_path / "alarms.db"


def known(path: Path, series: Series) -> Hours:
    """What a sidecar that starts now knows of the hour before."""
    line = Line(path, at=NOW)
    days, left = line.slots.buckets.same(series, ended(NOW))
    line.slots.close()
    return Hours(days=days, left=left)


def test_show_has_the_bounds_that_a_quantile_lies_between(path: Path) -> None:
    """And nothing in their middle, which would be taken for a measurement."""
    text = run("show", "--database", path).stdout
    assert "ttft/engine/r0/m" in text
    assert "ttft/downstream/a:8000" in text
    assert f"above {duration(0.5)}" in text
    assert "\x1b" not in text
    result = run("show", "--database", path, "--series", "*/engine/r0/*", "--json")
    [one] = json.loads(result.stdout)["series"]
    day = one["days"][0]
    assert (one["kept"], day["n"], day["share"], day["dropped"]) == (1, 480, 1, "")
    assert day["p50"] == {"lower": 0.0, "upper": 0.1}
    assert day["p99"] == {"lower": 0.5, "upper": None}
    assert one["days"][1]["dropped"] == reading.NOT_RECORDED


def test_export_and_import_carry_them(path: Path, tmp_path: Path) -> None:
    """To a new file, twice: the second time all is known."""
    out, other = tmp_path / "base.jsonl", tmp_path / "other.db"
    assert run("export", out, "--database", path, "--series", "*/engine/*").exit_code == 0
    first = run("import", out, "--database", other)
    assert (first.exit_code, first.stdout) == (0, "52 records of 2 series added\n")
    assert known(other, R0) == known(path, R0)
    again = run("import", out, "--database", other)
    assert again.stdout == "0 records of 0 series added; 52 records known already\n"


def test_reset_leaves_them_out_and_import_undoes_it(path: Path) -> None:
    """Only those that are named; the copy has them."""
    done = run("reset", "--database", path, "--series", "*/r0/m", "--yes")
    assert (done.exit_code, done.stdout[:10]) == (0, "26 records"), done.output
    assert known(path, R0).days == {}
    assert {why for _, why in known(path, R0).left} == {reading.ALARMED}
    assert len(known(path, R1).days) == 1
    [aside] = path.parent.glob("alarms.db.baseline-*.jsonl")
    assert run("import", aside, "--database", path).exit_code == 0
    assert len(known(path, R0).days) == 1


def test_more_series_than_a_line_holds(path: Path, tmp_path: Path) -> None:
    """No line is longer than what is read again."""
    many = {Series("ttft", ENGINE, f"r{i}/{'m' * 60}"): Row(False, HELD) for i in range(450)}
    connection = schema.connect(path)
    connection.execute("UPDATE drift_buckets SET page = ?", (pack(many),))
    connection.close()
    out, other = tmp_path / "base.jsonl", tmp_path / "other.db"
    assert run("export", out, "--database", path, "--series", "*/engine/*").exit_code == 0
    assert run("import", out, "--database", other).exit_code == 0
    connection = schema.connect(other)
    assert bucket_rows.series(connection) == many.keys()
    connection.close()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("slot", 1_000_000_001, "no multiple"),
        ("slot", "x", "whole number"),
        ("n", 7, "not what its page holds"),
        ("page", "AAAA", "damaged"),
        ("page", "?", "damaged"),
    ],
)
def test_a_wrong_line_is_refused_before_anything_is_written(
    path: Path, tmp_path: Path, name: str, value: object, said: str
) -> None:
    """With its number."""
    out, other = tmp_path / "base.jsonl", tmp_path / "other.db"
    run("export", out, "--database", path, "--series", "*/engine/*")
    lines = out.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if '"page"' in line)
    lines[at] = json.dumps({**json.loads(lines[at]), name: value})
    out.write_text("\n".join(lines) + "\n")
    result = run("import", out, "--database", other)
    assert result.exit_code == 1
    assert f"line {at + 1}" in result.output
    assert said in result.output
    assert not other.exists()


def test_a_damaged_page_hinders_nobody(path: Path, tmp_path: Path) -> None:
    """The rest is shown, written and reset."""
    connection = schema.connect(path)
    connection.execute("UPDATE drift_buckets SET page = x'00' WHERE slot % 2 = 0")
    connection.close()
    assert run("show", "--database", path).exit_code == 0
    out = tmp_path / "base.jsonl"
    assert run("export", out, "--database", path).exit_code == 0
    assert sum('"page"' in line for line in out.read_text().splitlines()) == 13
    assert run("reset", "--database", path, "--yes").exit_code == 0
    assert known(path, R0).days == {}
    assert A in Line(path, at=NOW).slots.series()
