"""Lines of the journal: what was written is read, whatever happened to the rest."""

from __future__ import annotations

import json
import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.entries import (
    LONGEST,
    By,
    Entry,
    Foreign,
    Noted,
    Plan,
    Planned,
    Step,
    decode,
    encode,
    parse,
)
from chaos.processes import Process
from chaos.undo.resume import Resume
from tests.chaos.plans import SOME, plan
from tests.chaos.undo.test_codec import EACH

_TEXT = st.text(st.characters(), max_size=40)  # surrogates too: file names hold them
_SECONDS = st.floats(allow_nan=False, allow_infinity=False)
_PROCESSES = st.builds(Process, st.integers(1, 2**22), st.integers(0, 2**63), _TEXT, st.integers(0))
_UNDOS = st.sampled_from(EACH) | st.builds(Resume, st.lists(_PROCESSES, max_size=3).map(tuple))
_PLANS = st.builds(Plan, _TEXT, _TEXT, _TEXT, _TEXT, _UNDOS, _PROCESSES, _SECONDS)
_LATER = st.sampled_from([step for step in Step if step is not Step.PLANNED])
_ENTRIES = st.builds(Planned, st.just(0), _SECONDS, _SECONDS, _PLANS) | st.builds(
    Noted, st.just(0), _SECONDS, _SECONDS, _TEXT, _LATER, st.sampled_from(By), _TEXT, _SECONDS
)


def _numbered(entries: list[Entry]) -> list[Entry]:
    found = list[Entry]()
    for seq, entry in enumerate(entries, 1):
        if isinstance(entry, Planned):
            found.append(Planned(seq, entry.boottime, entry.unix, entry.plan))
        else:
            rest = (entry.run, entry.step, entry.by, entry.text, entry.late_seconds)
            found.append(Noted(seq, entry.boottime, entry.unix, *rest))
    return found


_JOURNALS = st.lists(_ENTRIES, max_size=5).map(_numbered)


@given(_ENTRIES)
def test_round_trip(entry: Entry) -> None:
    """Each entry survives, on one line that is JSON."""
    line = encode(entry)
    assert line.count(b"\n") == 1
    assert json.loads(line)["v"] == 1
    assert decode(line[:-1]) == entry


@settings(max_examples=40, deadline=None)
@given(_JOURNALS, st.randoms(use_true_random=False))
def test_prefix(entries: list[Entry], rng: random.Random) -> None:
    """Any prefix of a file is read, and yields a prefix of its entries."""
    lines = [encode(entry) for entry in entries]
    content = b"".join(lines)
    cuts = {rng.randrange(len(content) + 1) for _ in range(60)}
    for cut in cuts | {0, len(content)}:
        found = parse(content[:cut])
        whole = content[:cut].count(b"\n")
        assert found.entries == tuple(entries[:whole])
        assert found.torn == cut - len(b"".join(lines[:whole]))
        assert (found.corrupt, found.seq) == (0, whole)


@settings(max_examples=40, deadline=None)
@given(_JOURNALS.filter(lambda entries: len(entries) > 1), st.data())
def test_flipped_bit(entries: list[Entry], data: st.DataObject) -> None:
    """One flipped bit is counted, and costs one line, or two where it was the end of one."""
    content = bytearray(b"".join(map(encode, entries)))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = parse(bytes(content))
    except Foreign:
        return  # nothing of it was left whole, or it is told as what it cannot be: no loss either
    assert set(found.entries) <= set(entries)
    lost = len(entries) - len(found.entries)
    assert 1 <= lost <= 2
    assert found.corrupt or found.torn


def test_middle() -> None:
    """A damaged line in the middle is counted and skipped; its number is not given anew."""
    first, second, third = map(encode, SOME)
    found = parse(first + second.replace(b"injected", b"injecteD") + third)
    assert (found.entries, found.corrupt, found.seq) == ((SOME[0], SOME[2]), 1, 3)
    assert parse(first + b"\0" * 30 + b"\n").seq == 2


def test_repeated() -> None:
    """A line that is there twice counts once."""
    line = encode(SOME[0])
    found = parse(line + line)
    assert (found.entries, found.corrupt) == ((SOME[0],), 1)


def _line(body: dict[str, object]) -> bytes:
    text = json.dumps(body).encode()
    return b'{"crc":"%08x",' % zlib.crc32(text) + text[1:] + b"\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (_line({"v": 2, "news": []}), "version 2"),
        (encode(SOME[0]) + _line({"v": 2}), "version 2"),
        (_line({"v": 1, "surprise": 1}), "unknown content"),
        (b"127.0.0.1 localhost\n", "no line of it"),
        (b"no end", "no line of it"),
        (b"\0" * 20, "no line of it"),
    ],
)
def test_foreign(content: bytes, told: str) -> None:
    """What another version or program wrote is refused whole."""
    with pytest.raises(Foreign, match=told):
        parse(content)


def test_nesting() -> None:
    """A line that nests without end is refused like any other."""
    text = b'{"v":' + b"[" * 30_000 + b"]" * 30_000 + b"}"
    with pytest.raises(Foreign):
        parse(b'{"crc":"%08x",' % zlib.crc32(text) + text[1:] + b"\n")


def test_long() -> None:
    """A line that is too long to be read back from a file's end is not written."""
    with pytest.raises(ValueError, match="at most"):
        encode(Planned(1, 1.0, 2.0, plan("x" * LONGEST)))
