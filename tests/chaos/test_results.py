"""Runs on disk: exact, append-only, honest about what is torn, and deaf to hostile names."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chaos.results import Unusable, read, write
from chaos.run_lines import decode, encode
from chaos.vocabulary import Detected, Effect, Healing, Probe, Proof, Run, Watched
from tests.chaos.report.made import HOSTILE, campaign, run

FINITE = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(codec=None), max_size=20)  # lone surrogates too


MAYBE = st.none() | FINITE
PROBES = st.builds(Probe, FINITE, FINITE, st.none() | TEXT, MAYBE, st.integers(0, 10**6))
PLACES = st.builds(
    Watched,
    place=TEXT,
    success=MAYBE,
    recovered=MAYBE,
    interruption=FINITE,
    period=FINITE,
    probes=st.lists(PROBES, max_size=3).map(tuple),
)
EVIDENCE = st.lists(st.tuples(TEXT, TEXT | st.floats(allow_nan=False)), max_size=3).map(tuple)
RUNS = st.builds(
    Run,
    id=TEXT,
    number=st.integers(-(2**40), 2**40),
    seed=st.integers(0, 2**128),
    reason=TEXT,
    target=TEXT,
    expects=st.lists(TEXT, max_size=2).map(tuple),
    started_unix=FINITE,
    effect=MAYBE,
    healed=MAYBE,
    watched=FINITE,
    proof=st.none() | st.builds(Effect, evidence=EVIDENCE),
    healing=st.none() | st.builds(Healing),
    places=st.lists(PLACES, max_size=2).map(tuple),
    detected=st.lists(st.builds(Detected, TEXT, FINITE, TEXT), max_size=2).map(tuple),
    left_behind=TEXT,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(RUNS)
def test_a_run_comes_back_exactly(made: Run) -> None:
    """Every field of every part, on one line of printable ASCII."""
    line = encode(made)
    assert decode(line) == made
    assert all(32 <= byte < 127 for byte in line)


def test_a_nan_of_evidence_comes_back() -> None:
    """It is a value like others, there; as strict JSON."""
    made = run(proof=Effect(Proof.SEEN, "seen", (("share", float("nan")), ("name", "NaN"))))
    line = encode(made)
    found = decode(line)
    assert found.proof is not None
    assert repr(found.proof.evidence) == "(('share', nan), ('name', 'NaN'))"
    json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_a_campaign_comes_back_in_order(tmp_path: Path) -> None:
    """Forty runs with all their probes."""
    path, runs = tmp_path / "results.jsonl", campaign(40)
    for one in runs:
        write(path, one)
    found = read(path)
    assert found.runs == tuple(runs)
    assert (found.flaws, found.superseded) == ((), 0)


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    """Whatever the umask allows."""
    before = os.umask(0)
    try:
        write(tmp_path / "results.jsonl", run())
    finally:
        os.umask(before)
    assert (tmp_path / "results.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_hostile_name_stays_data(tmp_path: Path) -> None:
    """Escapes, mark-up and line breaks come back as they were, and cannot drive a terminal."""
    path = tmp_path / "results.jsonl"
    made = run(target=HOSTILE, detected=(Detected(HOSTILE, 1.0, HOSTILE),))
    write(path, made)
    assert read(path).runs == (made,)
    assert path.read_text().isascii()
    assert path.read_text().rstrip("\n").isprintable()


def test_every_cut_keeps_the_whole_runs(tmp_path: Path) -> None:
    """Wherever writing stopped, the runs before are there and the torn one is told."""
    path = tmp_path / "results.jsonl"
    write(path, run(1))
    first = path.stat().st_size
    write(path, run(2))
    whole = path.read_bytes()
    for end in range(first + 1, len(whole)):
        path.write_bytes(whole[:end])
        found = read(path)
        assert found.runs == (run(1),)
        assert [(flaw.line, flaw.torn) for flaw in found.flaws] == [(2, True)]


def test_after_a_torn_line_writing_goes_on(tmp_path: Path) -> None:
    """The next run has a line of its own, and the torn one stays told."""
    path = tmp_path / "results.jsonl"
    write(path, run(1))
    path.write_bytes(path.read_bytes() + encode(run(2))[:50])
    write(path, run(3))
    found = read(path)
    assert found.runs == (run(1), run(3))
    assert [flaw.line for flaw in found.flaws] == [2]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "no run"),
        (b"[1]", "version"),
        (b'{"run": {}}', "version"),
        (b'{"version": true}', "version"),
        (b'{"version": 1}', "run is no object"),
        (b"\xff\xfe", "no run"),
        (b"[" * 100_000, "no run"),
    ],
)
def test_a_damaged_line_is_told(tmp_path: Path, line: bytes, why: str) -> None:
    """With its number; the runs around it are there."""
    path = tmp_path / "results.jsonl"
    path.write_bytes(encode(run(1)) + b"\n" + line + b"\n" + encode(run(2)) + b"\n")
    found = read(path)
    assert [one.number for one in found.runs] == [1, 2]
    [flaw] = found.flaws
    assert flaw.line == 2
    assert why in flaw.why


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("outcome", "fine", "fine"),
        ("watched", "60", "run.watched"),
        ("watched", True, "run.watched"),
        ("watched", {"float": "NaN"}, "run.watched"),
        ("number", 1.5, "run.number"),
        ("places", {}, "run.places"),
        ("effect", "soon", "run.effect"),
        ("reason", None, "run.reason"),
        ("expects", ["a", 1], r"run.expects[1]"),
        ("surprise", 1, "surprise"),
    ],
)
def test_a_field_of_another_type_is_no_run(key: str, value: object, why: str) -> None:
    """The error names the field."""
    found = json.loads(encode(run()))
    found["run"][key] = value
    with pytest.raises(ValueError) as caught:  # noqa: PT011  its text is what is tested
        decode(json.dumps(found).encode())
    assert why in str(caught.value)


def test_a_field_that_has_a_default_may_be_missing() -> None:
    """So that lines from before it was there can be read; one without is missed."""
    found = json.loads(encode(run()))
    del found["run"]["left_behind"]
    assert decode(json.dumps(found).encode()) == run()
    del found["run"]["outcome"]
    with pytest.raises(ValueError, match="no 'outcome'"):
        decode(json.dumps(found).encode())


def test_another_version_is_refused(tmp_path: Path) -> None:
    """The whole file, with file and line and what to do: half a campaign would look like one."""
    path = tmp_path / "results.jsonl"
    path.write_bytes(encode(run(1)) + b'\n{"version": 2, "run": {}}\n')
    with pytest.raises(Unusable, match=r"results.jsonl, line 2: is of version 2.* reads 1"):
        read(path)


def test_a_run_written_again_counts_once(tmp_path: Path) -> None:
    """The later line is what it came to, such as after a late undo."""
    path = tmp_path / "results.jsonl"
    late = replace(run(1), reason="reverted late (by 7 s)")
    for one in (run(1), run(2), late):
        write(path, one)
    found = read(path)
    assert found.runs == (run(2), late)
    assert found.superseded == 1


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """Neither to write nor to read, and what it points to stays as it was."""
    other = tmp_path / "other"
    other.write_text("precious")
    link = tmp_path / "results.jsonl"
    link.symlink_to(other)
    for use in (lambda: write(link, run()), lambda: read(link)):
        with pytest.raises(Unusable, match="is a link"):
            use()
    assert other.read_text() == "precious"


def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    """Nor a folder, nor a file that is not there; each is named."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ".", "absent"):
        with pytest.raises(Unusable, match=str(tmp_path)):
            read(tmp_path / name)
    with pytest.raises(Unusable, match="pipe"):
        write(tmp_path / "pipe", run())


def test_writers_take_turns(tmp_path: Path) -> None:
    """Four processes at once: every line is whole."""
    path = tmp_path / "results.jsonl"
    children = []
    for writer in range(4):
        child = os.fork()
        if child == 0:
            try:
                for number in range(25):
                    write(path, run(100 * writer + number))
            finally:
                os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    found = read(path)
    assert found.flaws == ()
    assert len(found.runs) == 100
