"""A stored run comes back as it was, and no other file is taken for one."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.config import ConfigError
from sidecar.diff import saved, stored
from sidecar.diff.asked import Period
from sidecar.diff.sides import Kept, Piece
from sidecar.evaluation import Series
from sidecar.record import Record
from tests.diff.recorded import NOW, kept, slots


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Half an hour of two servers."""
    path = kept(tmp_path_factory.mktemp("made") / "a.db", slots(0.5, each=4))
    return stored.read(path, Period(NOW - 1_800, NOW))


def test_it_comes_back_as_it_was(run: Kept, tmp_path: Path) -> None:
    """Every record of every piece, but for what float32 rounds off the squares."""
    path = tmp_path / "run.jsonl"
    assert saved.save(path, run) == path.stat().st_size
    again = saved.load(path)
    assert (again.start, again.end, again.notes) == (run.start, run.end, run.notes)
    for one, other in zip(run.pieces, again.pieces, strict=True):
        assert (one.start, one.slots, one.alarmed) == (other.start, other.slots, other.alarmed)
        assert one.records.keys() == other.records.keys()
        for series, record in one.records.items():
            assert other.records[series].hist == record.hist
            assert other.records[series].strata == record.strata
            assert list(other.records[series].squares) == pytest.approx(list(record.squares))


def test_hostile_names_stay_in_their_line(tmp_path: Path) -> None:
    """JSON in ASCII, whatever a server is called."""
    odd = Series("ttft", "upstream", 'a\n"\x1b[31m\ud800é')
    path = tmp_path / "run.jsonl"
    saved.save(path, Kept(0.0, 300.0, (Piece(0, 1, {odd: Record()}, {odd: 3}),)))
    assert len(path.read_text(encoding="ascii").splitlines()) == 4
    [piece] = saved.load(path).pieces
    assert piece.alarmed == {odd: 3}


def test_another_file_is_not_overwritten(run: Kept, tmp_path: Path) -> None:
    """A stored run is; what is none stays as it is."""
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(ConfigError, match="is no stored run; name another"):
        saved.save(path, run)
    assert path.read_text() == "mine"
    good = tmp_path / "run.jsonl"
    saved.save(good, run)
    saved.save(good, run)
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def _later(rows: list[str]) -> list[str]:
    return [json.dumps(json.loads(rows[0]) | {"version": 2}), *rows[1:]]


def _far(rows: list[str]) -> list[str]:
    return [json.dumps(json.loads(rows[0]) | {"end": 1e300}), *rows[1:]]


def _other_record(rows: list[str]) -> list[str]:
    row = json.loads(rows[2])
    row["record"] = b64encode(b64decode(row["record"])[:-4] + bytes(4)).decode("ascii")
    return [*rows[:2], json.dumps(row), *rows[3:]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows[:-1], "in the middle"),
        (lambda rows: [*rows[:3], *rows[4:]], "in the middle"),
        (_later, "line 1: no stored run: version 2; this one reads 1"),
        (_far, "line 1: no stored run: its time is none"),
        (_other_record, "line 3: no stored run: checksum"),
        (lambda rows: ["[]", *rows], "line 1"),
        (lambda rows: ["{}", *rows], "diff --save FILE PERIOD makes one"),
        (lambda rows: [rows[0], rows[2]], "line 2"),
        (lambda rows: ["x" * 100_000, *rows], "line 1"),
        (lambda rows: ["é", *rows], "not ASCII"),
        (lambda rows: [], "in the middle"),
    ],
)
def test_what_is_no_run(
    run: Kept, tmp_path: Path, change: Callable[[list[str]], list[str]], said: str
) -> None:
    """The line is named, and what is wrong with it."""
    path = tmp_path / "run.jsonl"
    saved.save(path, run)
    rows = change(path.read_text().splitlines())
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        saved.load(path)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_noise_is_refused_with_one_error(data: st.DataObject, run: Kept, tmp_path: Path) -> None:
    """Whatever bytes of a run are changed: ConfigError or a run, and nothing else."""
    path = tmp_path / "run.jsonl"  # one folder for all examples: each writes it anew
    path.unlink(missing_ok=True)
    saved.save(path, run)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 127))
    path.write_bytes(bytes(content))
    try:
        saved.load(path)
    except ConfigError as error:
        assert str(path) in str(error)
