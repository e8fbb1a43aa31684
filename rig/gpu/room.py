"""The engine's queue: at most so many requests run, and in pool mode only while blocks are left.

First come, first served, as vLLM's default scheduler: a large request holds up those behind it.
"""

import asyncio
from collections import deque


class Room:
    """Slots, and bytes of a pool (None: not limited)."""

    def __init__(self, slots: int, pool: int | None = None) -> None:
        self._slots, self._pool = slots, pool
        self._left = pool or 0
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()
        self.running = 0

    @property
    def waiting(self) -> int:
        """Requests that have not been let in."""
        return len(self._waiting)

    async def enter(self, count: int) -> None:
        """Return once there is room; raises ValueError when there never will be."""
        if self._pool is not None and count > self._pool:
            raise ValueError(f"the request needs {count} bytes of KV cache of {self._pool}")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, count))
        self._admit()
        await turn

    def leave(self, count: int) -> None:
        """Give back what `enter` took."""
        self.running -= 1
        self._left += count
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self.running < self._slots:
            turn, count = self._waiting[0]
            if self._pool is not None and count > self._left:
                return
            self._waiting.popleft()
            self.running += 1
            self._left -= count
            turn.set_result(None)
