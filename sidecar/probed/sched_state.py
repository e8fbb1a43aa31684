"""The values that sched.bpf.c keeps and tells, as Python reads them; see sched_state.h."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from sidecar.probed.sched_frames import BUCKETS, Durations, Happened

SLOTS = 128  # MAX_PROCESSES
NONE = 0xFFFF_FFFF
_ROOM = 32  # counts in struct histogram, of which BUCKETS are used
_HISTOGRAMS = 5
_HEAD = struct.Struct("=QIIQQQ")
_HISTOGRAM = struct.Struct(f"={1 + _ROOM}Q")
PROCESS_BYTES = _HEAD.size + _HISTOGRAMS * _HISTOGRAM.size
_RECORD = struct.Struct("=QIIII16s")
RECORD_BYTES = _RECORD.size
TALLIES = ("lost_records", "table_full")


@dataclass(frozen=True, slots=True)
class Totals:
    """One process since it was attached. ``tgid`` is its pid in the first namespace, 0 until it
    was seen.
    """

    tgid: int
    voluntary: int
    involuntary: int
    missed: int
    waits: Durations
    sleep: Durations
    blocked: Durations
    stopped: Durations
    preempted: Durations


@dataclass(frozen=True, slots=True)
class Record:
    """Something that happened to a process; ``slot`` is NONE when it is nobody watched."""

    at_ns: int
    happened: Happened
    slot: int
    tgid: int
    code: int
    comm: str


def fresh(inode: int, ns_pid: int, tgid: int) -> bytes:
    """The value of a slot that is taken."""
    return _HEAD.pack(inode, ns_pid, tgid, 0, 0, 0).ljust(PROCESS_BYTES, b"\0")


def totals(raw: bytes) -> Totals:
    """A value of the map ``processes``."""
    _, _, tgid, voluntary, involuntary, missed = _HEAD.unpack_from(raw)
    found = []
    for i in range(_HISTOGRAMS):
        total, *counts = _HISTOGRAM.unpack_from(raw, _HEAD.size + i * _HISTOGRAM.size)
        found.append(Durations(tuple(counts[:BUCKETS]), total))
    return Totals(tgid, voluntary, involuntary, missed, *found)


def record(raw: bytes) -> Record:
    """A record of the ring; raises ValueError when it is of no known kind."""
    at, kind, slot, tgid, code, comm = _RECORD.unpack(raw)
    return Record(at, Happened(kind), slot, tgid, code, _text(comm))


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")
