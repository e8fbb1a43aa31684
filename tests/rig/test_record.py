"""The recorder of fixtures."""

import socket
from pathlib import Path

import pytest

from rig import record
from rig.apart import program
from rig.gateway import Absent
from rig.part import ROOT

Fixtures = record.Fixture


def test_a_page_that_names_this_machine_is_not_kept() -> None:
    """Its host name, the project's folder and the home of who calls have no place in a fixture."""
    for trace in (socket.gethostname(), str(ROOT), str(Path.home())):
        with pytest.raises(ValueError, match="names"):
            record.neutral(f'a{{b="{trace}"}} 1\n')
    assert record.neutral('a{b="127.0.0.1:8080"} 1\n')


def test_what_is_not_to_be_had_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are recorded, the reason is printed, and the exit status is 1."""

    def absent() -> list[Fixtures]:
        raise Absent("nothing is not installed")

    parts = {"nothing": absent, "something": lambda: [("something-idle", "a 1\n")]}
    monkeypatch.setattr(record, "PARTS", parts)
    monkeypatch.setattr("sys.argv", ["record", "--folder", str(tmp_path)])
    assert record.main() == 1
    assert [path.name for path in tmp_path.iterdir()] == ["something-idle.prom"]
    assert "nothing left out: nothing is not installed" in capsys.readouterr().err


def test_a_missing_environment_says_how_to_get_it() -> None:
    """The reason names the command, which a skipped test prints."""
    with pytest.raises(Absent, match=r"\./run rig nowhere installs it"):
        program("nowhere", "python")
