"""Since when more requests are slow: the most likely moment at which their share rose.

A change point of a proportion by maximum likelihood (Hinkley and Hinkley, "Inference about the
change-point in a sequence of binomial variables", Biometrika 57, 1970), to five minutes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_LEAST = 4.0  # log-likelihood ratio; less is said of no moment


def began(counts: Sequence[tuple[float, int, int]], share: float) -> float | None:
    """The start of the first of the slots ``(start, n, exceeding)``, oldest first, from which on
    more than a ``share`` exceed. None where nothing stands out, or where already the first does:
    then it began before anybody looked.
    """
    if not 0.0 < share < 1.0:
        return None
    best, place, n, over = _LEAST, None, 0, 0
    for index in range(len(counts) - 1, -1, -1):
        _, more, exceeding = counts[index]
        n, over = n + more, over + exceeding
        found = _ratio(n, over, share)
        if more and found > best:
            best, place = found, index
    return counts[place][0] if place else None


def _ratio(n: int, over: int, share: float) -> float:
    """Of the share seen to the usual one; 0 where it is no higher."""
    if not n or over / n <= share:
        return 0.0
    seen = over / n
    rest = (n - over) * math.log((1 - seen) / (1 - share)) if over < n else 0.0
    return over * math.log(seen / share) + rest
