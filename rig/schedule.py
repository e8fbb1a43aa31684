"""What the load asks and when: arrivals, conversations, questions and trace ids from one seed.

Open loop: the schedule never looks at an answer, so a slow service does not slow its own test.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from rig.vocabulary import WORDS

LIVE = 6  # conversations under way at a time
TURNS = 4  # at most, so that prompts stay bounded
QUESTION = (5, 12)  # words
SYSTEM = "answer the reader with a short clear story"  # the prefix that every prompt shares


@dataclass(frozen=True, slots=True)
class Turn:
    """One request to come: `at` seconds after the start, the `number`-th of its conversation."""

    at: float
    conversation: int
    number: int
    last: bool
    question: str
    traceparent: str


def traceparent(rng: random.Random) -> str:
    """A sampled W3C trace context; its ids are never all zero."""
    return f"00-{rng.getrandbits(128) | 1:032x}-{rng.getrandbits(64) | 1:016x}-01"


def schedule(seed: int, rate: float) -> Iterator[Turn]:
    """Poisson arrivals, `rate` a second, endless; the same seed gives the same turns."""
    rng = random.Random(seed)
    turns_left: dict[int, int] = {}
    turns_done: dict[int, int] = {}
    at, newest = 0.0, 0
    while True:
        at += rng.expovariate(rate)
        while len(turns_left) < LIVE:
            newest += 1
            turns_left[newest], turns_done[newest] = rng.randint(1, TURNS), 0
        talk = rng.choice(list(turns_left))
        turns_left[talk] -= 1
        turns_done[talk] += 1
        last = turns_left[talk] == 0
        question = " ".join(rng.choices(WORDS, k=rng.randint(*QUESTION)))
        yield Turn(at, talk, turns_done[talk], last, question, traceparent(rng))
        if last:
            del turns_left[talk], turns_done[talk]
