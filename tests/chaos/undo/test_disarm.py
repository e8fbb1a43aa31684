"""The interposer's page says that it is not armed."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.undo import heal
from chaos.undo.disarm import Disarm
from chaos.undo.undo import World
from chaos.vocabulary import Ending


@pytest.mark.parametrize(
    ("armed", "ending"),
    [
        ([True, False], Ending.HEALED),
        ([False], Ending.MOOT),
        ([True, True], Ending.FAILED),  # armed again by somebody else
    ],
)
def test_answer(tmp_path: Path, armed: list[bool], ending: Ending) -> None:
    """The page itself tells whether it was armed, and is asked again after it was disarmed."""
    (tmp_path / "page").touch()
    answers = iter(armed)
    world = World(disarm=lambda _: next(answers))
    assert heal(Disarm(tmp_path / "page"), world).ending is ending
    assert list(answers) == []


def test_gone(tmp_path: Path) -> None:
    """A page that is gone armed nobody who comes later."""
    for path in (tmp_path / "none", Path(__file__) / "none"):
        assert heal(Disarm(path), World(disarm=_never)).ending is Ending.MOOT


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_no_page(tmp_path: Path, kind: str) -> None:
    """What is no plain file is not written to."""
    path = tmp_path / kind
    path.symlink_to(__file__) if kind == "link" else path.mkdir()
    healing = heal(Disarm(path), World(disarm=_never))
    assert healing.ending is Ending.FAILED
    assert "no regular file" in healing.text


def _never(path: Path) -> bool:
    raise AssertionError(path)
