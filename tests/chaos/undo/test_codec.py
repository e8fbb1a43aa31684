"""An undo survives as JSON, and nothing is read that was not written."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import pytest

from chaos.fields import Json
from chaos.processes import Process
from chaos.undo import KINDS, Undo, from_json, heal, to_json
from chaos.undo.disarm import Disarm
from chaos.undo.end import End
from chaos.undo.limits import Limits
from chaos.undo.restart import Restart
from chaos.undo.resume import Resume
from chaos.undo.several import Several
from chaos.undo.thaw import Thaw
from chaos.undo.undo import World
from chaos.vocabulary import Ending, Healing

PROCESS = Process(7, 11, "boot", 13)
FLAT: list[Undo] = [
    Disarm(Path("/run/page")),
    End("0123456789abcdef", 1.5, 3),
    Limits("GPU-1", "/sys/fs/cgroup/x", 0, 2**64 - 1),
    Restart(PROCESS, 2.0),
    Resume((PROCESS, Process(8, 12, "boot", 13))),
    Resume(()),
    Thaw(Path("/sys/fs/cgroup/x"), 99),
]
EACH: list[Undo] = [*FLAT, Several(tuple(FLAT))]


@pytest.mark.parametrize("undo", EACH, ids=lambda undo: undo.kind)
def test_round_trip(undo: Undo) -> None:
    """What was written is read."""
    assert from_json(json.loads(json.dumps(to_json(undo)))) == undo


def test_table() -> None:
    """Each kind is where the table says, under its own name, and is among those tested here."""
    for kind, place in KINDS.items():
        module, _, name = place.partition(":")
        assert getattr(import_module(module), name).kind == kind
    assert {undo.kind for undo in EACH} == set(KINDS)


@pytest.mark.parametrize("undo", EACH, ids=lambda undo: undo.kind)
def test_unknown_key(undo: Undo) -> None:
    """A key that nobody knows is refused by name."""
    with pytest.raises(ValueError, match="'surprise'"):
        from_json({**to_json(undo), "surprise": 1})


@pytest.mark.parametrize("undo", EACH, ids=lambda undo: undo.kind)
def test_missing_key(undo: Undo) -> None:
    """A key that is missing is named."""
    for name in to_json(undo):
        with pytest.raises(ValueError, match=f"'{name}' is missing"):
            from_json({key: value for key, value in to_json(undo).items() if key != name})


@pytest.mark.parametrize("undo", EACH, ids=lambda undo: undo.kind)
def test_type(undo: Undo) -> None:
    """A value of another type is refused by name."""
    for name in undo.fields():
        with pytest.raises(ValueError, match=f"'{name}'"):
            from_json({**to_json(undo), name: True})


WRONG: list[tuple[Json, str]] = [
    ({"kind": "explode"}, "unknown kind 'explode'"),
    ([], "expected an object"),
    ({"kind": "end", "token": "short", "grace": 1, "namespace": 0}, "'token'"),
    ({"kind": "several", "parts": [{"kind": "several", "parts": []}]}, "several within several"),
    ({"kind": "restart", "process": {"pid": 0}, "grace": 1.0}, "'start_ticks' is missing"),
]


@pytest.mark.parametrize(("value", "told"), WRONG, ids=[told for _, told in WRONG])
def test_wrong(value: Json, told: str) -> None:
    """What is wrong is told."""
    with pytest.raises(ValueError, match=told):
        from_json(value)


def test_number_of_nobody() -> None:
    """0 and -1 would be process groups and everybody."""
    for pid in (0, -1):
        process: Json = {"pid": pid, "start_ticks": 1, "boot_id": "b", "namespace": 0}
        with pytest.raises(ValueError, match="no process has the number"):
            from_json({"kind": "resume", "processes": [process]})


class _Broken:
    kind: ClassVar[str] = "broken"

    def fields(self) -> dict[str, Json]:
        return {}

    def heal(self, world: World) -> Healing:
        raise PermissionError(1, "not yours")


def test_raises() -> None:
    """What is raised is a failure that is told."""
    healing = heal(_Broken())
    assert healing.ending is Ending.FAILED
    assert "not yours" in healing.text


def test_all_parts_are_tried() -> None:
    """The part after a broken one is undone too, and the worst ending is the one that counts."""
    left = iter([True, False])
    world = World(disarm=lambda _: next(left))
    healing = heal(Several((_Broken(), Disarm(Path(__file__)))), world)
    assert list(left) == []
    assert healing.ending is Ending.FAILED
    assert "not yours" in healing.text
    assert "is disarmed" in healing.text


def test_nothing() -> None:
    """No parts, nothing to undo."""
    assert heal(Several(())).ending is Ending.MOOT
    assert heal(Resume(())).ending is Ending.MOOT
