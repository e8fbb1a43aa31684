"""`model-probe mark`: what it refuses, and that nothing in a mark steers the terminal."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sidecar.alarms import places, schema
from sidecar.commands.mark import mark


def run(database: Path, *arguments: str) -> Result:
    """The command with this file of alarms."""
    return CliRunner().invoke(mark, [*arguments, "--database", str(database)])


def made(database: Path) -> None:
    """The file as a sidecar makes it."""
    places.make(database)
    with closing(schema.connect(database)) as connection:
        schema.prepare(connection, database)


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """A mark where no sidecar reads it would be lost without a word, and a list of it a lie."""
    for words in (["add", "chaos", "--author", "ana"], ["list"]):
        found = run(tmp_path / "a.db", *words)
        assert found.exit_code == 2
        assert "there is no" in found.stderr
    assert not (tmp_path / "a.db").exists()


def test_no_marks_are_said(tmp_path: Path) -> None:
    """Silence would look like a failure."""
    made(tmp_path / "a.db")
    assert run(tmp_path / "a.db", "list").output == "no marks\n"


@pytest.mark.parametrize("minutes", ["-5", "0", "nan", "inf", "1e300", "1441"])
def test_a_length_that_makes_no_sense(tmp_path: Path, minutes: str) -> None:
    """One line that names the option as it is called, and no mark."""
    found = run(tmp_path / "a.db", "add", "chaos", "--author", "ana", f"--minutes={minutes}")
    assert found.exit_code == 2
    assert found.stderr.startswith("model-probe: mark: minutes: more than 0 and at most 1440, not ")
    assert not (tmp_path / "a.db").exists()


@pytest.mark.parametrize(
    "start",
    ["\x1b[2J", "yesterday", "0001-01-01T00:00:00+23:59", "1969-12-31T23:59:59Z", "9" * 999],
)
def test_a_beginning_that_makes_no_sense(tmp_path: Path, start: str) -> None:
    """One line with an example, in which what was given is quoted and cut."""
    found = run(tmp_path / "a.db", "add", "chaos", "--author", "ana", "--start", start)
    assert found.exit_code == 2
    assert found.stderr.startswith("model-probe: mark: start: a time such as 2026-")
    assert "\x1b" not in found.stderr
    assert len(found.stderr) < 150


@pytest.mark.parametrize("author", ["", "a\x1b[31m", "a\nb", "\udcff", "x" * 101])
def test_an_author_that_makes_no_sense(tmp_path: Path, author: str) -> None:
    """One line of printable characters is needed; what was given is not repeated."""
    found = run(tmp_path / "a.db", "add", "chaos", "--author", author)
    assert found.exit_code == 2
    assert found.stderr.startswith("model-probe: mark: author: ")
    assert "\x1b" not in found.stderr


def test_what_another_program_wrote_does_not_steer_the_terminal(tmp_path: Path) -> None:
    """Escapes and line ends in the file are shown as what cannot be shown; so are absurd times."""
    database = tmp_path / "a.db"
    made(database)
    assert run(database, "add", "chaos", "--author", "ana").exit_code == 0
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "INSERT INTO marks (kind, author, starts, ends, text) VALUES (?, ?, ?, ?, ?)",
            ("deploy", "eve\x1b[31m\nchaos by ana", 1.0, 1e300, "\x1b]0;title\x07\u202e"),
        )
        connection.commit()
    found = run(database, "list")
    assert found.exit_code == 0
    assert found.stdout.isascii() is False
    lines = found.stdout.splitlines()
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)
    assert lines[0].startswith(
        "deploy by eve\ufffd[31m\ufffdchaos by ana, 1970-01-01 00:00:01Z to no time"
    )
