"""How likely a distance of Kolmogorov and Smirnov is by chance: the p of SciPy, and cheaper.

``scipy.stats`` sums one term a sample, 2 to 50 ms where a distance matters, and is 50 MB to load.
Here are the same distributions, each in the form that is exact to 1e-9 and cheap where it is used.
"""

from __future__ import annotations

import math

import numpy as np

_SMALL = 140  # up to here Durbin's matrix is small for every distance that is not rare
_LARGE = 5_000  # from here on Pelz and Good are right to 1e-10 for small distances too
_RARE = 2.2  # n * d**2, above which D+ and D- are never large together
_ALL = 512  # up to so many, every term is summed; above, one of 64
_LOG_FACTORIALS = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, _ALL + 1)))])
_STEPS = 64
_GRID = np.arange(1, _STEPS) / _STEPS


def two_sided(n: int, m: int, d: float) -> float:
    """P of a distance of at least ``d`` between samples of ``n`` and ``m`` of one distribution.

    The one-sample distribution at the effective size, as ``ks_2samp(method="asymp")`` has it.
    """
    effective = round(float(n) * m / (n + m))
    if effective == 0 or d <= 0.0:
        return 1.0
    if d >= 1.0:
        return 0.0
    return min(1.0, max(0.0, _above(effective, d)))


def one_sided(n: int, m: int, d: float) -> float:
    """P of a distance of at least ``d`` to one side (Hodges 1958, equation 5.3)."""
    more, less = float(max(n, m)), float(min(n, m))
    z = math.sqrt(more * less / (more + less)) * max(d, 0.0)
    skew = (more + 2 * less) / math.sqrt(more * less * (more + less))
    return math.exp(-2 * z * z - 2 * z * skew / 3)


def _above(n: int, d: float) -> float:
    """P(D_n >= d) of one sample (the choice of forms: Simard and L'Ecuyer 2011)."""
    z2 = n * d * d
    if z2 < 0.01:  # any two samples are further apart
        return 1.0
    if z2 > 370:  # below the smallest float
        return 0.0
    if d >= 0.5 or z2 >= (4.0 if n <= _SMALL else _RARE):
        return 2 * (_sum_all(n, d) if n <= _ALL else _sum_some(n, d))
    if n <= _SMALL or (n < _LARGE and n * d**1.5 <= 1.4):
        return 1 - _durbin(n, d)
    return 1 - _pelz_good(n, d)


def _sum_all(n: int, d: float) -> float:
    """P(D+ >= d) exactly (Birnbaum and Tingey 1951)."""
    j = np.arange(math.ceil(n * (1 - d)))
    logs = _LOG_FACTORIALS
    chosen = logs[n] - logs[j] - logs[n - j]
    share = j / n
    powers = (j - 1) * np.log(d + share) + (n - j) * np.log1p(-d - share)
    return d * float(np.exp(chosen + powers).sum())


def _sum_some(n: int, d: float) -> float:
    """The same sum. Its terms are a smooth hill, flat to all orders at both ends, so that the sum
    of equidistant ones, Stirling's formula in place of factorials, converges exponentially.
    """
    u = _GRID * (1 - d)
    rest = 1 - u
    power = n * (u * np.log1p(d / u) + rest * np.log1p(-d / rest))
    a = 1 / (u * rest)
    stirling = 1 / (12 * n) - a / (12 * n) + a * a * (a - 3) / (360 * n**3)
    terms = np.exp(power + stirling) * np.sqrt(a) / (u + d)
    return d * float(terms.sum()) * (1 - d) / _STEPS * math.sqrt(n / (2 * math.pi))


def _pelz_good(n: int, d: float) -> float:
    """P(D_n < d) to the order of n**-1.5 (Pelz and Good 1976), for n * d**2 < 2.2."""
    z = d * math.sqrt(n)
    s, squared = z * z, math.pi**2
    k0 = k1 = k2 = k3 = extra2 = extra3 = 0.0
    for odd in (1, 3, 5, 7, 9):  # the next weighs less than 1e-29
        a = squared * odd * odd
        weight = math.exp(-a / (8 * s))
        k0 += weight
        k1 += weight * (a / 4 - s)
        k2 += weight * (6 * s**3 + 2 * s**2 + (2 * s**2 - 5 * s) * a / 4 + (1 - 2 * s) * a**2 / 16)
        k3 += weight * (
            (-30 - 90 * s) * s**3
            + (135 - 96 * s) * s**2 * a / 4
            + (212 * s - 60) * s * a**2 / 16
            + (5 - 30 * s) * a**3 / 64
        )
    for number in (1, 2, 3, 4):
        a = squared * number * number
        weight = a * math.exp(-a / (2 * s))
        extra2 += weight
        extra3 += weight * (3 * s - a)
    orders = (
        k0 / z,
        k1 / (6 * z**4 * math.sqrt(n)),
        (k2 / (72 * z**7) - extra2 / (36 * z**3)) / n,
        (k3 / (6480 * z**10) + extra3 / (216 * z**6)) / n**1.5,
    )
    return math.sqrt(2 * math.pi) * sum(orders)


def _durbin(n: int, d: float) -> float:
    """P(D_n < d) exactly, as the power of a matrix (Marsaglia, Tsang and Wang 2003)."""
    k = math.floor(n * d) + 1
    h, size = k - n * d, 2 * k - 1
    order = np.arange(size)
    below = order[:, None] - order[None, :] + 1
    factorials = np.concatenate([[1.0], np.cumprod(np.arange(1.0, size + 1))])
    matrix = np.where(below >= 0, 1.0, 0.0)
    edge = h ** (order + 1.0)
    matrix[:, 0] -= edge
    matrix[-1, :] -= edge[::-1]
    matrix[-1, 0] += max(0.0, 2 * h - 1) ** size
    matrix /= factorials[np.maximum(below, 0)] * math.e  # else its power passes 1e308
    power = np.linalg.matrix_power(matrix, n)[k - 1, k - 1]
    return float(power) * math.exp(math.lgamma(n + 1) - n * math.log(n) + n)
