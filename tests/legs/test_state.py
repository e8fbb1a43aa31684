"""Frames of the tap on their way through the state: joined there, while both legs are watched."""

from __future__ import annotations

from collections.abc import Iterable

from sidecar.legs import overhead
from sidecar.legs.minute import Phase
from sidecar.probed import frames
from sidecar.signals import Leg, OpenRequests, RequestTiming, Sample
from sidecar.snapshot import WIRE_COLLECTOR, Snapshot
from sidecar.state import State
from tests.probed.test_frames import PORTS, record

SECOND = 10**9
STARTED = 1_790_000_000.0
BOTH = tuple(OpenRequests(leg, 0, None) for leg in Leg)


def framed(port: int, trace: int, *times: float) -> RequestTiming:
    """A request as ``probed`` sends it; start, first byte, event and token, last token and end in
    seconds of the kernel's clock.
    """
    start, first, last, end = (int(one * SECOND) for one in times)
    raw = record(
        times=(start, first, first, first, last, end, SECOND),
        port=port,
        traceparent=b"00-%032x-%016x-01" % (trace, port),
        request_id=b"",
    )
    return frames.unpack_request(frames.pack_request(raw), PORTS, STARTED)


def traffic(number: int) -> Iterable[RequestTiming]:
    """Requests through a gateway that adds 0.25 s everywhere, each in a trace of its own."""
    for i in range(1, number + 1):
        yield framed(8000, i, 10.25, 11.0, 11.5, 12.0)
        yield framed(8080, i, 10.0, 11.25, 11.75, 12.25)


def seen(state: State, *clocks: float) -> Snapshot:
    """The last of the snapshots at these times."""
    return [state.snapshot((), STARTED + clock, clock) for clock in clocks][-1]


def started() -> State:
    """A state whose tap has told of both legs."""
    state = State(STARTED, clock=0.0)
    state.apply(WIRE_COLLECTOR, BOTH, 1.0)
    return state


def test_both_legs_are_joined_by_what_the_frames_say() -> None:
    """Seven requests, their traces, and what the gateway added."""
    state = started()
    state.apply(WIRE_COLLECTOR, [*traffic(7), *BOTH], 13.0)
    snapshot = seen(state, 14.0, 17.0)
    assert snapshot.joins is not None
    assert snapshot.joins.joined == 7
    assert [(p.phase, p.p50) for p in snapshot.joins.phases] == [(phase, 0.25) for phase in Phase]
    joined = list(snapshot.scalars(overhead.JOINED.name))
    assert joined == [Sample(overhead.JOINED.name, 7.0, (("by", "trace_id"),))]


def test_one_watched_leg_joins_nothing_and_counts_nothing() -> None:
    """Without a gateway no request is said to lack its other side."""
    state = State(STARTED, clock=0.0)
    only = OpenRequests(Leg.DOWNSTREAM, 0, None)
    down = [one for one in traffic(7) if one.leg is Leg.DOWNSTREAM]
    for at in (12.0, 13.0):
        state.apply(WIRE_COLLECTOR, [*down, only], at)
    snapshot = seen(state, 14.0, 90.0)
    assert snapshot.joins is None
    names = {metric.name for metric in overhead.METRICS}
    assert names.isdisjoint(snapshot.by_metric())


def test_a_blind_tap_leaves_no_window() -> None:
    """The share of joined requests is withdrawn with the tap; what was counted stays."""
    state = started()
    state.apply(WIRE_COLLECTOR, [*traffic(7), *BOTH], 13.0)
    seen(state, 17.0)
    state.withdraw(WIRE_COLLECTOR)
    snapshot = seen(state, 18.0)
    assert snapshot.joins is None
    assert overhead.RATIO.name not in snapshot.by_metric()
    assert overhead.JOINED.name in snapshot.by_metric()
