"""The tap attached in this process, and what it saw of each leg, for the tests of real servers."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from sidecar.probed import frames
from sidecar.probed.frames import Counters
from sidecar.probed.wire import WireProbe
from sidecar.probed.wire_table import port_of
from sidecar.signals import End, Leg, RequestTiming
from sidecar.testing import wait_for
from tests.e2e.exchanges import PATH, Exchange
from tests.probed.reference import count

DRAIN_SECONDS = 0.02  # the ring holds 560 records


class Tapped:
    """Records of these ports since this began; times are CLOCK_MONOTONIC's, as the client's are.

    A thread drains: the ring is made for a reader that comes every 40 ms.
    """

    def __init__(self, probe: WireProbe, legs: Mapping[int, Leg]) -> None:
        self.probe, self._legs = probe, dict(legs)
        probe.watch(legs)
        list(probe.drain())
        self._found: list[RequestTiming] = []
        self._before = probe.counters()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="drain")
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(DRAIN_SECONDS):
            self._drain()

    def _drain(self) -> None:
        for record in self.probe.drain():
            if port_of(record) in self._legs:
                frame = frames.pack_request(record)
                self._found.append(frames.unpack_request(frame, self._legs, 0.0))

    def stop(self) -> None:
        """Ends the thread; the probe is the caller's."""
        self._over.set()
        self._thread.join()

    def counted(self) -> Counters:
        """What the kernel counted since this began."""
        now = self.probe.counters()
        return Counters(*(b - a for a, b in zip(self._before, now, strict=True)))

    def seen(self, leg: Leg, path: str | None = None) -> list[RequestTiming]:
        """The ended requests of a leg, of one path if wanted."""
        every = list(self._found)
        return [one for one in every if one.leg is leg and path in (None, one.path)]

    def wait(self, leg: Leg, count: int = 1, path: str | None = None) -> list[RequestTiming]:
        """The same once there are so many; AssertionError when there never are, or are more."""
        wait_for(lambda: len(self.seen(leg, path)) >= count, 10, f"{count} of {leg} {path}")
        found = self.seen(leg, path)
        assert len(found) == count, found
        return found

    def open(self) -> int:
        """How many requests are open on the watched ports now."""
        counts = self.probe.sweep(0, 2**63, 0).counts.values()
        return sum(one.count for one in counts)


def whole(found: Iterable[RequestTiming], counted: Counters) -> list[RequestTiming]:
    """Those whose bytes were all seen. A packet whose connection another CPU held for too long is
    missed, counted and marked; anything else that is marked is a defect.
    """
    every = list(found)
    marked = [one for one in every if one.resynced]
    assert len(marked) <= counted.contended, marked
    return [one for one in every if not one.resynced]


def agrees(record: RequestTiming, asked: Exchange) -> None:
    """What the tap says of one request and what its client knows are one story.

    Only orders that hold on any machine: a packet leaves after its sender decided so, and is
    passed before its receiver has read it.
    """
    assert asked.sent <= record.at
    assert record.ttfb_seconds is not None
    assert record.ttft_seconds is not None
    assert record.last_token_seconds is not None
    assert record.largest_gap_seconds is not None
    assert record.at + record.ttft_seconds <= asked.first
    assert record.at + record.seconds <= asked.ended
    assert 0 < record.ttfb_seconds <= record.ttft_seconds
    assert record.ttft_seconds <= record.last_token_seconds <= record.seconds
    spread = record.last_token_seconds - record.ttft_seconds
    assert record.largest_gap_seconds <= spread + 1e-9
    assert sum(number for _, number in record.gaps) == record.token_events - 1


def exact(tap: Tapped, leg: Leg, asked: list[Exchange]) -> None:
    """Every request of the client is there once, with the events of its answer and no others."""
    found = tap.wait(leg, len(asked), PATH)
    assert {one.trace_id for one in found} == {one.trace_id for one in asked}
    by_trace = {one.trace_id: one for one in asked}
    for one in whole(found, tap.counted()):
        own = by_trace[str(one.trace_id)]
        counts = count(own.body)
        assert (one.events, one.token_events) == (counts.events, counts.token_events)
        assert (one.status, one.end, one.method) == (200, End.COMPLETE, "POST")
        assert (one.streamed, one.encoded) == (True, False)
        agrees(one, own)
