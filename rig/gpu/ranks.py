"""The other ranks, seen from rank 0: started, told what to do, watched, ended.

They die with rank 0's thread that started them, even by SIGKILL; see `rig.tether`.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from select import EPOLLHUP, EPOLLRDHUP, epoll

from rig.gpu.abi import UNIQUE_ID
from rig.gpu.orders import FAILURE, Failure, Order
from rig.part import TETHER


class Rank:
    """One process and the line to it."""

    def __init__(self, number: int, options: Sequence[str]) -> None:
        self.number = number
        self.line, theirs = socket.socketpair()
        with theirs:
            own = ("--fd", str(theirs.fileno()), "--rank", str(number))
            self._process = subprocess.Popen(
                (
                    *(sys.executable, str(TETHER), str(os.getpid())),
                    *(sys.executable, "-m", "rig.gpu.rank", *own, *options),
                ),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
            )

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def failures(self) -> Iterator[Failure]:
        """Those that have come, without waiting."""
        try:
            while len(frame := self.line.recv(FAILURE.size, socket.MSG_DONTWAIT)) == FAILURE.size:
                yield Failure.unpacked(frame)
        except (BlockingIOError, ConnectionError):  # nothing more, or gone: `Ranks.watch` tells
            return

    def close(self) -> None:
        """End it now; SIGKILL also ends a stopped one."""
        self._process.kill()
        self._process.wait()
        self.line.close()


class Ranks:
    """Ranks 1 to `count` - 1. Start them from the main thread, which lives as long as they."""

    def __init__(self, count: int, options: Sequence[str]) -> None:
        all_ranks = ("--ranks", str(count), *options)
        self._ranks = tuple(Rank(number, all_ranks) for number in range(1, count))

    @property
    def pids(self) -> tuple[int, ...]:
        """Their processes, in the order of ranks."""
        return tuple(rank.pid for rank in self._ranks)

    def greet(self, unique: bytes) -> None:
        """Give them the communicator's id, which lets them join."""
        if len(unique) != UNIQUE_ID:
            raise ValueError("not an ncclUniqueId")
        self._send(unique)

    def tell(self, order: Order) -> None:
        """The same order for all; nothing for those that have died."""
        self._send(order.packed())

    def _send(self, frame: bytes) -> None:
        for rank in self._ranks:
            try:
                rank.line.sendall(frame)
            except (BrokenPipeError, ConnectionResetError):  # it has died, which `watch` reports
                continue

    def failures(self) -> Iterator[Failure]:
        """Allocations that did not fit somewhere; complete once a step is synchronised."""
        for rank in self._ranks:
            yield from rank.failures()

    def watch(self, died: Callable[[int], None]) -> None:
        """Block until a rank's line closes, then report that rank; for a thread of its own."""
        if not self._ranks:
            return
        with epoll() as poll:
            numbers = {rank.line.fileno(): rank.number for rank in self._ranks}
            for descriptor in numbers:
                poll.register(descriptor, EPOLLRDHUP | EPOLLHUP)
            died(numbers[poll.poll()[0][0]])

    def close(self) -> None:
        """End all of them."""
        for rank in self._ranks:
            rank.close()
