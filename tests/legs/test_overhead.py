"""What is counted of joined requests, and what the gateway added to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from sidecar.legs import overhead
from sidecar.legs.minute import JoinWindow, Phase
from sidecar.legs.overhead import Overhead
from sidecar.legs.pairing import Reason
from sidecar.signals import End, Histogram, Leg, RequestTiming, Sample
from sidecar.testing import timing

AT = 1_790_000_000.0


def pair(number: int, **upstream: object) -> tuple[RequestTiming, RequestTiming]:
    """A client waits 0.5 s and 1 s; the engine was asked after 0.125 s, its first token came after
    0.25 s of its own and its end after 0.75 s. All are sums of powers of two, so exact.
    """
    trace = f"{number + 1:032x}"
    down = timing(at=AT, seconds=1.0, ttft_seconds=0.5, trace_id=trace)
    fields = {"at": AT + 0.125, "seconds": 0.75, "ttft_seconds": 0.25, **upstream}
    return down, timing(leg=Leg.UPSTREAM, trace_id=trace, **fields)


def fed(timings: Iterable[RequestTiming], generates: bool = True) -> Overhead:
    """All told at once, and settled."""
    seen = Overhead()
    for one in timings:
        seen.add(one, 1.0, generates)
    seen.settle(5.0)
    seen.settle(9.0)
    return seen


def minute(seen: Overhead, now: float = 9.0) -> JoinWindow:
    """The last minute, which has to be there."""
    window = seen.window(now)
    assert window is not None
    return window


def series(seen: Overhead, now: float = 9.0) -> dict[str, list[Sample | Histogram]]:
    """What is exported, by metric."""
    found: dict[str, list[Sample | Histogram]] = {}
    for one in seen.signals(seen.window(now)):
        found.setdefault(one.metric, []).append(one)
    return found


def value(seen: Overhead, metric: str, *labels: tuple[str, str]) -> float:
    """One counter or gauge."""
    return next(
        one.value
        for one in series(seen)[metric]
        if isinstance(one, Sample) and one.labels == labels
    )


def test_nothing_is_said_of_nothing() -> None:
    """Before both legs were seen there is neither a series nor a window."""
    seen = Overhead()
    seen.settle(9.0)
    assert seen.window(9.0) is None
    assert series(seen) == {}


def test_each_phase_is_a_difference_of_one_request() -> None:
    """Asked after 0.125 s, the first token 0.125 s and the end 0.125 s later than the engine's."""
    window = minute(fed(one for i in range(7) for one in pair(i)))
    assert [(p.phase, p.n, p.p50, p.p99) for p in window.phases] == [
        (Phase.REQUEST, 7, 0.125, 0.125),
        (Phase.FIRST_TOKEN, 7, 0.125, 0.125),
        (Phase.END, 7, 0.125, 0.125),
    ]
    assert (window.joined, window.ratio, window.ttft_p50) == (7, 1.0, 0.5)


def test_what_was_not_there_is_not_measured() -> None:
    """Without a first token, and with an end that was none, only the first phase is left."""
    down, up = pair(1, ttft_seconds=None, end=End.SERVER_CLOSED)
    assert [p.phase for p in minute(fed((down, up))).phases] == [Phase.REQUEST]


def test_a_gateway_that_ends_first_is_counted_apart() -> None:
    """An end 0.0625 s before the engine's is no overhead, and no 0 either."""
    seen = fed(pair(1, seconds=0.9375))
    assert minute(seen).phase(Phase.END) is None
    assert value(seen, overhead.NEGATIVE.name, ("phase", "end")) == 1
    phases = [dict(one.labels)["phase"] for one in series(seen)[overhead.OVERHEAD.name]]
    assert phases == ["request", "first_token"]


def test_the_histogram_keeps_the_sum_and_a_trace() -> None:
    """Three requests of 0.125 s are 0.375 s, with the trace of one."""
    seen = fed(one for i in range(3) for one in pair(i))
    first = series(seen)[overhead.OVERHEAD.name][1]
    assert isinstance(first, Histogram)
    assert (first.counts[-1], first.sum, first.labels) == (3, 0.375, (("phase", "first_token"),))
    assert [e.trace_id for e in first.exemplars if e is not None] == [f"{3:032x}"]


def test_attempts_are_counted_and_their_first_is_the_request() -> None:
    """Two attempts: the histogram holds their number, the phase begins with the first."""
    down, up = pair(1)
    failed = timing(
        leg=Leg.UPSTREAM, at=AT + 0.0625, seconds=0.03, status=503, ttft_seconds=None,
        trace_id=down.trace_id,
    )  # fmt: skip
    seen = fed((failed, up, down))
    (tried,) = series(seen)[overhead.ATTEMPTS.name]
    assert isinstance(tried, Histogram)
    assert (tried.bounds[:3], tried.counts, tried.sum) == ((1, 2, 3), (0, 1, 1, 1), 2)
    window = minute(seen)
    first = window.phase(Phase.REQUEST)
    assert first is not None
    assert (first.p50, window.retried, window.hidden) == (0.0625, 1, 1)


def test_a_retry_that_did_not_help_hides_nothing() -> None:
    """Two failed attempts and a client that was told so."""
    down, up = pair(1, status=503, ttft_seconds=None)
    failed = timing(
        leg=Leg.UPSTREAM, at=AT + 0.0625, seconds=0.03, status=503, ttft_seconds=None,
        trace_id=down.trace_id,
    )  # fmt: skip
    told = timing(at=AT, seconds=1.0, ttft_seconds=None, trace_id=down.trace_id, status=503)
    window = minute(fed((failed, up, told)))
    assert (window.retried, window.hidden) == (1, 0)


@pytest.mark.parametrize("end", [End.SERVER_CLOSED, End.ERROR_EVENT])
def test_a_good_answer_of_a_broken_one_is_counted(end: End) -> None:
    """The client was told 200 and complete, the engine had broken off."""
    assert minute(fed(pair(1, end=end))).broken == 1
    assert minute(fed(pair(1))).broken == 0


def test_what_the_gateway_refused_is_in_no_share() -> None:
    """Of three joined, one lost and five refused the share is three of four."""
    refused = [timing(at=AT, status=401, seconds=0.01, body_key=i) for i in range(5)]
    lonely = timing(at=AT, body_key=101)
    seen = fed([*refused, lonely, *(one for i in range(3) for one in pair(i))])
    window = minute(seen)
    assert (window.joined, window.unjoined, window.refused) == (3, ((Reason.NO_UPSTREAM, 1),), 5)
    assert value(seen, overhead.RATIO.name) == window.ratio == 0.75
    labels = (("leg", "downstream"), ("reason", "no_upstream"))
    assert value(seen, overhead.UNJOINED.name, *labels) == 6


def test_other_requests_are_joined_but_not_measured() -> None:
    """A list of models is one request on both legs; the gateway's share is that of LLM requests."""
    seen = fed(pair(1), generates=False)
    assert value(seen, overhead.JOINED.name, ("by", "trace_id")) == 1
    assert (minute(seen).joined, minute(seen).ratio, minute(seen).phases) == (0, None, ())
    assert overhead.RATIO.name not in series(seen)


def test_what_waits_is_a_gauge() -> None:
    """A request without its other side is pending until it is counted."""
    seen = Overhead()
    seen.add(pair(1)[1], 1.0, True)
    seen.settle(2.0)
    assert value(seen, overhead.PENDING.name, ("leg", "upstream")) == 1
    assert value(seen, overhead.PENDING.name, ("leg", "downstream")) == 0
    seen.settle(70.0)
    assert value(seen, overhead.PENDING.name, ("leg", "upstream")) == 0


def test_the_minute_slides_and_totals_stay() -> None:
    """After a minute the window is empty; the counters are not."""
    seen = fed(pair(1))
    assert minute(seen, 64.0).joined == 1
    assert (minute(seen, 66.0).joined, minute(seen, 66.0).ratio) == (0, None)
    assert value(seen, overhead.JOINED.name, ("by", "trace_id")) == 1


def test_a_blind_tap_has_no_window() -> None:
    """What waited is counted as such; there is no gauge, and not a zero."""
    seen = Overhead()
    seen.add(pair(1)[0], 1.0, True)
    seen.lose()
    seen.settle(2.0)
    found = series(seen, 2.0)
    assert found.keys() == {overhead.UNJOINED.name}
    assert seen.window(2.0) is None


def test_where_attempts_may_be_missing_none_are_counted() -> None:
    """Joined by the answer's id alone: the first token is known, the first attempt is not."""
    down, up = (replace(one, trace_id=None, response_key=7) for one in pair(1))
    seen = fed((down, up))
    assert [one.phase for one in minute(seen).phases] == [Phase.FIRST_TOKEN, Phase.END]
    assert overhead.ATTEMPTS.name not in series(seen)
