"""Tests of sidecar.streams: what reports of open requests add, and which streams stand still."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.signals import End, Leg, OpenRequests, RequestTiming
from sidecar.streams import Progress, Stall, Streams
from sidecar.testing import timing
from sidecar.traffic import Traffic


def report(events: int, last: float = 0.5, end: End = End.OPEN, **changes: object) -> RequestTiming:
    """A stream whose first token came after 0.1 s and whose latest of ``events`` at ``last``."""
    begun = {"ttft_seconds": 0.1, "last_token_seconds": last} if events else {}
    none = {"ttft_seconds": None, "last_token_seconds": None}
    fields: dict[str, object] = {"end": end, "token_events": events, "seconds": last}
    return timing(**{**none, **begun, **fields, **changes})


def silent(gap: float, silence: float, events: int = 101, **changes: object) -> RequestTiming:
    """An open stream of ``events`` tokens ``gap`` apart, and none for ``silence`` since."""
    last = 0.1 + gap * (events - 1)
    return report(events, last, seconds=last + silence, **changes)


told = st.lists(st.tuples(st.integers(0, 500), st.floats(0.1, 100)), max_size=12)


@given(told, st.tuples(st.integers(0, 500), st.floats(0.1, 100)))
def test_every_token_is_credited_once(
    reports: list[tuple[int, float]], end: tuple[int, float]
) -> None:
    """Whatever is reported in between and in whatever order: in the end the totals are credited."""
    streams = Streams()
    found = [streams.report(report(*one), float(at)) for at, one in enumerate(reports)]
    found.append(streams.report(report(*end, end=End.COMPLETE), 99.0))
    most = max(events for events, _ in (*reports, end))
    spans = [last - 0.1 for events, last in (*reports, end) if events]
    assert sum(progress.token_events for progress in found) == most
    assert sum(progress.gaps for progress in found) == max(0, most - 1)
    assert sum(progress.seconds for progress in found) == pytest.approx(max(spans, default=0.0))
    assert all(min(p.token_events, p.gaps, p.seconds) >= 0 for p in found)


def test_the_first_event_makes_no_gap() -> None:
    """Gaps lie between events: one event has none, whether the others come with it or later."""
    streams = Streams()
    assert streams.report(report(1, last=0.1), 1.0) == Progress(1, 0, 0.0)
    assert streams.report(report(6, last=0.6), 2.0) == Progress(5, 5, 0.5)
    assert Streams().report(report(6, last=0.6), 1.0) == Progress(6, 5, 0.5)


def test_an_end_alone_tells_all() -> None:
    """A request that ended before its first report is credited whole, by its end."""
    assert Streams().report(report(13, last=0.49, end=End.COMPLETE), 1.0) == Progress(
        13, 12, pytest.approx(0.39)
    )


def test_ends_of_two_requests_are_two() -> None:
    """The same server and another start are another request."""
    streams = Streams()
    streams.report(report(7), 1.0)
    assert streams.report(report(7, at=1_001.0), 1.0).token_events == 7


def test_too_many_wait_for_their_ends() -> None:
    """Beyond 5,000 open requests nothing more is kept; their ends tell all of them at once."""
    streams = Streams()
    for i in range(5_003):
        streams.report(report(2, at=float(i)), 1.0)
    assert len(streams._open) == 5_000
    assert streams.report(report(3, at=5_002.0), 2.0) == Progress()
    assert streams.report(report(5, at=5_002.0, end=End.COMPLETE), 3.0).token_events == 5


def test_what_came_before_we_watched_is_credited_to_no_moment() -> None:
    """After a blind minute an open stream does not bring its thousand tokens a second time."""
    streams = Streams()
    streams.watch(100.0)
    assert streams.report(report(1_000, last=40.0), 141.0).token_events == 1_000
    streams.forget()
    streams.watch(200.0)
    assert streams.report(report(2_500, last=100.0), 201.0) == Progress()
    assert streams.report(report(2_525, last=101.0), 202.0) == Progress(25, 25, 1.0)


def test_a_tap_that_comes_back_makes_no_burst_of_tokens() -> None:
    """The rate on the page and the tally of the leg do not jump by a stream's whole past."""
    seen = Traffic()
    seen.watch(100.0)
    seen.set_open(OpenRequests(Leg.DOWNSTREAM, 1, 40.0), 141.0)
    seen.add(report(1_000, last=40.0), 141.0)
    seen.lose()
    seen.watch(200.0)
    seen.set_open(OpenRequests(Leg.DOWNSTREAM, 1, 100.0), 201.0)
    seen.add(report(2_500, last=100.0), 201.0)
    tallies = seen.tallies()
    assert tallies is not None
    assert tallies[Leg.DOWNSTREAM].token_events == 1_000
    assert seen.window(Leg.DOWNSTREAM, 201.0, seconds=10).token_events_per_second is None


def test_an_old_request_that_ends_as_we_begin_is_credited_to_no_moment() -> None:
    """Nobody knows how much of it fell into the time that is watched."""
    streams = Streams()
    streams.watch(200.0)
    assert streams.report(report(900, last=30.0, end=End.COMPLETE), 200.4) == Progress()
    assert streams.report(report(4, last=0.3, end=End.COMPLETE, at=7.0), 200.4).token_events == 4


@pytest.mark.parametrize(
    ("gap", "silence", "stuck"),
    [(0.02, 4.9, 0), (0.02, 5.1, 1), (2.0, 9.9, 0), (2.0, 10.1, 1), (1.0, 5.1, 1)],
)
def test_patience_is_five_seconds_or_five_gaps(gap: float, silence: float, stuck: int) -> None:
    """A stream stands still after 5 s, a slow one after five times its own mean gap."""
    streams = Streams()
    streams.report(silent(gap, silence), 10.0)
    found = streams.stall(Leg.DOWNSTREAM, 10.0)
    assert (found.followed, found.stuck) == (1, stuck)
    assert found.longest_seconds == pytest.approx(silence if stuck else 0.0)


def test_a_stream_of_one_token_has_five_seconds() -> None:
    """With no gap of its own yet, the floor counts."""
    streams = Streams()
    streams.report(silent(0.0, 4.9, events=1), 10.0)
    streams.report(silent(0.0, 5.1, events=1, at=7.0), 10.0)
    assert streams.stall(Leg.DOWNSTREAM, 10.0).stuck == 1


def test_no_stall_before_the_first_token() -> None:
    """A prefill of two minutes is slow, and no stream that stands still."""
    streams = Streams()
    streams.report(report(0, seconds=120.0), 10.0)
    assert streams.stall(Leg.DOWNSTREAM, 10.0) == Stall(0, 0, 0.0, waiting=1)


def test_what_is_not_reported_any_more_does_not_count() -> None:
    """Open requests are told of each second; one that was not for 3.5 s is not known to be open."""
    streams = Streams()
    streams.report(silent(0.02, 9.0), 10.0)
    assert streams.stall(Leg.DOWNSTREAM, 13.5).stuck == 1
    assert streams.stall(Leg.DOWNSTREAM, 13.6).followed == 0


@pytest.mark.parametrize("end", [end for end in End if end is not End.OPEN])
def test_an_ended_stream_is_not_stuck(end: End) -> None:
    """However it ended, it does not stand still any more."""
    streams = Streams()
    streams.report(silent(0.02, 9.0), 10.0)
    streams.report(silent(0.02, 9.5, end=end), 10.5)
    assert streams.stall(Leg.DOWNSTREAM, 10.5).followed == 0


def test_legs_are_told_apart() -> None:
    """A stream that stands still towards the client says nothing of the engine's leg."""
    streams = Streams()
    streams.report(silent(0.02, 9.0), 10.0)
    streams.report(silent(0.02, 0.0, leg=Leg.UPSTREAM), 10.0)
    assert [streams.stall(leg, 10.0).stuck for leg in Leg] == [1, 0]


def test_blindness_forgets_who_stood_still() -> None:
    """What happened while nobody looked is unknown."""
    streams = Streams()
    streams.report(silent(0.02, 9.0), 10.0)
    streams.forget()
    assert streams.stall(Leg.DOWNSTREAM, 10.0).followed == 0


def test_lost_ends_take_no_room_for_ever() -> None:
    """A request of whose end nothing was told is dropped a minute after its last report."""
    streams = Streams()
    streams.report(report(2), 10.0)
    streams.tidy(70.0)
    assert len(streams._open) == 1
    streams.tidy(70.1)
    assert not streams._open


def waiting(streams: Streams, now: float, many: int = 2, **changes: object) -> Stall:
    """What is said when so many requests that have not begun are told of at a moment."""
    for i in range(many):
        streams.report(report(0, at=1_000.0 + i, seconds=1.0, **changes), now)
    return streams.stall(Leg.DOWNSTREAM, now)


def test_a_leg_that_brings_nothing_is_quiet_after_a_minute() -> None:
    """Two open requests and not one token among them; whoever they are from second to second."""
    streams = Streams()
    assert waiting(streams, 0.0).quiet_seconds == 0.0
    assert waiting(streams, 60.0).quiet_seconds == 0.0
    assert waiting(streams, 60.5) == Stall(0, 0, 0.0, waiting=2, quiet_seconds=60.5)


@pytest.mark.parametrize(
    ("broke", "quiet"),
    [
        (report(1, at=7.0), False),
        (report(0, at=7.0, seconds=9.0, end=End.COMPLETE), False),
        (report(0, at=7.0, seconds=9.0, end=End.COMPLETE, status=504), True),
        (report(0, at=7.0, seconds=9.0, end=End.CLIENT_GONE), True),
        (report(1, at=7.0, leg=Leg.UPSTREAM), True),
    ],
)
def test_what_breaks_the_quiet(broke: RequestTiming, quiet: bool) -> None:
    """A token or a good end of this leg; a time-out, or a client that gives up, is no work."""
    streams = Streams()
    waiting(streams, 0.0)
    streams.report(broke, 50.0)
    assert (waiting(streams, 61.0).quiet_seconds > 0) is quiet


def test_one_long_prefill_alone_is_not_quiet() -> None:
    """One request by itself may take minutes; the minute counts from the second one on."""
    streams = Streams()
    assert [waiting(streams, at, many=1).quiet_seconds for at in (0.0, 90.0)] == [0.0, 0.0]
    assert [waiting(streams, at).quiet_seconds for at in (91.0, 150.0)] == [0.0, 0.0]
    assert waiting(streams, 152.0).quiet_seconds == 61.0


def test_where_answers_take_long_the_quiet_may_too() -> None:
    """Answers that come whole after half a minute make the leg wait for five times as long."""
    streams = Streams()
    streams.report(report(0, at=7.0, seconds=30.0, end=End.COMPLETE), 0.0)
    assert [waiting(streams, at).quiet_seconds for at in (1.0, 149.0)] == [0.0, 0.0]
    assert waiting(streams, 152.0).quiet_seconds > 150.0


def test_one_long_answer_among_short_ones_is_remembered_for_hours() -> None:
    """Twice the longest wait of late, which halves in an hour, however many chats came since."""
    streams = Streams()
    streams.report(report(0, at=7.0, seconds=90.0, end=End.COMPLETE), 0.0)
    for i in range(200):
        streams.report(report(3, at=100.0 + i, end=End.COMPLETE), 1.0)
    assert [waiting(streams, at).quiet_seconds for at in (2.0, 170.0)] == [0.0, 0.0]
    assert waiting(streams, 182.5).quiet_seconds > 174.0


def test_quiet_is_not_known_of_a_blind_tap() -> None:
    """What came meanwhile was not seen."""
    streams = Streams()
    waiting(streams, 0.0)
    streams.forget()
    assert waiting(streams, 100.0).quiet_seconds == 0.0
