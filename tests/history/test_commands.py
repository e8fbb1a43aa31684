"""The commands as they are called, with their words and exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner, Result

from sidecar.alarms.store import Store
from sidecar.commands import history
from tests.history.made import DAY, START, csv, healthy

RUNNER = CliRunner()


def run(*arguments: object) -> Result:
    """`model-probe` with these arguments."""
    cli = typer.Typer()
    history.register(cli)
    return RUNNER.invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A day of rates whose last half hour is slow."""
    rates = [*healthy(DAY), *healthy(30, mean=15)]
    rows = (f"{START + 60 * n},{rate:.3f},900,4,m" for n, rate in enumerate(rates))
    return csv(tmp_path, "time,rate,tokens,concurrency,model", *rows)


def test_calibrate_writes_configuration_to_standard_output(table: Path) -> None:
    """It can be redirected into a file as it is; what is for people goes elsewhere."""
    result = run("calibrate", "--from", f"csv:{table}", "--gpu", "H200")
    assert result.exit_code == 0
    [level] = yaml.safe_load(result.stdout)["rate"]["levels"]
    assert level["mean"] == pytest.approx(42.6, abs=0.5)
    assert "H200" in result.stderr


def test_calibrate_as_json_and_into_a_file(table: Path, tmp_path: Path) -> None:
    """Each row with its intervals."""
    out = tmp_path / "levels.json"
    assert run("calibrate", "--from", f"csv:{table}", "--json", "--output", out).exit_code == 0
    [row] = json.loads(out.read_text())
    assert row["lower"] == pytest.approx(row["mean"] - 2.5 * row["sigma"])
    assert row["mean_off"] > 0


def test_calibrate_refuses_too_few_minutes(tmp_path: Path) -> None:
    """One line says how many there are and what to do."""
    path = csv(tmp_path, "time,rate", *(f"{START + 60 * n},40" for n in range(23)))
    result = run("calibrate", "--from", f"csv:{path}")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "any model at 1 at once: 23" in result.stderr
    assert "60 are needed" in result.stderr


def test_replay_finds_the_alarm(table: Path, tmp_path: Path) -> None:
    """In the terminal, as a page and as JSON; --fail-on-alarm makes it an exit status."""
    page, out = tmp_path / "out.html", tmp_path / "out.json"
    result = run("replay", table, "--html", page, "--json", out)
    assert result.exit_code == 0
    assert "TokenRateOutOfBand" in result.stdout
    assert "TokenRateOutOfBand" in page.read_text()
    rules = {alarm["rule"] for alarm in json.loads(out.read_text())["alarms"]}
    assert "TokenRateOutOfBand" in rules
    assert run("replay", table, "--fail-on-alarm").exit_code == 1
    assert run("replay", table, "--until", "2025-06-16T12:00:00Z", "--fail-on-alarm").exit_code == 0


def test_replay_prints_json_alone(table: Path) -> None:
    """With `--json -` standard output is one object."""
    assert json.loads(run("replay", table, "--json", "-").stdout)["records"] == DAY + 30


def test_backfill_fills_the_file_once(table: Path, tmp_path: Path) -> None:
    """And says what it did, also the second time and while a sidecar runs."""
    path = tmp_path / "alarms.db"
    arguments = ("baseline", "backfill", "--from", f"csv:{table}", "--database", path)
    first, again = run(*arguments), run(*arguments)
    assert (first.exit_code, again.exit_code) == (0, 0)
    assert "there was none" in first.stdout
    assert "0 of" in again.stdout
    running = Store()
    running.open(path)
    held = run(*arguments)
    running.close()
    assert held.exit_code == 1
    assert "another sidecar" in held.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("replay",), 2, "--from is needed"),
        (("replay", "none.csv"), 1, "there is no such file"),
        (("replay", "http://host:9090"), 2, "prometheus:http://host:9090"),
        (("replay", "--from", "prometheus:"), 2, "needs a URL"),
        (("replay", "--from", "prometheus:http://u:pw@host"), 2, "credentials"),
        (("replay", "--from", "prometheus:http://127.0.0.1:1", "--since", "soon"), 2, "duration"),
        (("replay", "x", "--zone", "Mars"), 2, "no time zone"),
        (("replay", "x", "--column", "rate"), 2, "ONE=OTHER"),
        (("replay", "x", "--column", "speed=x"), 2, "one of time"),
        (("replay", "x", "--leg", "sideways"), 2, "downstream or upstream"),
        (("calibrate", "--from", "csv:x", "--source", "gpu"), 2, "engine or wire"),
        (("baseline", "backfill", "--from", "csv:x"), 2, "--database is needed"),
        (("replay", "x", "--config", "/none.yaml"), 2, "cannot be read"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: tuple[str, ...], status: int, words: str) -> None:
    """It names the option or the place; no traceback, and no password."""
    result = run(*arguments)
    assert result.exit_code == status, result.output
    assert words in result.stderr
    assert "pw" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_local_times_need_their_zone(tmp_path: Path) -> None:
    """Without one nothing is guessed, and the option is named."""
    path = csv(tmp_path, "time,rate", "2025-06-16 02:00:00,40", "2025-06-16 02:01:00,41")
    result = run("replay", path)
    assert result.exit_code == 1
    assert "--zone" in result.stderr
    assert run("replay", path, "--zone", "Europe/Berlin").exit_code == 0


def test_a_place_that_cannot_be_written_is_named(table: Path, tmp_path: Path) -> None:
    """One line, exit status 1."""
    result = run("replay", table, "--html", tmp_path / "none" / "x.html")
    assert result.exit_code == 1
    assert "No such file" in result.stderr
