"""Tests of sidecar.detect.arl."""

import random

import pytest

from sidecar.detect import arl

# Lucas and Saccucci 1990: λ, L, ARL without a shift, ARL after a shift of 1 σ.
DESIGNS = [
    (0.4, 3.054, 500, 14.3),
    (0.25, 2.998, 500, 11.1),
    (0.2, 2.962, 500, 10.5),
    (0.1, 2.814, 500, 10.3),
    (0.05, 2.615, 500, 11.4),
    (0.2, 4.19, 43_200, 31.7),
]


@pytest.mark.parametrize(("lam", "limit", "healthy", "shifted"), DESIGNS)
def test_published_designs(lam: float, limit: float, healthy: float, shifted: float) -> None:
    """The six designs have their published run lengths within 3 %."""
    assert arl.ewma(lam, limit) == pytest.approx(healthy, rel=0.03)
    assert arl.ewma(lam, limit, 1.0) == pytest.approx(shifted, rel=0.03)


@pytest.mark.parametrize(("shift", "minutes"), [(1, 31.7), (2, 6.1), (3, 3.4)])
def test_delays_of_the_shipped_chart(shift: float, minutes: float) -> None:
    """λ 0.2 with L 4.19 sees 1, 2 and 3 σ after 31.7, 6.1 and 3.4 minutes on average."""
    assert arl.ewma(0.2, 4.19, shift) == pytest.approx(minutes, rel=0.03)
    assert arl.ewma(0.2, 4.19, -shift) == pytest.approx(minutes, rel=0.03)


def test_quadrature_has_converged() -> None:
    """Half of the nodes change no figure by a millionth."""
    for lam, limit, _, _ in DESIGNS:
        for shift in (0.0, 1.0, 3.0):
            half, whole = arl.ewma(lam, limit, shift, nodes=51), arl.ewma(lam, limit, shift)
            assert half == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize(("shift", "minutes"), [(0, 528_700), (2, 47.8), (3, 6.56)])
def test_run_rule(shift: float, minutes: float) -> None:
    """Three in a row beyond 2.5 σ: by chance once in 367 days, at 2, 3 σ after 48, 6.6 min."""
    assert arl.run_rule(shift=shift) == pytest.approx(minutes, rel=0.01)


def test_run_rule_by_simulation() -> None:
    """The closed form is what happens: 4,000 rows of draws with p = P(|N(−2, 1)| > 2.5)."""
    rng, waited = random.Random(3), 0
    for _ in range(4_000):
        row = 0
        while row < 3:
            waited += 1
            row = row + 1 if abs(rng.gauss(-2, 1)) > 2.5 else 0
    assert waited / 4_000 == pytest.approx(arl.run_rule(shift=2), rel=0.05)
