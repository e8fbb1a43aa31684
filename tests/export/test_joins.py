"""What the page and the API say of joined requests."""

from __future__ import annotations

import pytest

from sidecar.export import api
from sidecar.export.page.headline import rows
from sidecar.legs.minute import JoinWindow, Phase, PhaseWindow
from sidecar.legs.pairing import Reason
from sidecar.signals import Leg
from sidecar.snapshot import Snapshot
from tests.export import made

WINDOW = JoinWindow(
    seconds=60.0,
    joined=470,
    unjoined=((Reason.NO_UPSTREAM, 9),),
    retried=3,
    hidden=2,
    ttft_p50=0.0147,
    phases=(
        PhaseWindow(Phase.REQUEST, 470, 0.0008, 0.0021),
        PhaseWindow(Phase.FIRST_TOKEN, 470, 0.0011, 0.0034),
        PhaseWindow(Phase.END, 469, 0.0005, 0.0019),
    ),
)


def overhead(snapshot: Snapshot) -> tuple[str, str]:
    """Value and detail of the gateway's row, with plain spaces."""
    cell = next(row.downstream for row in rows(snapshot) if row.key == "overhead")
    return tuple(text.replace("\N{NO-BREAK SPACE}", " ") for text in (cell.value, cell.detail))  # type: ignore[return-value]  # two of them


def test_the_page_says_what_the_gateway_adds_request_by_request() -> None:
    """Median and 99th percentile of each phase, and of how many."""
    assert overhead(made.snapshot(joins=WINDOW)) == (
        "+1.10 ms",
        "p99 3.40 ms · until it asks 0.80 ms, p99 2.10 ms · at the end 0.50 ms, p99 1.90 ms · "
        "98 % of 479 joined",
    )


def test_where_nothing_is_joined_the_page_keeps_to_the_medians() -> None:
    """It says that none was joined beside the difference of what is known of all."""
    none = JoinWindow(60.0, 0, ((Reason.NO_KEY, 479),))
    assert overhead(made.snapshot(joins=none)) == (
        "+0.90 ms",
        "difference of the medians · 0 % of 479 joined",
    )


@pytest.mark.parametrize("scene", [made.tap_blind, made.no_traffic])
def test_the_page_is_silent_where_the_wire_is(scene: object) -> None:
    """A window of a leg that says nothing now is not shown."""
    before = scene() if callable(scene) else None
    assert isinstance(before, Snapshot)
    after = made.snapshot(
        joins=WINDOW, collectors=before.collectors, windows=before.windows, totals=before.totals
    )
    assert overhead(after)[0] == "–"


def test_a_service_without_a_gateway_has_no_such_row() -> None:
    """One leg is watched: there is nothing to join."""
    assert "overhead" not in [row.key for row in rows(made.snapshot(legs=(Leg.DOWNSTREAM,)))]


def test_the_api_tells_all_of_it() -> None:
    """The window as plain data, null while not both legs are seen."""
    assert api.state(made.snapshot(), "1", made.AT)["joins"] is None
    assert api.state(made.snapshot(joins=WINDOW), "1", made.AT)["joins"] == {
        "seconds": 60.0,
        "requests": 479,
        "joined": 470,
        "joined_ratio": 470 / 479,
        "unjoined": {"no_upstream": 9},
        "refused": 0,
        "retried": 3,
        "hidden": 2,
        "broken": 0,
        "ttft_seconds": {"p50": 0.0147},
        "overhead_seconds": {
            "request": {"n": 470, "p50": 0.0008, "p99": 0.0021},
            "first_token": {"n": 470, "p50": 0.0011, "p99": 0.0034},
            "end": {"n": 469, "p50": 0.0005, "p99": 0.0019},
        },
    }
