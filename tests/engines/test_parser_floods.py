"""Tests of sidecar.engines.parser: floods of names, labels and bytes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from sidecar.engines.parser import Reader
from sidecar.engines.table import Combine
from sidecar.engines.telemetry import Telemetry
from sidecar.engines.wanted import Keep
from sidecar.signals import Absence, NoData
from tests.engines.reading import KNOWN, WANTED, keeping, read, series

SCAN = 17_700
# FC-07: what a vulnerability scan leaves behind, in the form of its source.
SCANNED = [
    "/../../../../etc/passwd",
    "/${jndi:ldap://localhost",
    *(f"/x{i}" for i in range(SCAN - 2)),
]
TWELVE = [f"llamacpp:{name} {number}" for name, number in zip(
    (
        "requests_processing", "requests_deferred", "prompt_tokens_total",
        "prompt_tokens_cached_total", "tokens_predicted_total", "prompt_seconds_total",
        "tokens_predicted_seconds_total", "n_decode_total", "kv_cache_usage_ratio",
        "spec_decode_num_draft_tokens_total", "spec_decode_num_accepted_tokens_total",
    ),
    (2, 3, 5, 7, 11, 13, 17, 19, 0.23, 29, 31),
    strict=True,
)] + ["process_start_time_seconds 37"]  # fmt: skip


@pytest.mark.parametrize("at", [0, SCAN // 2, SCAN])
def test_fc07_twelve_series_survive_a_scan(at: int) -> None:
    """17,700 unwanted series push none of them out, wherever they stand."""
    lines = [
        f'sglang:http_requests_total{{endpoint="{endpoint}",method="GET"}} 1.0'
        for endpoint in SCANNED
    ]
    found = read("\n".join([*lines[:at], *TWELVE, *lines[at:]]))
    assert series(found) == {line.split()[0]: float(line.split()[1]) for line in TWELVE}
    assert (found.samples, found.bad, found.dropped) == (SCAN + 12, 0, 0)


def test_fc07_the_label_is_named_and_its_values_are_not() -> None:
    """What makes the series is `endpoint`; what was asked for is in none of the words."""
    lines = [f'sglang:http_requests_total{{endpoint="{e}",method="GET"}} 1.0' for e in SCANNED]
    (explosion,) = read("\n".join(lines)).explosions
    assert (explosion.name, explosion.series) == ("sglang:http_requests_total", SCAN)
    assert explosion.label == "endpoint"


def test_fc07_a_scan_of_a_wanted_name_adds_up() -> None:
    """Its endpoints are one series, the sum is exact, and the twelve are still there."""
    lines = [
        f'sglang:http_responses_total{{endpoint="{endpoint}",status_code="404"}} 3'
        for endpoint in SCANNED
    ]
    found = read("\n".join([*lines, *TWELVE]))
    assert found.families["sglang:http_responses_total"].values == {
        (("status_code", "404"),): 3 * SCAN
    }
    assert len(found.families) == 13


def test_an_explosion_of_a_label_that_matters_is_capped_and_counted() -> None:
    """Made-up models: some are kept, the others counted, and later names keep their place."""
    names = ("vllm:num_requests_running", "vllm:num_preemptions_total")
    lines = [f'{name}{{model_name="m{i}"}} 1' for name in names for i in range(SCAN)]
    found = read("\n".join([*lines, *TWELVE]))
    kept = sum(len(found.families[name].values) for name in names)
    assert kept + found.dropped == 2 * SCAN
    assert len(found.families) == 14
    assert all(len(family.values) for family in found.families.values())


def test_what_is_dropped_of_one_name_does_not_crowd_out_another() -> None:
    """Eleven names explode; the last one keeps as many series as the first."""
    names = [f"n{i}" for i in range(11)]
    keep = keeping(*names, labels=("model",))
    found = read("".join(f'{n}{{model="{i}"}} 1\n' for n in names for i in range(7_001)), keep)
    assert {len(found.families[name].values) for name in names} == {4_000}


def test_few_series_of_each_name_are_kept_when_all_explode() -> None:
    """Beyond the cap of all names together each still has some."""
    names = [f"n{i}" for i in range(40)]
    keep = keeping(*names, labels=("model",))
    found = read("".join(f'{n}{{model="{i}"}} 1\n' for n in names for i in range(1_999)), keep)
    assert len(found.families["n0"].values) == 1_999
    assert len(found.families["n39"].values) == 20


def test_a_value_is_kept_to_its_256th_letter() -> None:
    """What agrees so far is one series and adds up; a shorter one is kept whole."""
    start = "m" * 256
    text = f'a{{x="{start}1"}} 3\na{{x="{start}2"}} 5\na{{x="m"}} 7\n'
    assert read(text, keeping("a")).families["a"].values == {(("x", start),): 8, (("x", "m"),): 7}


def test_spellings_of_one_name_have_a_cap() -> None:
    """Colons for underscores make 2**n names of one; four of them are enough."""
    keep = keeping("a_b_c_d_e")
    spellings = [f"a{w}b{x}c{y}d_e" for w in "_:" for x in "_:" for y in "_:"]
    found = read("".join(f"{spelling} 1\n" for spelling in spellings), keep)
    assert (len(found.families), found.dropped) == (4, 4)


def test_the_newest_of_many_is_kept_alone() -> None:
    """Of a name whose value is the clock thousands of former series cost nothing."""
    keep = {"a": Keep(None, Combine.NEWEST)}
    found = read("".join(f'a{{x="{i}"}} {(i * 7) % 6_007}\n' for i in range(6_007)), keep)
    assert list(found.families["a"].values.values()) == [6_006]
    assert found.dropped == 0


_NAMES = sorted(WANTED)
_WIDE = "\U0001f600" + "w" * 230  # four bytes a letter in memory
_HOSTILE: dict[str, Callable[[int], str]] = {
    "many long names": lambda i: f"vllm:n{i}{'x' * 2_000} 1\n",
    "many labels": lambda i: _of(i, ",".join(f'l{j}="{i}{"v" * 200}"' for j in range(64))),
    "long values": lambda i: _of(i, f'model_name="{_WIDE * 60}{i}",model="{i}"'),
    "all wanted names": lambda i: _of(i, f'model_name="{i}{_WIDE}",model="{i}",le="{i % 31}"'),
    "one line": lambda i: 'vllm:num_requests_running{engine="' if i == 0 else "x" * 1_000,
}


def _of(i: int, labels: str) -> str:
    return f"{_NAMES[i % len(_NAMES)]}{{{labels}}} {i % 7}\n"


def pieces(line: Callable[[int], str]) -> Iterator[bytes]:
    """8 MB of these lines, 64 KiB at a time."""
    sent, chunk = 0, bytearray()
    for i in count():
        chunk += line(i).encode()
        if len(chunk) >= 65_536:
            yield bytes(chunk)
            sent += len(chunk)
            chunk.clear()
            if sent >= 8_000_000:
                return


@pytest.mark.parametrize("shape", _HOSTILE)
def test_eight_hostile_megabytes_cost_little(shape: str) -> None:
    """At most 64 MiB of memory, translation included, and no more time than a scrape has.

    Measured with the tracing on, which makes it four times as slow.
    """
    reader = Reader(WANTED, seconds=30)
    tracemalloc.start()
    try:
        for piece in pieces(_HOSTILE[shape]):
            reader.feed(piece)
        try:
            Telemetry("r0", KNOWN).take(reader.finish(), 0.0)
        except NoData as refused:
            assert refused.absence is Absence.NOT_METRICS
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 * 2**20
