"""Bins of how many requests run at once, for baselines of a rate that load alone changes."""

from __future__ import annotations

import math


def half_octave(at_once: float) -> int:
    """The bin of a mean number of requests at once, by its middle: 1, 2, 3, 4, 6, 8, 11, 16…

    Middles are powers of √2, so that a full batch of 8 is in the middle of its bin and not on an
    edge, where a mean of 7.9 would change the baseline. Within an octave a sequence slows down by a
    third or more (from 121 to 51 tok/s between 1 and 8 at once, measured), so that a baseline of
    whole octaves would hide a fall by a quarter.
    """
    if not at_once > 1:  # also of what is no number
        return 1
    return round(2 ** (round(2 * math.log2(at_once)) / 2))
