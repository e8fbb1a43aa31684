"""Faults of the supervisor that whoever measures recovery is not told of, each with a probability.

They are drawn from the seed and the number of the death, so that a run can be repeated and a new
supervisor on the same event log goes on where the last one ended.
"""

import random
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Hidden:
    """Probabilities, 0 to 1, of each fault at one death; how much of it; all from one seed."""

    seed: int = 1
    fail: float = 0.0  # it is never started again
    lie: float = 0.0  # `/health` is 200 while it is down
    leak: float = 0.0  # a process is left over that holds memory
    slow: float = 0.0  # it waits before it starts again
    leak_bytes: int = 256 << 20
    slow_seconds: float = 5.0

    def __post_init__(self) -> None:
        for name in ("fail", "lie", "leak", "slow"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"--{name} is a probability, 0 to 1")

    def at(self, death: int) -> "Chosen":
        """What goes wrong at the `death`-th death, counted from 0."""
        names = ("fail", "lie", "leak", "slow")
        return Chosen(**{name: self._draw(name, death) < getattr(self, name) for name in names})

    def _draw(self, name: str, death: int) -> float:
        return random.Random(f"{self.seed} {name} {death}").random()


@dataclass(frozen=True, slots=True)
class Chosen:
    """The faults of one death."""

    fail: bool = False
    lie: bool = False
    leak: bool = False
    slow: bool = False

    @property
    def names(self) -> list[str]:
        """Those that were chosen."""
        return [name for name, chosen in asdict(self).items() if chosen]
