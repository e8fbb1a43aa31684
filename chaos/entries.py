"""What the journal says, and its lines: one JSON object each, with the CRC-32 of its own bytes.

A line begins with ``{"crc":"xxxxxxxx","v":N,`` in every version, so that each can tell the others.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from enum import StrEnum

from chaos.fields import Fields, Json, process_json
from chaos.processes import Process
from chaos.undo import Undo, from_json, to_json

VERSION = 1
LONGEST = 65_536  # bytes of a line
_OPENING = b'{"crc":"'
_HEAD = len(_OPENING) + 8 + len(b'",')


class Foreign(Exception):
    """It was written by another version or another program; it is not touched."""


class Step(StrEnum):
    """How far a run came. The last three are its endings."""

    PLANNED = "planned"
    INJECTED = "injected"
    EFFECT = "effect"
    HEALING = "healing"
    HEALED = "healed"
    MOOT = "moot"
    FAILED = "failed"


class By(StrEnum):
    """Who did it."""

    INJECTOR = "injector"
    GUARDIAN = "guardian"
    RECOVER = "recover"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class Plan:
    """One fault before it is let loose. ``session`` is the injector; from ``heal_by`` on, in
    seconds of CLOCK_BOOTTIME, anybody heals it.
    """

    run: str
    fault: str
    method: str
    target: str
    undo: Undo
    session: Process
    heal_by: float


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan in the journal, since when in CLOCK_BOOTTIME and in Unix seconds."""

    seq: int
    boottime: float
    unix: float
    plan: Plan

    @property
    def run(self) -> str:
        """Of which run."""
        return self.plan.run


@dataclass(frozen=True, slots=True)
class Noted:
    """A later step. ``late_seconds`` is how long after ``heal_by`` it was healed."""

    seq: int
    boottime: float
    unix: float
    run: str
    step: Step
    by: By
    text: str = ""
    late_seconds: float = 0.0


Entry = Planned | Noted


@dataclass(frozen=True, slots=True)
class Reading:
    """A journal as far as it can be read: ``corrupt`` lines in it are skipped, ``torn`` bytes at
    its end were never finished. ``seq`` is the highest number given out.
    """

    entries: tuple[Entry, ...] = ()
    corrupt: int = 0
    torn: int = 0
    seq: int = 0


def encode(entry: Entry) -> bytes:
    """Its line. ValueError when it is too long or holds what JSON cannot."""
    body: dict[str, Json] = {
        "v": VERSION,
        "seq": entry.seq,
        "boottime": entry.boottime,
        "unix": entry.unix,
        "run": entry.run,
        **(_plan_json(entry.plan) if isinstance(entry, Planned) else _noted_json(entry)),
    }
    text = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    line = _OPENING + b"%08x" % zlib.crc32(text) + b'",' + text[1:] + b"\n"
    if len(line) > LONGEST:
        raise ValueError(
            f"run {entry.run}: a line of {len(line)} bytes; at most {LONGEST} are kept"
        )
    return line


def _plan_json(plan: Plan) -> dict[str, Json]:
    return {
        "step": Step.PLANNED.value,
        "fault": plan.fault,
        "method": plan.method,
        "target": plan.target,
        "undo": to_json(plan.undo),
        "session": process_json(plan.session),
        "heal_by": plan.heal_by,
    }


def _noted_json(entry: Noted) -> dict[str, Json]:
    return {
        "step": entry.step.value,
        "by": entry.by.value,
        "text": entry.text,
        "late_seconds": entry.late_seconds,
    }


def decode(line: bytes) -> Entry | None:
    """One line without its end; None when its bytes are not those that were written. ``Foreign``
    when they are, and say what this version does not know.
    """
    text = b"{" + line[_HEAD:]
    crc = line[len(_OPENING) : _HEAD - 2]
    if not line.startswith(_OPENING) or crc != b"%08x" % zlib.crc32(text):
        return None
    try:
        fields = Fields(json.loads(text), "journal")
        version = fields.integer("v")
        if version != VERSION:
            raise Foreign(f"version {version} of the journal; this program reads {VERSION}")
        return _entry(fields)
    except (ValueError, RecursionError) as error:
        raise Foreign(f"a whole line of unknown content: {error}") from None


def _entry(fields: Fields) -> Entry:
    seq, boottime = fields.integer("seq"), fields.number("boottime")
    unix, run = fields.number("unix"), fields.text("run")
    step = Step(fields.text("step"))
    entry: Entry
    if step is Step.PLANNED:
        plan = Plan(
            run,
            fields.text("fault"),
            fields.text("method"),
            fields.text("target"),
            from_json(fields.take("undo")),
            fields.process("session"),
            fields.number("heal_by"),
        )
        entry = Planned(seq, boottime, unix, plan)
    else:
        by, text = By(fields.text("by")), fields.text("text")
        entry = Noted(seq, boottime, unix, run, step, by, text, fields.number("late_seconds"))
    fields.done()
    return entry


def parse(content: bytes) -> Reading:
    """All of a file, or its end from some line on. ``Foreign`` when none of it is ours."""
    *lines, torn = content.split(b"\n")
    entries = list[Entry]()
    seq = corrupt = 0
    for line in lines:
        entry = decode(line)
        if entry is None or entry.seq <= seq:
            corrupt += 1
            seq += 1  # it had a number that nobody may have again
        else:
            entries.append(entry)
            seq = entry.seq
    begun = not lines and torn[: len(_OPENING)] == _OPENING[: len(torn)]
    if content and not entries and not begun:
        raise Foreign("no line of it is one of this journal's")
    return Reading(tuple(entries), corrupt, len(torn), seq)
