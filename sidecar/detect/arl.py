"""How long charts run before they alarm: exact figures, for tests and docs, of known baselines.

An average run length (ARL) without a shift is the mean time between false alarms, with one the mean
delay. A baseline that is estimated shortens the former; ``./run bench detectors`` measures by how
much.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def ewma(lam: float, limit: float, shift: float = 0.0, nodes: int = 101) -> float:
    """The ARL of a two-sided EWMA chart, in values, after a shift of ``shift`` σ from its centre.

    Solves L(u) = 1 + 1/λ ∫_{−h}^{h} L(y) φ((y − (1−λ)u)/λ − shift) dy for L(0) with Gauss-Legendre
    quadrature, h = L√(λ/(2−λ)). Crowder, "A simple method for studying run-length distributions of
    exponentially weighted moving average charts", Technometrics 29 (1987).
    """
    h = limit * math.sqrt(lam / (2 - lam))
    points, weights = np.polynomial.legendre.leggauss(nodes)
    y, weights = h * points, h * weights / lam
    kernel = _density((y - (1 - lam) * y[:, None]) / lam - shift) * weights
    lengths = np.linalg.solve(np.eye(nodes) - kernel, np.ones(nodes))
    return float(1 + (_density(y / lam - shift) * weights) @ lengths)


def _density(e: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.exp(-0.5 * e * e) / math.sqrt(2 * math.pi))


def outside(k: float, shift: float = 0.0) -> float:
    """The chance of one value outside ±kσ after a shift of ``shift`` σ."""
    return 0.5 * (math.erfc((k - shift) / math.sqrt(2)) + math.erfc((k + shift) / math.sqrt(2)))


def run_rule(k: float = 2.5, minutes: int = 3, shift: float = 0.0) -> float:
    """The ARL of ``minutes`` consecutive values outside ±kσ, on either side: (1 − p^r)/((1−p)p^r).

    The mean wait for a run of r successes of chance p (Feller, An Introduction to Probability
    Theory I, XIII.7).
    """
    p = outside(k, shift)
    return (1 - p**minutes) / ((1 - p) * p**minutes)
