"""What is said of a canary, of the same twice, of another mix, and of two odd upgrades."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from sidecar.diff.comparing import compare
from sidecar.diff.findings import Found, SignalFound, Verdict
from sidecar.diff.sides import Measured, Side
from tests.diff.made import Service, measured, side


def signal(found: Found, name: str) -> SignalFound:
    return next(one for one in found.signals if one.signal == name)


def of(service: Service, seed: int, title: str = "A") -> Side:
    return side(title, ttft=service.ttft(np.random.default_rng(seed)))


def exact(median: float, sigma: float, n: int, seed: int, seconds: float) -> Measured:
    """Log-normal durations at equidistant ranks, in random order."""
    z = special.ndtri((np.arange(n) + 0.5) / n)
    np.random.default_rng(seed).shuffle(z)
    return measured(median * np.exp(sigma * z), np.arange(n) * seconds / n)


def test_a_canary_that_is_a_fifth_slower() -> None:
    """It is slower, at every quantile there is enough of."""
    found = compare(of(Service(), 1), of(Service(median=0.42), 2, "B"))
    assert found.verdict is Verdict.SLOWER
    ttft = signal(found, "ttft")
    assert ttft.n == (3_600, 3_600)
    judged = ttft.quantiles[0].judged
    assert judged is not None
    assert judged.difference.lower < 0.07 < judged.difference.upper
    assert judged.verdict is Verdict.SLOWER


def test_a_canary_that_is_a_fifth_faster() -> None:
    """Faster needs that nothing is slower."""
    assert compare(of(Service(median=0.42), 1), of(Service(), 2)).verdict is Verdict.FASTER


def test_the_same_with_enough_data() -> None:
    """Same is shown: the whole interval is within the guard."""
    many = Service(n=20_000)
    found = compare(of(many, 3), of(many, 4))
    assert found.verdict is Verdict.SAME
    for one in signal(found, "ttft").quantiles:
        assert one.judged is not None
        assert -one.judged.guard <= one.judged.difference.lower
        assert one.judged.difference.upper <= one.judged.guard


def test_too_little_is_unknown_and_says_how_much_is_missing() -> None:
    """Not significant is not the same; what would settle it is said."""
    few = Service(n=120, minutes=30)
    found = compare(of(few, 5), of(few, 6))
    assert found.verdict is Verdict.UNKNOWN
    median, _, highest = signal(found, "ttft").quantiles
    assert median.judged is not None
    assert median.judged.more is not None
    assert min(median.judged.more) > 20
    assert highest.judged is None
    assert re.fullmatch(r"A needs 1,[89]\d\d requests more", highest.why)


def test_what_is_asked_for_would_have_settled_it() -> None:
    """With as many more requests as were said, most of such pairs are no longer unknown."""
    rng = np.random.default_rng(7)
    few = Service(n=200, minutes=120)
    first = compare(side(ttft=few.ttft(rng)), side(ttft=few.ttft(rng)))
    judged = signal(first, "ttft").quantiles[0].judged
    assert judged is not None
    assert judged.more is not None
    enough = replace(few, n=few.n + judged.more[0])
    known = 0
    for _ in range(20):
        again = compare(side(ttft=enough.ttft(rng)), side(ttft=enough.ttft(rng)))
        one = signal(again, "ttft").quantiles[0].judged
        assert one is not None
        known += one.verdict is not Verdict.UNKNOWN
    assert known >= 10


@pytest.mark.parametrize("seed", range(5))
def test_more_long_requests_are_not_slower(seed: int) -> None:
    """From 20 to 50 % of a kind that takes 2.5 times as long: only the raw difference rises."""
    before, after = Service(long=0.2), Service(long=0.5)
    found = compare(of(before, seed), of(after, 100 + seed))
    assert found.verdict is not Verdict.SLOWER
    median = signal(found, "ttft").quantiles[0]
    assert median.raw.lower > 0.1
    assert median.judged is not None
    assert median.judged.difference.lower < 0 < median.judged.difference.upper


def test_slower_shows_through_another_mix() -> None:
    """The correction takes away what the mix did, not what the server did."""
    before, after = Service(long=0.2), Service(long=0.5, median=0.45)
    assert compare(of(before, 1), of(after, 2)).verdict is Verdict.SLOWER


def test_kinds_that_the_other_side_lacks_limit_the_verdict() -> None:
    """Half of B are of a kind that A never saw: nothing can be said, and why."""
    found = compare(of(Service(), 1), of(Service(long=0.5), 2))
    assert found.verdict is Verdict.UNKNOWN
    ttft = signal(found, "ttft")
    assert ttft.unknown[1] == pytest.approx(0.5, abs=0.03)
    assert "kinds that A lacks" in ttft.why


def test_ttft_three_times_worse_and_the_rest_better() -> None:
    """FC-33 A: both are said, and the worse of them decides."""
    a = side("A", 10, ttft=exact(0.12, 0.25, 600, 1, 600), duration=exact(2.6, 0.2, 600, 2, 600))
    b = side("B", 10, ttft=exact(0.36, 0.25, 600, 3, 600), duration=exact(2.3, 0.2, 600, 4, 600))
    found = compare(a, b)
    assert signal(found, "ttft").verdict is Verdict.SLOWER
    assert signal(found, "duration").verdict is Verdict.FASTER
    assert found.verdict is Verdict.SLOWER
    p95 = signal(found, "ttft").quantiles[1]
    assert p95.b.value / p95.a.value == pytest.approx(3, rel=0.02)


def speculating(gap: float, gaps: int, seconds: float, seed: int) -> Side:
    """600 requests of so many gaps, a request after the other over half an hour."""
    rng = np.random.default_rng(seed)
    n, minutes = 600, 30
    at = np.repeat(np.arange(n) * 60.0 * minutes / n, gaps)
    itl = measured(gap * np.exp(0.2 * rng.standard_normal(n * gaps)), at)
    whole = exact(seconds, 0.1, n, seed, 60.0 * minutes)
    return side("A", minutes, itl=itl, duration=whole)


def test_fewer_and_larger_events_are_another_unit() -> None:
    """FC-33 B: ITL doubled since an event carries more tokens; requests are faster."""
    found = compare(speculating(0.022, 100, 2.2, 1), speculating(0.048, 40, 1.92, 2))
    assert signal(found, "itl").verdict is Verdict.UNIT_CHANGED
    assert signal(found, "itl").quantiles[0].raw.lower > 0.02
    assert {one.name: one.verdict for one in found.figures}["rate"] is Verdict.UNIT_CHANGED
    assert found.verdict is Verdict.FASTER
    [note] = found.notes
    assert note.startswith("each event carries more tokens: its unit changed")


def test_speculation_switched_off_is_no_improvement() -> None:
    """The other way round: ITL halved, and every request takes longer."""
    found = compare(speculating(0.048, 40, 1.7, 1), speculating(0.022, 100, 2.2, 2))
    assert signal(found, "itl").verdict is Verdict.UNIT_CHANGED
    assert signal(found, "duration").verdict is Verdict.SLOWER
    assert found.verdict is Verdict.SLOWER


def test_itl_that_is_worse_with_as_many_events_is_slower() -> None:
    """The unit is the same: nothing excuses it."""
    found = compare(speculating(0.022, 100, 2.2, 1), speculating(0.03, 100, 3.0, 2))
    assert signal(found, "itl").verdict is Verdict.SLOWER
    rate = found.figures[0]
    assert rate.verdict is Verdict.SLOWER
    assert rate.how == "how stored pieces differ"
    assert rate.b.value == pytest.approx(1 / (0.03 * np.exp(0.02)), rel=0.01)
    assert rate.judged.difference.upper < 0


def test_failures_count_though_latencies_are_the_same() -> None:
    """What failed lies above the range; 4 % more of it is worse, whatever the median says."""
    rng = np.random.default_rng(1)
    a = side("A", duration=Service(n=5_000).ttft(rng))
    b = side("B", duration=Service(n=5_000, failing=0.04).ttft(rng))
    found = compare(a, b)
    failed = next(one for one in found.figures if one.name == "failed")
    assert failed.verdict is Verdict.MORE
    assert failed.b.value == pytest.approx(0.04, abs=0.01)
    assert found.verdict is Verdict.SLOWER


def test_a_signal_that_b_lacks_is_no_pass() -> None:
    """A stream that brings no token any more has no TTFT: unknown, and said."""
    a, b = of(Service(n=20_000), 1), of(Service(n=20_000), 2)
    whole = Service(n=20_000).ttft(np.random.default_rng(3))
    both = replace(a, signals={"ttft": a.signals["ttft"], "duration": whole})
    found = compare(both, replace(b, signals={"duration": whole}))
    assert found.verdict is Verdict.UNKNOWN
    assert "ttft: B has none, so that nothing is known of it" in found.notes


def test_hours_without_their_worst_part_are_no_pass() -> None:
    """What was recorded while B's alarm fired is not in its hours: it looks better than it was."""
    many = Service(n=20_000)
    found = compare(of(many, 3), replace(of(many, 4), alarmed=6))
    assert found.verdict is Verdict.UNKNOWN
    assert "30 min" in found.notes[0].replace("\N{NO-BREAK SPACE}", " ")


def test_a_single_block_tells_nothing() -> None:
    """How requests clump cannot be seen in 150 s, so that no interval is claimed."""
    short = Service(n=300, minutes=2)
    found = compare(of(short, 1), of(short, 2))
    assert found.verdict is Verdict.UNKNOWN
    assert signal(found, "ttft").why.startswith("too short")
