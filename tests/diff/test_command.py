"""``model-probe diff`` as it is called: its words, its table, its JSON and its exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner, Result

from sidecar.cli import cli
from sidecar.commands import diff as command
from sidecar.diff import running, table
from sidecar.diff.asked import Asked, Period, Where
from sidecar.diff.findings import Verdict
from tests.diff.recorded import NOW, deploy, kept, slots
from tests.history.asked import api

RUNNER = CliRunner()
LAST_HOUR = ("--during", "-1h/now")
ONE, TWO = "10.0.0.1:8000", "10.0.0.2:8000"
HOUR = 3_600.0


def run(*arguments: object) -> Result:
    """`model-probe diff` with these arguments."""
    return RUNNER.invoke(cli, ["diff", *map(str, arguments)])


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command.time, "time", lambda: NOW)
    monkeypatch.delenv("MODELPROBE_ALARMS__DATABASE", raising=False)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hours of two replicas; the second one is a fifth slower."""
    return kept(tmp_path_factory.mktemp("made") / "a.db", slots(2))


def test_a_slow_canary_exits_with_1(database: Path) -> None:
    """Every signal is in the table, and it fits 100 columns."""
    result = run("--database", database, *LAST_HOUR, ONE, TWO)
    assert result.exit_code == 1, result.output
    assert "verdict: slower" in result.output
    for word in ("ttft", "itl", "duration", "rate", "failed", "KV reuse  not stored"):
        assert word in result.output
    assert max(map(len, result.output.splitlines())) <= 100


def test_a_period_beside_another(database: Path) -> None:
    """An operand may begin with a dash; one replica an hour apart is not slower."""
    result = run("--database", database, f"-2h/-1h@{ONE}", f"-1h/now@{ONE}", "--json")
    assert result.exit_code in (0, 3), result.output
    report = json.loads(result.output)
    assert report["verdict"] in ("same", "not_slower", "unknown")
    assert report["exit"] == result.exit_code
    assert report["a"]["minutes"] == 60
    [ttft] = [one for one in report["signals"] if one["signal"] == "ttft"]
    assert ttft["n"] == [960, 960]
    assert ttft["quantiles"][2]["why"].startswith("A needs 1,")
    assert report["kv_reuse"] is None


def test_unknown_exits_with_3_unless_allowed(tmp_path: Path) -> None:
    """Too little was recorded."""
    path = kept(tmp_path / "a.db", slots(0.5, {ONE: 1.0, TWO: 1.0}, each=4))
    arguments = ("--database", path, "--during", "-30m/now", ONE, TWO)
    assert run(*arguments).exit_code == 3
    assert run(*arguments, "--allow", "unknown").exit_code == 0
    assert run(*arguments, "--allow", "slower").exit_code == 2


def test_since_the_last_deploy(tmp_path: Path) -> None:
    """Alone it is compared with as long before it, the roll-out itself left out."""
    before = slots(2, {ONE: 1.0}, seed=1)[:12]
    after = slots(2, {ONE: 1.3}, seed=2)[13:]
    path = kept(tmp_path / "a.db", [*before, *after])
    deploy(path, NOW - HOUR, NOW - HOUR + 300)
    result = run("--database", path, f"deploy:last@{ONE}")
    assert result.exit_code == 1, result.output
    first, *_ = result.output.splitlines()
    assert first.startswith(f"A  before the deploy@{ONE}, upstream: 2026-05-28 18:50 to 2026-05-28")
    assert "55 min known" in first


def test_a_stored_run_is_compared_with(database: Path, tmp_path: Path) -> None:
    """As a CI job does: keep a good run, compare the next one with it."""
    good = tmp_path / "good.jsonl"
    saving = run("--database", database, "--save", good, f"-1h/now@{ONE}")
    assert saving.exit_code == 0, saving.output
    assert "60 min of -1h/now@10.0.0.1:8000" in saving.output
    slow = run("--database", database, good, f"-1h/now@{TWO}")
    assert slow.exit_code == 1, slow.output
    same = run(good, good, "--json")  # no database is needed
    assert same.exit_code in (0, 3)
    assert json.loads(same.output)["signals"][0]["quantiles"][0]["difference"]["value"] == 0


def test_periods_that_overlap_are_said(database: Path) -> None:
    """Half of one is the other."""
    result = run("--database", database, f"-2h/now@{ONE}", f"-1h/now@{ONE}")
    assert "the two overlap" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-1h/now"], "B is missing; only deploy:last knows its A"),
        (["-1h/now", "-1h/now", "-1h/now"], "3 operands"),
        (["yesterday", "today"], "'yesterday' is no period"),
        (["-2m/now", "-1h/now"], "shorter than the 5 min"),
        (["-9h/-8h", "-1h/now"], "nothing is stored of"),
        (["-1h/now@10.9.9.9:1", "-1h/now"], "servers there: 10.0.0.1:8000, 10.0.0.2:8000"),
        (["-1h/now@downstream", "-1h/now"], "no request of downstream ended"),
        (["deploy:last"], "knows no deploy that has ended; `model-probe mark add deploy`"),
        (["--save", "x.jsonl", "-1h/now", "-1h/now"], "--save keeps one operand"),
        (["--during", "-1h/now", "-1h/now", "a"], "is no server"),
    ],
)
def test_what_cannot_be_compared_exits_with_2(
    database: Path, arguments: list[str], said: str
) -> None:
    """One line on standard error."""
    result = run("--database", database, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_without_a_file(tmp_path: Path) -> None:
    """What is missing is named."""
    assert "--database is needed" in run("-1h/now", "-2h/-1h").stderr
    gone = run("--database", tmp_path / "none.db", "-1h/now", "-2h/-1h")
    assert gone.exit_code == 2
    assert "there is no such file" in gone.stderr


def test_hostile_names_do_not_steer_the_terminal(tmp_path: Path) -> None:
    """Neither in the table nor in an error."""
    odd = "\x1b[2J\x1b]0;x\x07" + "s" * 200
    path = kept(tmp_path / "a.db", slots(0.5, {odd: 1.0}, each=20))
    table = run("--database", path, "--during", "-30m/now", odd, odd)
    error = run("--database", path, "--during", "-30m/now", "\x1b[31mnone", odd)
    for text in (table.stdout, error.stderr):
        assert text
        assert "\x1b" not in text
        assert "\x07" not in text
    assert max(map(len, table.stdout.splitlines())) <= 100


def test_prometheus_that_does_not_answer_is_said(database: Path) -> None:
    """Latencies are known all the same."""
    period = Period(NOW - HOUR, NOW)
    options = running.Options(NOW, database)
    wheres = Where(server=ONE), Where(server=TWO)
    a, b = running.sides(*(Asked("x", period, where) for where in wheres), options)
    down = api(lambda _: httpx.Response(503))
    found = running.found(a, b, wheres, 0.1, down)
    assert found.verdict is Verdict.SLOWER
    assert found.reuse is not None
    assert "the source is down" in found.reuse[0].why
    assert "the source is down" in "\n".join(table.lines(a, b, found))
