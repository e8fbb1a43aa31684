"""Tests of sidecar.detect.streams: streams that stand still, and engines that produce nothing."""

import pytest

from sidecar.detect.streams import STALLED, STUCK, Streams
from sidecar.ledger import Tally
from sidecar.signals import Absence, Leg, Sample
from sidecar.snapshot import Snapshot
from sidecar.streams import Stall
from sidecar.verdicts import Outcome
from tests.detect.scenes import FAIL, PASS, UNKNOWN, blind, engine, judge, outcome, snap
from tests.export import made


@pytest.mark.parametrize(
    ("stuck", "followed", "expected"),
    [(0, 0, PASS), (0, 40, PASS), (3, 40, PASS), (4, 40, FAIL), (1, 10, FAIL), (1, 11, PASS)],
)
def test_a_tenth_of_the_streams_has_to_stand_still(
    stuck: int, followed: int, expected: Outcome
) -> None:
    """One client of many that does not read is no incident of the service."""
    stalls = {Leg.DOWNSTREAM: Stall(followed, stuck, 9.0)}
    found = judge(Streams(), snap(stalls=stalls), 1.0)
    assert outcome(found, STUCK.name, leg="downstream") is expected


def test_each_leg_is_judged_by_itself() -> None:
    """Streams that stand still towards clients alone are the gateway's."""
    stalls = {Leg.DOWNSTREAM: Stall(8, 8, 9.0), Leg.UPSTREAM: Stall(8, 0, 0.0)}
    found = judge(Streams(), snap(stalls=stalls), 1.0)
    assert outcome(found, STUCK.name, leg="downstream") is FAIL
    assert outcome(found, STUCK.name, leg="upstream") is PASS


def test_a_blind_tap_knows_of_no_stream() -> None:
    """Unknown on every leg, never well."""
    found = judge(Streams(), blind(), 1.0)
    assert [outcome(found, STUCK.name, leg=leg.value) for leg in Leg] == [UNKNOWN, UNKNOWN]


def test_the_text_says_how_many_and_for_how_long() -> None:
    """The first line on a pager answers what and how bad."""
    stalls = {Leg.UPSTREAM: Stall(40, 38, 12.3)}
    [verdict] = [v for v in judge(Streams(), snap(stalls=stalls), 1.0) if v.rule == STUCK.name]
    assert verdict.text.replace("\N{NO-BREAK SPACE}", " ") == (
        "no token for up to 12.3 s on 38 of 40 open streams"
    )


def test_a_wait_of_four_minutes_of_late_gives_the_engine_eight() -> None:
    """A long prefill moves no counter; where there are such, two minutes are none too long."""
    still = scene(*engine(), longest_wait=240.0)
    detector = Streams()
    found = [judge(detector, still, at) for at in (0.0, 479.0, 481.0)]
    assert [outcome(f, STALLED.name, replica="r0") for f in found] == [PASS, PASS, FAIL]


QUIET = Stall(0, 0, 0.0, waiting=4, quiet_seconds=70.0)


def test_a_leg_that_brings_nothing_is_stuck_though_no_stream_has_begun() -> None:
    """The streams that stood still have timed out, and none of the new ones begins."""
    found = judge(Streams(), snap(stalls={Leg.UPSTREAM: QUIET}), 1.0)
    assert outcome(found, STUCK.name, leg="upstream") is FAIL
    [text] = [v.text for v in found if v.rule == STUCK.name]
    assert text.replace("\N{NO-BREAK SPACE}", " ") == (
        "not one token or good end for 1 min 10 s; 4 open requests wait for their first"
    )


def test_an_engine_that_counts_tokens_works_on_answers_that_come_whole() -> None:
    """A batch of long answers without streaming is quiet on the wire, and no alarm."""
    detector, stalls = Streams(), {Leg.UPSTREAM: QUIET}
    outcomes = [
        outcome(
            judge(detector, snap(samples=tuple(engine(tokens=tokens)), stalls=stalls), clock),
            STUCK.name,
            leg="upstream",
        )
        for clock, tokens in ((0.0, 100.0), (1.0, 110.0), (60.9, 110.0), (61.1, 110.0))
    ]
    assert outcomes == [FAIL, PASS, PASS, FAIL]


def scene(
    *samples: Sample,
    events: int = 0,
    open_requests: int = 3,
    followed: int = 3,
    ended: int = 50,
    longest_wait: float = 0.0,
) -> Snapshot:
    """Engines behind a gateway, and what the wire between the two says."""
    up = Leg.UPSTREAM
    return snap(
        samples=samples,
        tallies={up: Tally(ended=ended, token_events=events)},
        stalls={up: Stall(followed, 0, 0.0, longest_wait=longest_wait)},
        windows=(made.window(up, open_requests=open_requests),),
    )


def over(detector: Streams, *scenes: Snapshot, replica: str = "r0") -> list[Outcome | None]:
    """What is said of an engine after 0, 60, 120 … seconds."""
    return [
        outcome(judge(detector, one, 60.0 * i), STALLED.name, replica=replica)
        for i, one in enumerate(scenes)
    ]


def test_two_minutes_without_a_token_are_a_stall() -> None:
    """Requests run, and neither the engine's counter nor the wire moves: after 120 s it alarms."""
    still = scene(*engine())
    assert over(Streams(), still, still, still) == [PASS, PASS, FAIL]


def test_it_alarms_at_120_seconds_and_not_before() -> None:
    """The limit is the one that the rule tells people."""
    detector, still = Streams(), scene(*engine())
    found = [judge(detector, still, at) for at in (0.0, 119.9, 120.0)]
    assert [outcome(f, STALLED.name, replica="r0") for f in found] == [PASS, PASS, FAIL]


def test_a_token_ends_it() -> None:
    """The counter moves again: the engine works."""
    still, moved = scene(*engine()), scene(*engine(tokens=1_001.0))
    assert over(Streams(), still, still, still, moved)[-1] is PASS


def test_an_idle_engine_is_never_stalled() -> None:
    """Nothing runs, nothing is expected; two minutes count from when it last had nothing to do."""
    idle, still = scene(*engine(running=0.0)), scene(*engine())
    assert over(Streams(), *[idle] * 9, still, still) == [*[PASS] * 9, PASS, FAIL]


def test_wire_events_keep_an_engine_that_counts_at_the_end_from_being_called_stalled() -> None:
    """llama.cpp counts a request's tokens when it ends; the wire sees them come."""
    flows = [scene(*engine(at_finish=True), events=100 * i) for i in range(9)]
    assert over(Streams(), *flows) == [PASS] * 9


def test_wire_events_stop_and_so_does_the_engine_that_counts_at_the_end() -> None:
    """Its streams have begun and bring nothing for two minutes."""
    still = scene(*engine(at_finish=True), events=100)
    assert over(Streams(), still, still, still) == [PASS, PASS, FAIL]


def test_decode_steps_are_work() -> None:
    """A whole answer of five minutes moves no counter of tokens and makes no event, but steps."""
    work = [scene(*engine(at_finish=True, steps=50.0 * i), followed=0) for i in range(6)]
    assert over(Streams(), *work) == [PASS] * 6


def test_an_engine_of_which_nothing_is_live_is_unknown() -> None:
    """It counts at the end and answers whole: nobody can say whether it works."""
    still = scene(*engine(at_finish=True), followed=0)
    assert over(Streams(), still, still, still, still) == [UNKNOWN] * 4


def test_tokens_of_one_replica_do_not_hide_another_that_stands_still() -> None:
    """Events on the wire are of all engines; an engine with a live counter is judged by its own."""
    scenes = [
        scene(*engine("r0"), *engine("r1", tokens=1_000.0 + i), events=100 * i) for i in range(3)
    ]
    assert over(Streams(), *scenes, replica="r0") == [PASS, PASS, FAIL]
    assert over(Streams(), *scenes, replica="r1") == [PASS, PASS, PASS]


def test_a_gauge_that_stands_still_is_no_stall() -> None:
    """After an abort of all some engines say for ever that requests run; the wire has none."""
    frozen = scene(*engine(), open_requests=0)
    assert over(Streams(), *[frozen] * 5) == [UNKNOWN] * 5


def test_the_next_request_to_such_an_engine_has_two_minutes() -> None:
    """The hours in which nothing was asked for do not count against it."""
    frozen, busy = scene(*engine(), open_requests=0), scene(*engine(), open_requests=1)
    assert over(Streams(), *[frozen] * 5, busy, busy)[-3:] == [UNKNOWN, PASS, FAIL]


def test_a_leg_without_requests_says_nothing_of_the_engine() -> None:
    """Requests that come another way are not seen; the engine's word alone decides then."""
    still = scene(*engine(), open_requests=0, ended=0)
    assert over(Streams(), still, still, still) == [PASS, PASS, FAIL]


def test_without_a_tap_the_engine_is_judged_by_its_counter() -> None:
    """A live counter is enough."""
    still = blind(samples=tuple(engine()))
    assert over(Streams(), still, still, still) == [PASS, PASS, FAIL]


def test_without_a_tap_an_engine_that_counts_at_the_end_is_unknown() -> None:
    """Its counter stands still for as long as a request takes."""
    still = blind(samples=tuple(engine(at_finish=True)))
    assert over(Streams(), still, still, still) == [UNKNOWN] * 3


def test_an_engine_that_does_not_say_what_runs_is_unknown() -> None:
    """Absent is not zero."""
    still = scene(*engine(running=None))
    assert over(Streams(), still, still, still) == [UNKNOWN] * 3


def test_a_blind_engine_is_unknown_and_starts_anew() -> None:
    """It neither passes nor keeps its two minutes while its metrics do not answer."""
    still = scene(*engine())
    dark = snap(collectors=(made.blind("engine:r0", Absence.TIMEOUT, "late"),))
    found = over(Streams(), still, still, dark, still, still, still)
    assert found == [PASS, PASS, UNKNOWN, PASS, PASS, FAIL]


def test_a_restarted_engine_starts_anew() -> None:
    """A counter that went back has moved."""
    still, fresh = scene(*engine(tokens=1_000.0)), scene(*engine(tokens=0.0))
    assert over(Streams(), still, still, fresh, fresh, fresh) == [PASS, PASS, PASS, PASS, FAIL]
