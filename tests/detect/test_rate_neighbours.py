"""What a minute is judged by when its own concurrency is new, and after a gap."""

from __future__ import annotations

from sidecar.detect.rate import DOWN, OUT_OF_BAND, SHIFTED
from sidecar.verdicts import AlarmState, Outcome, Severity
from tests.detect.test_rate import Service, of


def test_field_case_34_b_as_it_stands() -> None:
    """Only ever 8 at once before, then 7: their own bin is new, and 55 tokens/s are too few for
    eight as well.
    """
    service = Service()
    service.minutes(120, 240.0, 0.03)
    found = [of(verdicts) for verdicts in service.minutes(3, 55.0, concurrency=7)]
    assert found[-1] is Outcome.FAIL
    assert service.alarms()[OUT_OF_BAND.name] is AlarmState.FIRING


def test_fewer_at_once_may_be_faster() -> None:
    """What is above the band of a busier baseline is no news, and no proof of health."""
    service = Service()
    service.minutes(120, 51.0, 0.03)
    found = {of(verdicts) for verdicts in service.minutes(5, 121.0, concurrency=1)}
    assert found == {Outcome.UNKNOWN}


def test_a_lighter_load_does_not_resolve() -> None:
    """51 → 20 tokens/s at eight at once fires; 48 at one, where 121 is healthy, proves nothing."""
    service = Service()
    service.minutes(120, 51.0, 0.03)
    service.minutes(3, 20.0)
    assert of(service.minute(48.0, concurrency=1)) is Outcome.UNKNOWN
    assert service.alarms()[OUT_OF_BAND.name] is AlarmState.FIRING


def test_more_at_once_is_not_judged_by_less() -> None:
    """A sequence is slower with more beside it: that says nothing."""
    service = Service()
    service.minutes(120, 121.0, 0.03, concurrency=1)
    found = {of(verdicts) for verdicts in service.minutes(5, 22.0, concurrency=32)}
    assert found == {Outcome.UNKNOWN}


def test_the_first_slow_minute_after_a_gap_resolves_nothing() -> None:
    """Ten minutes without a value break the row; the alarm goes on until the rate is back."""
    service = Service()
    service.minutes(120, 42.6, 0.05)
    service.minutes(3, 20.0)
    service.at += 600.0
    assert of(service.minute(20.0)) is Outcome.UNKNOWN
    assert service.alarms()[OUT_OF_BAND.name] is AlarmState.FIRING
    service.minute(42.6)
    assert service.alarms()[OUT_OF_BAND.name] is AlarmState.RESOLVED


def test_a_page_needs_both_rules() -> None:
    """Below the band for three minutes and below the chart's limit; either alone is a ticket."""
    service = Service()
    service.minutes(600, 42.6, 0.05)
    pages = [of(verdicts, DOWN.name) for verdicts in service.minutes(5, 25.0)]
    assert pages[-1] is Outcome.FAIL
    assert pages[0] is not Outcome.FAIL
    assert DOWN.severity is Severity.PAGE
    assert OUT_OF_BAND.severity is SHIFTED.severity is Severity.TICKET


def test_what_is_too_fast_is_no_page() -> None:
    """Above the band for three minutes is out of it, and nobody is woken."""
    service = Service()
    service.minutes(600, 42.6, 0.05)
    found = service.minutes(5, 70.0)[-1]
    assert of(found) is Outcome.FAIL
    assert of(found, DOWN.name) is Outcome.PASS
