"""Bins of how many requests run at once, for baselines of a rate that load alone changes."""

from __future__ import annotations

import math


def half_octave(at_once: float) -> int:
    """The bin of a mean number of requests at once, by its lower edge: 1, 2, 3, 4, 6, 8, 11, 16…

    Edges are powers of √2. Within an octave a sequence slows down by a third or more (from 121 to
    51 tok/s between 1 and 8 at once, measured): with octaves, load that only wanders raised four
    times as many false alarms as with half octaves (`./run bench detectors`, "load wanders"). Below
    2 there is one bin: there the mean is of minutes with one request or none.
    """
    if not at_once >= 2:  # also of what is no number
        return 1
    step = math.floor(2 * math.log2(at_once) + 1e-9)
    return round(2 ** (step / 2))
