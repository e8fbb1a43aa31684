"""What sched.bpf.c must know of this kernel: where the fields lie that it reads, and which pid
namespaces the watched processes live in. A part whose fields were not all found is off.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag

from sidecar.probed import btf
from sidecar.probed.btf import Field
from sidecar.signals import NoData

MAX_NAMESPACES = 4


class Part(IntFlag):
    """Bits of ``layout.parts``: what works on this kernel."""

    SWITCHES = 1
    EXITS = 2
    VICTIMS = 4  # an OOM kill's victim is told as a task, not as a pid


# In the order of struct layout. Several fields: the first that is there.
_FIELDS: tuple[tuple[Field, ...], ...] = (
    (Field("task_struct", "sched_info.run_delay", 8),),
    (Field("task_struct", "sched_info.pcount", 8),),
    # Renamed and made 4 bytes in Linux 5.14; its lower half comes first.
    (Field("task_struct", "__state", 4), Field("task_struct", "state", 8)),
    (Field("task_struct", "se.sum_exec_runtime", 8),),
    (Field("task_struct", "nvcsw", 8),),
    (Field("task_struct", "nivcsw", 8),),
    (Field("task_struct", "signal", 8),),
    (Field("signal_struct", "live", 4),),
    (Field("signal_struct", "flags", 4),),
    (Field("signal_struct", "group_exit_code", 4),),
    (Field("task_struct", "exit_code", 4),),
    (Field("task_struct", "group_leader", 8),),
    (Field("task_struct", "real_parent", 8),),
    (Field("task_struct", "tgid", 4),),
    (Field("task_struct", "comm", 16),),
)
_NEEDS = {Part.SWITCHES: range(6), Part.EXITS: range(6, 14), Part.VICTIMS: range(13, 15)}
_LAYOUT = struct.Struct(f"={2 + len(_FIELDS)}I4x{2 * MAX_NAMESPACES}Q")
LAYOUT_BYTES = _LAYOUT.size
Offsets = Callable[[Iterable[Field]], Mapping[Field, int]]


@dataclass(frozen=True, slots=True)
class Layout:
    """The offsets by position in struct layout, and what keeps a part off."""

    parts: Part
    offsets: tuple[int, ...]
    missing: Mapping[Part, str]

    def pack(self, namespaces: Sequence[tuple[int, int]] = ()) -> bytes:
        """The value of the map ``layouts``. Namespaces are pairs of device and inode; ValueError
        above MAX_NAMESPACES.
        """
        if len(namespaces) > MAX_NAMESPACES:
            raise ValueError(f"{len(namespaces)} pid namespaces, at most {MAX_NAMESPACES} are told")
        pairs = [number for pair in namespaces for number in pair]
        pairs += [0] * (2 * MAX_NAMESPACES - len(pairs))
        return _LAYOUT.pack(self.parts, len(namespaces), *self.offsets, *pairs)


def find(offsets: Offsets = btf.offsets) -> Layout:
    """What this kernel's BTF gives; without BTF everything is missing, with the reason."""
    try:
        found = offsets(field for choice in _FIELDS for field in choice)
    except NoData as failure:
        return Layout(Part(0), (0,) * len(_FIELDS), dict.fromkeys(Part, failure.reason))
    chosen = [next((found[f] for f in choice if f in found), None) for choice in _FIELDS]
    parts, missing = Part(0), {}
    for part, needed in _NEEDS.items():
        absent = [str(_FIELDS[i][0]) for i in needed if chosen[i] is None]
        if absent:
            missing[part] = f"this kernel's BTF has no {', '.join(absent)} as it is known"
        else:
            parts |= part
    return Layout(parts, tuple(at or 0 for at in chosen), missing)
