"""The reuse of the KV cache out of Prometheus: a share of what was looked up, or why not."""

from __future__ import annotations

import pytest

from sidecar.diff.asked import Where
from sidecar.diff.reuse import reuse
from sidecar.signals import NoData
from tests.history.asked import Table, api, rising
from tests.history.made import START

HITS = "modelprobe_engine_prefix_cache_hits_total"
LOOKED = "modelprobe_engine_prefix_cache_queries_total"
END = START + 3_600


def table(hits: float = 60, **labels: str) -> Table:
    """An hour in which 100 tokens a minute were looked up."""
    found = Table()
    own = {"replica": "10.0.0.1:8000", "instance": "i", "definition": "tokens", **labels}
    found.add(LOOKED, rising(61, 100), **own)
    found.add(HITS, rising(61, hits), **own)
    return found


def test_the_share_that_was_found() -> None:
    """Hits over what was looked up, of the minutes in which both are known."""
    found = reuse(api(table()), START, END, Where())
    assert found.value is not None
    assert found.value.value == pytest.approx(0.6)
    assert found.value.lower <= 0.6 <= found.value.upper


def test_of_one_replica() -> None:
    """The engine whose replica or instance has the server's name."""
    asked = table()
    other = {"replica": "r1", "instance": "10.0.0.2:8000", "definition": "tokens"}
    asked.add(LOOKED, rising(61, 1_000), **other)
    asked.add(HITS, rising(61, 100), **other)
    for server, share in (("10.0.0.1:8000", 0.6), ("10.0.0.2:8000", 0.1)):
        found = reuse(api(asked), START, END, Where(server=server))
        assert found.value is not None
        assert found.value.value == pytest.approx(share)
    none = reuse(api(asked), START, END, Where(server="r9"))
    assert none.value is None
    assert "replica or instance is r9" in none.why


def test_absent_and_idle_are_no_zero() -> None:
    """Each is said."""
    assert "has no modelprobe_engine_prefix" in reuse(api(Table()), START, END, Where()).why
    idle = Table()
    idle.add(LOOKED, rising(61, 0), definition="tokens")
    idle.add(HITS, rising(61, 0), definition="tokens")
    assert "nothing was looked up" in reuse(api(idle), START, END, Where()).why


def test_a_source_that_is_down() -> None:
    """It is for the caller to say."""
    import httpx

    with pytest.raises(NoData):
        reuse(api(lambda _: httpx.Response(503)), START, END, Where())
