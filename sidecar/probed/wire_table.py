"""The tap's table of connections, looked at once a second: what is open, what is given up for
idleness, and what has to go early because the table is nearly full.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sidecar.probed.frames import ENDS, RECORD_BYTES, Flag, OpenCount
from sidecar.probed.kernel import Map
from sidecar.signals import End

# struct wire_record: where the sweep writes the end of a request that has none yet.
_START = struct.Struct("=Q")
END_AT_OFFSET, PORT_OFFSET, END_OFFSET, FLAGS_OFFSET = 40, 82, 86, 87
ADDRESS = slice(82, 104)  # with the ports before it
# What follows the record in struct conn: touched, client_fin, lock, open, pending, first; waiting.
_STATE = struct.Struct("=QQIBB10xB")
WAITING_OFFSET, _WAITING = RECORD_BYTES + 48, struct.Struct("=8Q")
_NAMED = 2
UNUSED_NS = 30 * 10**9  # without a request a connection is kept for so long
# Of the table: up to here unused connections may stay, and open requests that hear nothing.
_ROOM_FOR_UNUSED, _ROOM_FOR_IDLE = 7 / 8, 15 / 16
_BATCH = 256

State = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep found: progress reports of open requests (the oldest first, at most the limit),
    ends of those given up, and by port how many are open in all.
    """

    open: tuple[bytes, ...] = ()
    lost: tuple[bytes, ...] = ()
    counts: Mapping[int, OpenCount] = field(default_factory=dict)

    def of(self, port: int) -> OpenCount:
        """What is open on a port."""
        return self.counts.get(port) or OpenCount(port, 0, 0)


def port_of(record: bytes) -> int:
    """The server port of a record."""
    return int.from_bytes(record[PORT_OFFSET : PORT_OFFSET + 2], "little")


class Table:
    """The map ``conns``. ``folded`` counts connections given up to make room."""

    def __init__(self, conns: Map) -> None:
        self._conns = conns
        self.folded = 0

    def sweep(self, now_ns: int, idle_ns: int, limit: int) -> Sweep:
        """Looks at every connection once. Forgets those without a packet for ``idle_ns``, whose
        requests end when they were last heard of, and sooner those without a request; when the
        table is nearly full also the least recently used, those without a request first.
        """
        oldest: list[tuple[int, int, bytes]] = []  # a heap with the youngest of them first
        lost: list[bytes] = []
        counts: dict[int, OpenCount] = {}
        kept = 0
        for key, value, state in self._connections():
            named = state[3] == _NAMED
            idle = now_ns - state[0] > (idle_ns if named else min(idle_ns, UNUSED_NS))
            if idle and (given_up := self._give_up(key, state)) is not None:
                lost.extend(_ends(given_up, state))
                continue
            kept += 1
            if named and not idle:
                start = _add(counts, value, 1 + state[4])
                if not state[2]:  # else a packet is being entered: half old, half new
                    _keep_oldest(oldest, (-start, kept), value, limit)
        if kept > _ROOM_FOR_UNUSED * self._conns.max_entries:
            lost.extend(self._fold(kept))
        reports = [_ended(r, End.OPEN, now_ns) for _, _, r in sorted(oldest, reverse=True)]
        return Sweep(tuple(reports), tuple(lost), counts)

    def drop(self, end_of: Callable[[bytes], End | None]) -> tuple[bytes, ...]:
        """Forgets connections by their key, whatever they are about: those for which ``end_of`` has
        an end, which is that of their open requests, when they were last heard of.
        """
        ends: list[bytes] = []
        for key, value, state in self._connections():
            end = end_of(key)
            if end is not None:
                ends += _ends(value.tobytes(), state, end)
                self._conns.delete(key)
        return tuple(ends)

    def _connections(self) -> Iterator[tuple[bytes, memoryview, State]]:
        key_bytes, value_bytes = self._conns.key_bytes, self._conns.value_bytes
        for keys, values, count in self._conns.batches(_BATCH):
            for i in range(count):
                value = values[i * value_bytes : (i + 1) * value_bytes]
                state = _STATE.unpack_from(value, RECORD_BYTES)
                yield keys[i * key_bytes : (i + 1) * key_bytes], value, state

    def _fold(self, used: int) -> Iterator[bytes]:
        """Makes room; yields the ends of the requests that this costs."""
        room = self._conns.max_entries
        for_unused, for_idle = (
            used - int(_ROOM_FOR_UNUSED * room),
            used - int(_ROOM_FOR_IDLE * room),
        )
        known = sorted((s[3] == _NAMED, s[0], key, s) for key, _, s in self._connections())
        gone = 0
        for named, _, key, state in known[:for_unused]:
            if named and gone >= for_idle:
                return
            value = self._give_up(key, state)
            if value is not None:
                gone += 1
                self.folded += 1
                yield from _ends(value, state)

    def _give_up(self, key: bytes, state: State) -> bytes | None:
        """Deletes a connection and returns what it was, unless a packet came meanwhile."""
        value = self._conns.lookup(key)
        if value is None or _STATE.unpack_from(value, RECORD_BYTES) != state or state[2]:
            return None
        self._conns.delete(key)
        return value


def _add(counts: dict[int, OpenCount], value: memoryview, more: int) -> int:
    """Counts a connection's open requests and returns when its oldest began."""
    port = int.from_bytes(value[PORT_OFFSET : PORT_OFFSET + 2], "little")
    oldest = start = int(_START.unpack_from(value)[0])
    known = counts.get(port)
    if known is not None:
        more, oldest = more + known.count, min(start, known.oldest_ns)
    counts[port] = OpenCount(port, more, oldest)
    return start


def _keep_oldest(
    heap: list[tuple[int, int, bytes]], age: tuple[int, int], value: memoryview, limit: int
) -> None:
    """Copies the record if it is one of the ``limit`` oldest so far."""
    if len(heap) < limit:
        heapq.heappush(heap, (*age, value[:RECORD_BYTES].tobytes()))
    elif heap and age > heap[0][:2]:
        heapq.heapreplace(heap, (*age, value[:RECORD_BYTES].tobytes()))


def _ended(record: bytes, end: End, at_ns: int) -> bytes:
    """A copy of a record in the table, with the end it would have then."""
    copy = bytearray(record)
    _START.pack_into(copy, END_AT_OFFSET, at_ns)
    copy[END_OFFSET] = ENDS.index(end)
    return bytes(copy)


def _ends(value: bytes, state: State, otherwise: End = End.LOST) -> Iterator[bytes]:
    """The requests of a connection that is given up, timed at the last that was heard of it."""
    touched, client_fin, _, opened, pending, first = state
    if opened != _NAMED:
        return
    record, waiting = value[:RECORD_BYTES], _WAITING.unpack_from(value, WAITING_OFFSET)
    end = End.CLIENT_GONE if client_fin else otherwise
    at = max(touched, client_fin)
    yield _ended(record, end, at)
    for i in range(min(pending, len(waiting))):  # of those the head was not kept
        bare = bytearray(RECORD_BYTES)
        _START.pack_into(bare, 0, waiting[(first + i) % len(waiting)])
        bare[ADDRESS] = record[ADDRESS]
        bare[FLAGS_OFFSET] = record[FLAGS_OFFSET] & (Flag.IPV6 | Flag.TLS) | Flag.RESYNCED
        yield _ended(bytes(bare), end, at)
