"""The processes that sched.bpf.c adds up for: which slot is whose, and how a program finds it.

In the first pid namespace, where ``probed`` of a whole node lives, a process goes by the pid that
every program sees. Elsewhere pids differ: there it goes by its own namespace and the pid it has in
it, and the program remembers the other one, so that both are known as a pair.
"""

from __future__ import annotations

import struct
from collections import Counter, deque
from pathlib import Path

from sidecar.probed import process_stat, sched_state
from sidecar.probed.kernel import Map
from sidecar.probed.sched_layout import MAX_NAMESPACES, Layout
from sidecar.probed.sched_state import Totals
from sidecar.probed.targets import Target
from sidecar.signals import Absence, NoData

FIRST_NAMESPACE = 0xEFFF_FFFC  # PROC_PID_INIT_INO, include/linux/proc_ns.h
_U32 = struct.Struct("=I")
_NAME = struct.Struct("=QI4x")
_Namespace = tuple[int, int]


class Slots:
    """Gives out slots; a freed one rests longest, so that a late record of it is not another's."""

    def __init__(self, maps: dict[str, Map], layout: Layout, proc: Path) -> None:
        self._maps, self._layout, self._proc = maps, layout, proc
        self._free = deque(range(sched_state.SLOTS))
        self._namespaces: Counter[_Namespace] = Counter()
        self._taken: dict[int, tuple[Target, _Namespace | None]] = {}
        self._write_layout()

    def take(self, target: Target) -> int:
        """A slot for the process; NoData when its namespace cannot be told, or is one too many."""
        home = self._home(target)
        slot = self._free[0]  # taken at the end: until then the kernel may refuse
        raw = _U32.pack(slot)
        if home is None:
            value = sched_state.fresh(0, target.pid, target.pid)
        else:
            value = sched_state.fresh(home[1], target.ns_pid, 0)
        self._maps["processes"].update(raw, value)
        if home is None:
            self._maps["tgids"].update(_U32.pack(target.pid), raw)
        else:
            self._namespaces[home] += 1
            self._maps["names"].update(_NAME.pack(home[1], target.ns_pid), raw)
            self._write_layout()
        self._free.popleft()
        self._taken[slot] = target, home
        return slot

    def totals(self, slot: int) -> Totals:
        """What was added up."""
        return sched_state.totals(self._maps["processes"].lookup(_U32.pack(slot)) or b"")

    def forget(self, slot: int) -> None:
        """Frees a slot."""
        target, home = self._taken.pop(slot)
        if home is not None:  # first the name: while it is there the program enters the pid anew
            self._drop("names", _NAME.pack(home[1], target.ns_pid), slot)
            self._namespaces[home] -= 1
            self._namespaces += Counter()  # without those that are no more
            self._write_layout()
        self._drop("tgids", _U32.pack(self.totals(slot).tgid), slot)
        self._free.append(slot)

    def _drop(self, name: str, key: bytes, slot: int) -> None:
        """Removes a way to the slot, unless the pid is another process's by now."""
        if self._maps[name].lookup(key) == _U32.pack(slot):
            self._maps[name].delete(key)

    def _home(self, target: Target) -> _Namespace | None:
        """The namespace by which the process goes; None for its pid in the first one."""
        ours = process_stat.pid_namespace("self", self._proc)
        if ours[1] == FIRST_NAMESPACE:
            return None
        try:
            home = process_stat.pid_namespace(target.pid, self._proc)
        except OSError as error:
            if target.pid != target.ns_pid:
                raise NoData(
                    Absence.NO_PERMISSION,
                    f"the pid namespace of {target.command} cannot be seen ({error.strerror}): "
                    "give probed CAP_SYS_PTRACE",
                ) from error
            home = ours
        if home not in self._namespaces and len(self._namespaces) >= MAX_NAMESPACES:
            raise NoData(
                Absence.TOO_LARGE,
                f"processes of more than {MAX_NAMESPACES} pid namespaces are watched: run probed "
                "in the host's pid namespace (hostPID: true)",
            )
        return home

    def _write_layout(self) -> None:
        value = self._layout.pack(tuple(self._namespaces))
        self._maps["layouts"].update(_U32.pack(0), value)
