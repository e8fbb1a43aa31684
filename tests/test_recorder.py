"""Tests of sidecar.recorder."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from sidecar import gaps
from sidecar.drift.codec import decode, encode
from sidecar.evaluation import Series
from sidecar.loghist import OVER, cell, lower, upper
from sidecar.record import THRESHOLDS, Record, step_of, stratum
from sidecar.recorder import MAX_SERIES, Exceedances, Recorder, Slot
from sidecar.signals import End, Leg, RequestTiming
from sidecar.testing import timing

HOUR = 1_700_002_800.0  # a full hour, Unix seconds
LEG, SERVER = Leg.DOWNSTREAM.value, "127.0.0.1:8080"
TTFT, DURATION, ITL = (Series(signal, LEG, SERVER) for signal in ("ttft", "duration", "itl"))


def started(now: float = HOUR, clock: float = 50.0, max_series: int = MAX_SERIES) -> Recorder:
    """At a full hour of a process that runs since before: its first whole slot is open."""
    recorder = Recorder(max_series)
    recorder.roll(now - 1.0, clock - 1.0)
    recorder.roll(now, clock)
    return recorder


def closed(recorder: Recorder, after: float = 300.0) -> Slot:
    slot = recorder.roll(HOUR + after, 50.0 + after)
    assert slot is not None
    return slot


def recorded(*timings: RequestTiming) -> Slot:
    """The slot of these requests."""
    recorder = started()
    for one in timings:
        recorder.add(one)
    return closed(recorder)


def counted(record: Record) -> dict[int, int]:
    return dict(record.hist.filled())


def test_slots_end_on_multiples_of_five_minutes() -> None:
    """Of the wall clock, wherever the process began; each begins where the one before ended."""
    recorder, slots = Recorder(), []
    for number in range(2_000):
        now = HOUR + 71.3 + number * 0.7
        slot = recorder.roll(now, 1_009.0 + number * 0.7)
        if slot is not None:
            slots.append(slot)
    assert len(slots) == 4
    for number, slot in enumerate(slots):
        assert 0 <= slot.end - (HOUR + 300 * (number + 1)) < 0.7
        assert slot.start == (slots[number - 1].end if number else HOUR + 71.3)
    assert [slot.steady for slot in slots] == [False, True, True, True]


def test_a_slot_with_nothing_in_it_is_a_slot() -> None:
    """Idle is not absent."""
    slot = closed(started())
    assert (dict(slot.records), dict(slot.waiting), slot.steady) == ({}, {}, True)


def test_what_ended_lies_in_the_slot_that_was_open() -> None:
    """And never in two."""
    recorder = started()
    recorder.add(timing())
    assert recorder.roll(HOUR + 299.9, 349.9) is None
    assert closed(recorder).records[TTFT].hist.total == 1
    recorder.add(timing())
    recorder.add(timing())
    assert closed(recorder, 600.0).records[TTFT].hist.total == 2
    assert not closed(recorder, 900.0).records


@pytest.mark.parametrize("step", [-7_200.0, -3.0, 3.0, 86_400.0])
def test_a_step_of_the_clock_ends_the_slot_and_is_flagged(step: float) -> None:
    """Its end is told by the monotonic clock; the next one, cut short, is not steady either."""
    recorder = started()
    recorder.add(timing())
    assert recorder.roll(HOUR + 59.0, 109.0) is None
    slot = recorder.roll(HOUR + 61.0 + step, 111.0)
    assert slot is not None
    assert (slot.start, slot.end, slot.steady) == (HOUR, HOUR + 61.0, False)
    assert slot.records[TTFT].hist.total == 1
    now, clock = HOUR + 61.0 + step, 111.0
    slots: list[Slot] = []
    while len(slots) < 2:
        now, clock = now + 1.0, clock + 1.0
        found = recorder.roll(now, clock)
        slots += [found] if found is not None else []
    assert [found.steady for found in slots] == [False, True]
    assert slots[0].start == HOUR + 61.0 + step
    assert all(found.end % 300.0 < 1.0 for found in slots)


def test_a_clock_that_is_slewed_is_no_step() -> None:
    """500 ppm, as fast as NTP corrects."""
    recorder = started()
    slots = [recorder.roll(HOUR + second * 1.0005, 50.0 + second) for second in range(1, 602)]
    assert [slot.steady for slot in slots if slot is not None] == [True, True]


def test_a_slot_closed_long_after_its_end_is_not_steady() -> None:
    """It holds what belongs to the next one; two seconds are nothing."""
    assert closed(started(), 302.0).steady
    late = started()
    late.add(timing())
    slot = closed(late, 1_000.0)
    assert (slot.start, slot.end, slot.steady) == (HOUR, HOUR + 1_000.0, False)
    assert late.roll(HOUR + 1_200.0, 1_250.0) is not None


@pytest.mark.parametrize(
    ("changes", "ttft", "duration"),
    [
        pytest.param({}, cell(0.05), cell(0.5), id="complete"),
        pytest.param({"ttft_seconds": None}, None, cell(0.5), id="complete, no token"),
        pytest.param({"status": 400, "ttft_seconds": None}, None, None, id="wrong request"),
        pytest.param({"status": 429, "ttft_seconds": None}, OVER, OVER, id="turned away"),
        pytest.param({"status": 503, "ttft_seconds": None}, OVER, OVER, id="error status"),
        pytest.param({"end": End.SERVER_CLOSED}, cell(0.05), OVER, id="cut short"),
        pytest.param(
            {"end": End.SERVER_CLOSED, "ttft_seconds": None}, OVER, OVER, id="closed before"
        ),
        pytest.param({"end": End.ERROR_EVENT}, cell(0.05), OVER, id="error in the stream"),
        pytest.param({"end": End.CLIENT_GONE}, cell(0.05), None, id="given up later"),
        pytest.param(
            {"end": End.CLIENT_GONE, "ttft_seconds": None}, cell(0.5), None, id="given up before"
        ),
        pytest.param({"end": End.LOST}, cell(0.05), None, id="lost"),
        pytest.param({"end": End.LOST, "ttft_seconds": None}, None, None, id="lost before"),
        pytest.param({"seconds": 700.0, "ttft_seconds": 650.0}, OVER, OVER, id="beyond range"),
    ],
)
def test_what_each_kind_of_end_counts_as(
    changes: dict[str, object], ttft: int | None, duration: int | None
) -> None:
    """Failures lie above the range, the unknown nowhere, what a client gave up where it stood."""
    records = recorded(timing(**changes)).records
    for series, where in ((TTFT, ttft), (DURATION, duration)):
        found = counted(records[series]) if series in records else {}
        assert found == ({} if where is None else {where: 1})


def test_gaps_count_by_the_bucket_that_they_came_in() -> None:
    """As often as there were gaps, each where its bucket has its middle."""
    found = ((0, 2), (100, 12), (101, 3), (gaps.BUCKETS - 1, 1))
    record = recorded(timing(gaps=found)).records[ITL]
    assert record.hist.total == 18
    for bucket, count in found:
        where = cell(gaps.middle_seconds(bucket))
        assert counted(record)[where] == count
        assert lower(where) <= gaps.middle_seconds(bucket) < upper(where)
    assert sum(record.strata[0]) == 18


@pytest.mark.parametrize("size", [0, 511, 3_000, 2**40])
@pytest.mark.parametrize("changes", [{}, {"token_events": 900}, {"status": 503}])
def test_ttft_is_kept_by_the_size_of_the_request(size: int, changes: dict[str, int]) -> None:
    """Whatever came of it."""
    record = recorded(timing(request_bytes=size, **changes)).records[TTFT]
    assert {kind: sum(row) for kind, row in record.strata.items()} == {stratum(size): 1}


@pytest.mark.parametrize("size", [100, 3_000])
@pytest.mark.parametrize("events", [1, 7, 8_192])
def test_a_duration_is_kept_by_both_sizes(size: int, events: int) -> None:
    """That of the request and that of the answer; of one that comes whole, four bytes a token."""
    streamed = timing(request_bytes=size, token_events=events, response_bytes=10**6)
    whole = timing(request_bytes=size, token_events=0, response_bytes=4 * events + 3)
    for one in (streamed, whole):
        record = recorded(one).records[DURATION]
        assert {k: sum(row) for k, row in record.strata.items()} == {stratum(size, events): 1}


def test_squares_are_what_is_defined() -> None:
    """Over blocks of 150 s that held something: the sum of k²/n at or above each threshold."""
    rng, recorder, blocks = random.Random(11), started(), []
    for number, n in enumerate((31, 47)):
        values = [rng.lognormvariate(-1.0, 0.6) for _ in range(n)]
        blocks.append([step_of(cell(value)) for value in values])
        for value in values:
            recorder.add(timing(ttft_seconds=value, seconds=value, gaps=()))
        assert recorder.roll(HOUR + 150.0 * number + 149.0, 199.0 + 150.0 * number) is None
        if number == 0:
            assert recorder.roll(HOUR + 150.4, 200.4) is None
    record = closed(recorder).records[TTFT]
    assert record.blocks == 2
    for i in range(THRESHOLDS):
        above = [sum(step >= i for step in steps) for steps in blocks]
        true = sum(k * k / len(steps) for k, steps in zip(above, blocks, strict=True))
        assert record.squares[i] == pytest.approx(true, rel=1e-12)
    assert record.squares[0] == record.hist.total == 78


def test_a_block_with_nothing_in_it_is_none() -> None:
    """It says nothing of how requests clump."""
    recorder = started()
    recorder.roll(HOUR + 151.0, 201.0)
    recorder.add(timing())
    assert closed(recorder).records[TTFT].blocks == 1


def test_blocks_end_on_multiples_of_150_seconds() -> None:
    """However late the call is that ends them."""
    recorder = started()
    for second in (0, 149, 150, 151, 299):
        recorder.roll(HOUR + second, 50.0 + second)
        recorder.add(timing())
    record = closed(recorder).records[TTFT]
    assert record.blocks == 2
    assert record.squares[0] == 5.0


def test_what_is_recorded_keeps_its_promises() -> None:
    """Strata add up to the histogram in every step, so that it can be encoded."""
    rng, recorder = random.Random(13), started()
    for _ in range(997):
        end = rng.choice(list(End)[:5])
        value = rng.lognormvariate(-1.0, 1.0)
        bytes_ = rng.randrange(10**7)
        recorder.add(timing(end=end, ttft_seconds=value, seconds=2 * value, request_bytes=bytes_))
    for record in closed(recorder).records.values():
        assert decode(encode(record)).strata == record.strata


def test_beyond_the_cap_series_share_one_and_are_counted() -> None:
    """Each signal and leg has its own; what went there is in ``folded``."""
    recorder = started(max_series=4)
    for number in range(5):
        for _ in range(number + 1):
            recorder.add(timing(server=f"10.0.0.{number}:80", gaps=((100, 7),)))
    records = closed(recorder).records
    others = {key.signal: r.hist.total for key, r in records.items() if key.server == "other"}
    # The first server has three places, the second one; 12 requests come after these.
    assert others == {"ttft": 12, "duration": 14, "itl": 7 * 14}
    assert len(records) == 4 + 3
    assert recorder.folded == sum(others.values())
    assert sum(record.hist.total for record in records.values()) == 15 * (2 + 7)


def test_a_series_keeps_its_place_from_slot_to_slot() -> None:
    """New ones that come first do not push it out; once it was silent for a slot, they do."""
    recorder, old, new = started(max_series=3), timing(server="old"), timing(server="new")
    names: list[set[str]] = []
    for number, both in enumerate([(old, new), (new, old), (new, new), (new, old)]):
        for one in both:
            recorder.add(one)
        slot = closed(recorder, 300.0 * (number + 1))
        names.append({series.server for series in slot.records})
    assert names == [{"old", "other"}, {"old", "other"}, {"other"}, {"new", "other"}]


def test_waiting_requests_go_where_ended_ones_would() -> None:
    """By series with all ages; beyond the cap into the same one."""
    recorder = started(max_series=2)
    recorder.add(timing(gaps=()))
    waiting = [
        ("ttft", Leg.DOWNSTREAM, SERVER, 3.0),
        ("ttft", Leg.DOWNSTREAM, SERVER, 5.0),
        ("ttft", Leg.UPSTREAM, "10.0.0.1:80", 7.0),
    ]
    slot = recorder.roll(HOUR + 300.0, 350.0, waiting)
    assert slot is not None
    other = Series("ttft", Leg.UPSTREAM.value, "other")
    assert dict(slot.waiting) == {TTFT: (3.0, 5.0), other: (7.0,)}


def test_what_is_watched_is_counted_from_then_on() -> None:
    """Above the cell, over slots, until it is watched no more."""
    recorder = started()
    recorder.add(timing(ttft_seconds=9.0))
    recorder.watch({TTFT: cell(1.0)})
    assert recorder.exceedances() == {TTFT: Exceedances(cell(1.0), 0, 0)}
    for value in (0.5, 1.0, upper(cell(1.0)), 9.0):
        recorder.add(timing(ttft_seconds=value))
    closed(recorder)
    recorder.add(timing(ttft_seconds=None, status=500))
    assert recorder.exceedances() == {TTFT: Exceedances(cell(1.0), 5, 3)}
    recorder.watch({})
    recorder.watch({})
    assert recorder.exceedances() == {}


def test_watching_again_counts_on_and_another_threshold_starts_anew() -> None:
    """Counts of two thresholds are never mixed."""
    recorder = started()
    recorder.watch({TTFT: 500})
    recorder.add(timing())
    recorder.watch({TTFT: 500})
    assert recorder.exceedances()[TTFT] == Exceedances(500, 1, 0)
    recorder.watch({TTFT: 300})
    assert recorder.exceedances()[TTFT] == Exceedances(300, 0, 0)


def test_gaps_are_watched_as_often_as_they_were() -> None:
    """Not once a bucket."""
    recorder = started()
    recorder.watch({ITL: cell(gaps.middle_seconds(200))})
    recorder.add(timing(gaps=((150, 3), (200, 5), (230, 7))))
    assert recorder.exceedances()[ITL] == Exceedances(cell(gaps.middle_seconds(200)), 15, 7)


def test_what_is_folded_is_watched_where_it_went() -> None:
    """The shared series has its own record and its own count."""
    recorder, other = started(max_series=0), Series("ttft", LEG, "other")
    recorder.watch({other: 0, TTFT: 0})
    recorder.add(timing())
    assert recorder.exceedances() == {other: Exceedances(0, 1, 1), TTFT: Exceedances(0)}


def test_memory_is_bounded_whatever_comes() -> None:
    """300 series and six shared ones: 6 MB at most, however many servers there are."""
    recorder = started()
    tracemalloc.start()
    try:
        for number in range(1_009):
            leg = list(Leg)[number % 2]
            recorder.add(timing(server=f"10.1.{number >> 8}.{number & 255}:80", leg=leg))
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(closed(recorder).records) == MAX_SERIES + 6
    assert held < 6e6
