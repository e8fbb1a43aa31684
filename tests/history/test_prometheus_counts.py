"""Requests and latencies out of a sidecar's own counters in Prometheus."""

from __future__ import annotations

from sidecar.history.records import Counted
from sidecar.signals import Leg
from tests.history.asked import Table, read, rising
from tests.history.made import START

REQUESTS = "modelprobe_wire_requests_total"


def requests(table: Table, values: dict[float, float], **labels: str) -> None:
    known = {"leg": "downstream", "path": "/v1/chat/completions", "instance": "s", **labels}
    table.add(REQUESTS, values, **known)


def test_what_ended_in_each_minute() -> None:
    """Statuses and ends make the same tallies as on the wire; health checks are not among them."""
    table = Table()
    requests(table, rising(10, 100), status="200", end="complete")
    requests(table, rising(10, 3), status="503", end="complete")
    requests(table, rising(10, 2), status="429", end="complete")
    requests(table, rising(10, 1), status="200", end="server_closed")
    requests(table, rising(10, 4), status="0", end="client_gone")
    requests(table, rising(10, 5), status="200", end="lost")
    requests(table, rising(10, 50), status="200", end="complete", path="/healthz")
    records, _ = read(table)
    assert records[0] == Counted(START + 60, Leg.DOWNSTREAM, 115, 100, 6, 3, 4, 5)


def test_the_first_failures_are_not_lost() -> None:
    """A series appears with its first request: it has grown from nothing, if its sidecar was read
    a minute before.
    """
    table = Table()
    requests(table, rising(10, 100), status="200", end="complete")
    late = {at: 7.0 for at in rising(10, 0) if at >= START + 300}
    requests(table, late, status="500", end="complete")
    requests(table, rising(5, 3, begin=START + 300), status="500", end="complete", instance="new")
    failed = {r.at - START: r.failed for r in read(table)[0] if isinstance(r, Counted)}
    assert failed == {60 * n: {5: 7.0}.get(n, 0.0) + 3.0 * (n > 5) for n in range(1, 10)}


def test_latencies_come_as_buckets() -> None:
    """Cumulative, by signal."""
    table = Table()
    requests(table, rising(10, 10), status="200", end="complete")
    for le, step in (("0.5", 6.0), ("1.0", 9.0), ("+Inf", 10.0)):
        name = "modelprobe_wire_ttft_seconds_bucket"
        table.add(name, rising(10, step), le=le, leg="downstream", instance="s")
    [first, *_], _ = read(table)
    assert isinstance(first, Counted)
    assert first.latencies == (("ttft", ((0.5, 6.0), (1.0, 9.0), (float("inf"), 10.0))),)
