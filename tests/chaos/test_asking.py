"""What a command line may not ask for."""

from __future__ import annotations

import math

import pytest

from chaos.asking import mending, same, sensible
from chaos.faults import FAULTS, fault
from chaos.running import Asked
from chaos.target import Refused

GOOD = {"most": 120.0, "hold": 3.0, "steady": 60.0, "period": 0.2}


def test_the_defaults_are_sensible() -> None:
    """Those of the command, with the longest that any fault lasts; the check says so by passing."""
    asked = Asked(faults=(), target="port:1", environment="staging", url="")
    holds = [method.hold_seconds for name in FAULTS for method in fault(name).methods]
    assert max(holds) > 0
    sensible(asked.max_seconds, max(holds), asked.steady_seconds, asked.period)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_of_seconds_is_refused(name: str, value: float) -> None:
    """A range lets NaN pass, and a period of it would be a flood."""
    with pytest.raises(Refused, match="give a number of seconds"):
        sensible(**(GOOD | {name: value}))


@pytest.mark.parametrize(
    ("changed", "remedy"),
    [
        ({"hold": 61.0}, "--max-seconds 120: .* give 122 or more"),
        ({"period": 13.0, "steady": 600.0}, "--max-seconds 120: .* give 130 or more"),
        ({"period": 6.1}, "--steady-seconds 60: .* give 61 or more"),
    ],
)
def test_times_in_which_nothing_could_recover_are_refused(
    changed: dict[str, float], remedy: str
) -> None:
    """Every run would come out as not recovered, which no service deserves."""
    with pytest.raises(Refused, match=remedy):
        sensible(**(GOOD | changed))


@pytest.mark.parametrize("command", ["'", " ", "/no/such/program --now"])
def test_a_repair_that_cannot_be_run_is_refused_before_anything_is(command: str) -> None:
    """Rather than when it is needed."""
    with pytest.raises(Refused, match="--repair"):
        mending(command)


@pytest.mark.parametrize(
    "url", ["", "http://127.0.0.1:8000/", "http://engine:9", "https://localhost:8000"]
)
def test_an_address_that_may_be_the_targets_is_taken(url: str) -> None:
    """What another host is cannot be told from here."""
    same("port:8000", url)
    same("pid:1", "http://127.0.0.1:1")


@pytest.mark.parametrize("url", ["http://127.0.0.1:8001", "http://localhost", "http://[::1]:9"])
def test_the_address_of_another_engine_is_refused(url: str) -> None:
    """It would recover without ever having been broken."""
    with pytest.raises(Refused, match="is not the target"):
        same("port:8000", url)


def test_no_repair_is_none() -> None:
    """Nothing is run then."""
    assert mending("") is None
    assert mending("true") is not None
