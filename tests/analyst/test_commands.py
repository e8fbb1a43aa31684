"""`model-probe baseline show, export, import, reset, mark-deploy`, as they are called."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from sidecar.alarms import marks
from sidecar.alarms.store import Store
from sidecar.analyst import reading, rows
from sidecar.commands import baseline
from sidecar.evaluation import Series
from sidecar.verdicts import MarkKind
from tests.alarms.files import made
from tests.analyst.made import DAY, NOON, A, B, Line, record, total

RUNNER = CliRunner()
NOW = NOON + DAY + 5_400
HOSTILE = Series("ttft", "downstream", "\x1b[31mevil\n\u202e")


def run(*arguments: object, answer: str | None = None) -> Result:
    """`model-probe baseline` with these arguments."""
    cli = typer.Typer()
    baseline.register(cli)
    return RUNNER.invoke(cli, [str(argument) for argument in arguments], input=answer)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with two hours of yesterday; the time is that of the day after."""
    monkeypatch.setattr("sidecar.commands.baseline.time.time", lambda: NOW)
    line = Line(tmp_path / "alarms.db")
    both = {A: record(*[0.001 * k for k in range(1, 101)]), B: record(0.2), HOSTILE: record(0.3)}
    line.put(26, records=both)
    line.slots.close()
    return tmp_path / "alarms.db"


def test_show_has_a_table_for_people(path: Path) -> None:
    """Series, hours, days; n and quantiles with their bounds, or why a day does not count; what
    names hold does not reach the terminal.
    """
    result = run("show", "--database", path)
    assert result.exit_code == 0, result.output
    assert "ttft/downstream/a:8000" in result.stdout
    assert "2 hours, 1 of 7 days" in result.stdout
    assert "2026-06-15" in result.stdout
    assert "1,200" in result.stdout
    assert reading.NOT_RECORDED in result.stdout
    assert not {"\x1b", "\udcff", "\u202e"} & set(result.stdout)


def test_show_of_some_series_as_json(path: Path) -> None:
    """One object; patterns are as those of a shell."""
    result = run("show", "--database", path, "--series", "ttft/*/a:*", "--json")
    [series] = json.loads(result.stdout)["series"]
    assert (series["server"], series["hours"], series["kept"]) == ("a:8000", 2, 1)
    day = series["days"][0]
    assert (day["date"], day["n"], day["share"], day["dropped"]) == ("2026-06-15", 1200, 1, "")
    assert day["p50"]["lower"] < 0.05 < day["p50"]["upper"]
    assert day["p99"]["lower"] <= day["p99"]["value"] <= day["p99"]["upper"]
    assert series["days"][1]["p50"] is None


def test_export_and_import_carry_everything(path: Path, tmp_path: Path) -> None:
    """To a new file, twice: the second time all is known."""
    out, other = tmp_path / "base.jsonl", tmp_path / "other.db"
    assert run("export", out, "--database", path).exit_code == 0
    assert [json.loads(line) for line in out.read_text().splitlines()][-1] == {"lines": 8}
    first = run("import", out, "--database", other)
    assert (first.exit_code, first.stdout) == (0, "6 records of 3 series added\n")
    again = run("import", out, "--database", other)
    assert again.stdout == "0 records of 0 series added; 6 records known already\n"
    for one in (A, B, HOSTILE):
        was, now = (Line(each, at=NOW).slots.days(one, NOW, 1) for each in (path, other))
        assert now == was
    printed = run("export", "-", "--database", other).stdout.splitlines()
    assert sorted(printed[1:]) == sorted(out.read_text().splitlines()[1:])


def test_they_work_while_a_sidecar_runs(path: Path, tmp_path: Path) -> None:
    """And the analyst of that sidecar heeds what they did before it writes again."""
    out = tmp_path / "base.jsonl"
    store, line = Store(), Line(path, at=NOW)
    store.open(path)
    assert run("export", out, "--database", path).exit_code == 0
    assert run("show", "--database", path).exit_code == 0
    assert run("reset", "--database", path, "--yes").exit_code == 0
    line.put(1)
    assert line.slots.hours(A) == 0
    assert run("import", out, "--database", path).exit_code == 0
    line.put(1)
    assert line.slots.hours(A) == 2
    assert total(line.slots.days(A, NOW, 1)[0]) == pytest.approx(1_200)
    store.close()


def test_reset_keeps_a_copy_and_asks(path: Path) -> None:
    """Only the series that are named; what is left is known not to be idle."""
    refused = run("reset", "--database", path, "--series", "ttft/*", answer="n\n")
    assert refused.exit_code == 1
    assert "\x1b" not in refused.output
    assert not list(path.parent.glob("*.jsonl"))
    done = run("reset", "--database", path, "--series", "*/a:8000", answer="y\n")
    assert done.exit_code == 0
    [aside] = path.parent.glob("alarms.db.baseline-*.jsonl")
    assert str(aside) in done.stdout
    assert aside.stat().st_mode & 0o777 == 0o600
    line = Line(path, at=NOW)
    [mine], [other] = (line.slots.days(one, NOW, 1) for one in (A, B))
    assert (mine.dropped, mine.share) == (reading.ALARMED, 0.0)
    assert other.share == 1.0
    line.slots.close()
    assert run("import", aside, "--database", path).exit_code == 0
    assert Line(path, at=NOW).slots.days(A, NOW, 1)[0].share == 1.0


def test_a_damaged_record_is_left_out_of_an_export_and_counted(path: Path, tmp_path: Path) -> None:
    """The rest is written."""
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE drift_hours SET record = x'00' WHERE key & 1048575 = 1")
        other.commit()
    result = run("export", tmp_path / "out", "--database", path)
    assert "2 damaged records left out" in result.stderr
    assert run("import", tmp_path / "out", "--database", tmp_path / "new.db").exit_code == 0


def test_what_an_earlier_version_recorded_is_left_out_of_an_export(
    path: Path, tmp_path: Path
) -> None:
    """And counted apart from what is damaged."""
    with closing(sqlite3.connect(path)) as other:
        found = other.execute("SELECT record, key FROM drift_hours WHERE key & 1048575 = 1")
        for data, one in found.fetchall():
            outdated = zlib.compress(b"\1" + zlib.decompress(data)[1:])
            other.execute("UPDATE drift_hours SET record = ? WHERE key = ?", (outdated, one))
        other.commit()
    result = run("export", tmp_path / "out", "--database", path)
    assert result.stderr.rstrip().endswith("written; 2 records of an earlier version left out")
    assert run("import", tmp_path / "out", "--database", tmp_path / "new.db").exit_code == 0


def edited(line: int, change: Callable[[dict[str, object]], object]) -> Callable[[list[str]], None]:
    def edit(lines: list[str]) -> None:
        whole = json.loads(lines[line])
        change(whole)
        lines[line] = json.dumps(whole)

    return edit


def put(**values: object) -> Callable[[dict[str, object]], object]:
    return lambda whole: whole.update(values)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (edited(0, put(kind="x")), "line 1: it is no export of baselines"),
        (edited(0, put(version=2)), "line 1: version 2, and this one reads 1"),
        (edited(0, put(gamma=1.02)), "line 1: gamma is 1.02, and here 1.01"),
        (edited(0, put(strata=8)), "line 1: strata is 8, and here 224"),
        (edited(0, put(gamma="\x1b[31m")), "line 1: gamma is '\\x1b[31m'"),
        (edited(1, put(hour=7)), "line 2: hour 7 is no multiple of 300"),
        (edited(1, put(hour=-300)), "line 2: hour has to be a whole number"),
        (edited(1, put(watched=True)), "line 2: watched has to be"),
        (edited(2, put(series=["a"])), "line 3: series has to be three words"),
        (edited(2, put(used=4096)), "line 3: used has to be"),
        (edited(2, put(frozen=1)), "line 3: used and frozen name the same"),
        (edited(2, put(record="%")), "line 3: record is no base64"),
        (edited(2, put(record="AAAA")), "line 3: its record is damaged"),
        (edited(2, put(n=1)), "line 3: n is not what the record holds, 1200"),
        (lambda lines: lines.insert(3, lines[2]), "line 4: a second record of this hour"),
        (lambda lines: lines.pop(1), "line 2: what was watched in this hour has to come before"),
        (lambda lines: lines.pop(), "cut short"),
        (lambda lines: lines.pop(-2), "cut short"),
        (lambda lines: lines.append(lines[2]), "line 11: it follows the last line"),
        (lambda lines: lines.insert(2, "{"), "line 3: it is no JSON"),
        (lambda lines: lines.insert(2, "[]"), "line 3: it is no JSON object"),
        (lambda lines: lines.insert(2, "x" * 300_000), "line 3: it is too long"),
        (lambda lines: lines.insert(0, "[" * 50_000), "line 1: it is no JSON"),
        (lambda lines: lines.clear(), "cut short"),
    ],
)
def test_import_checks_all_before_it_writes_anything(
    path: Path, tmp_path: Path, edit: Callable[[list[str]], None], words: str
) -> None:
    """The line is named, and what to do."""
    out, other = tmp_path / "base.jsonl", tmp_path / "other.db"
    run("export", out, "--database", path)
    lines = out.read_text().splitlines()
    edit(lines)
    out.write_text("".join(line + "\n" for line in lines))
    result = run("import", out, "--database", other)
    assert result.exit_code == 1
    assert words in result.stderr
    assert "nothing was written" in result.stderr
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.output
    assert not other.exists()


def test_import_leaves_out_what_is_too_old(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be forgotten at once; how much that was is said."""
    out = tmp_path / "base.jsonl"
    run("export", out, "--database", path)
    monkeypatch.setattr("sidecar.commands.baseline.time.time", lambda: NOW + 30 * DAY)
    result = run("import", out, "--database", tmp_path / "other.db")
    assert "0 records of 0 series added; 6 records older than is kept" in result.stdout


def test_mark_deploy_is_a_mark(path: Path) -> None:
    """As `mark add deploy` makes it."""
    result = run("mark-deploy", "--author", "ci", "--database", path, "--text", "v2")
    assert result.exit_code == 0, result.output
    [mark] = marks.listed(path)
    assert (mark.kind, mark.author, mark.text) == (MarkKind.DEPLOY, "ci", "v2")
    assert run("mark-deploy", "--author", "\x1b", "--database", path).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("show",), 2, "--database is needed"),
        (("show", "--database", "none.db"), 1, "there is no such file"),
        (("export", "/nowhere/x", "--database", "OURS"), 1, "/nowhere/x.part: No such file"),
        (("export", "out", "--database", "none.db"), 1, "there is no such file"),
        (("import", "none", "--database", "OURS"), 1, "none: No such file"),
        (("import", "OURS", "--database", "OURS"), 1, "line 1"),
        (("reset", "--database", "none.db", "--yes"), 1, "there is no such file"),
        (("show", "--series", "x\x1b", "--database", "OURS"), 1, "--series x?: there is none like"),
        (("reset", "--series", "x", "--database", "OURS"), 1, "there are itl/upstream/b:8000"),
        (("show", "--database", "FOREIGN"), 1, "no SQLite database"),
        (("show", "--database", "EMPTY"), 1, "no sidecar of this version has recorded"),
        (("show", "--database", "ALARMS"), 1, "no latencies have been recorded yet"),
        (("show", "--config", "/none.yaml"), 2, "cannot be read"),
    ],
)
def test_what_is_wrong_is_one_line(
    path: Path, arguments: tuple[str, ...], status: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the option or the place; no traceback."""
    monkeypatch.chdir(path.parent)
    (path.parent / "foreign").write_bytes(b"x" * 5_000)
    (path.parent / "empty").touch()
    made(path.parent / "alarms")
    places = {"OURS": "alarms.db", "FOREIGN": "foreign", "EMPTY": "empty", "ALARMS": "alarms"}
    result = run(*(places.get(word, word) for word in arguments))
    assert result.exit_code == status, result.output
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.output


def test_a_name_that_cannot_be_written_as_utf8_is_refused(path: Path, tmp_path: Path) -> None:
    """The analyst would end at each of its reports, for as long as the file has that series."""
    out = tmp_path / "base.jsonl"
    run("export", out, "--database", path)
    out.write_text(out.read_text().replace("a:8000", "\\udcff"))
    assert "series has to be three words" in run("import", out, "--database", path).output
    assert rows.series_of('["ttft", "downstream", "\\udcff"]') is None
