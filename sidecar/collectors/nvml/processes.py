"""Which processes hold memory on a device, by host pid and, where visible, by container pid.

NVML names host pids. In a container's own pid namespace they name nobody, or somebody else: there
they stay unattributed. The list's struct grew from version 2 to 3, and a mismatch of library and
bindings scrambles every row behind the first, so each list is checked before it is believed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

from sidecar.collectors.nvml.reading import Reader, Values

_LISTS = {"compute": "Compute", "graphics": "Graphics", "mps": "MPSCompute"}
_MOST_PID = 4_194_304  # PID_MAX_LIMIT of 64-bit kernels (include/linux/threads.h)
_NO_INSTANCE = 0xFFFFFFFF
_MOST_INSTANCES = 64
_HOST_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO (include/linux/proc_ns.h)


class Pids:
    """Container pids of host pids, by the ``NSpid`` line of ``/proc/PID/status``."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._known: dict[int, str] = {}
        self._visible = _sees_the_host(proc)

    def container_pid(self, pid: int) -> str:
        """The pid in the process's own namespace, empty when it cannot be known."""
        if not self._visible:
            return ""
        if pid not in self._known:
            chain = _nspid(self._proc / str(pid) / "status")
            self._known[pid] = chain[-1] if chain and chain[0] == str(pid) else ""
        return self._known[pid]

    def forget_but(self, pids: Iterable[int]) -> None:
        """Drops what has ended: its pid may be given to another."""
        self._known = {pid: self._known[pid] for pid in set(pids) & set(self._known)}


def _nspid(status: Path) -> list[str]:
    try:
        text = status.read_text()
    except OSError:
        return []
    return next((x.split()[1:] for x in text.splitlines() if x.startswith("NSpid:")), [])


def _sees_the_host(proc: Path) -> bool:
    # A mount of the host's /proc shows us with two pids; on the host itself the inode tells.
    if len(_nspid(proc / "self" / "status")) > 1:
        return True
    try:
        return os.readlink(proc / "self" / "ns" / "pid") == _HOST_NAMESPACE
    except OSError:
        return False


class Processes:
    """The three lists of one device, or of its MIG instances."""

    def __init__(self, nvml: ModuleType, reader: Reader, pids: Pids) -> None:
        self._nvml = nvml
        self._reader = reader
        self._pids = pids
        self._round = 0
        self._graphics: list[list[object]] = []
        self._versions = dict.fromkeys(_LISTS, 3)

    def read(self, handles: Sequence[object], total: float | None) -> Values:
        """``process_memory`` by pid, how many there are and how many nobody can name."""
        memory: dict[tuple[int, int], float | None] = {}
        values: Values = {}
        for kind in _LISTS:
            for rows in self._lists(kind, handles):
                count = f"processes|{kind}"
                values[count] = values.get(count, 0.0) + len(rows)
                for row in rows:
                    self._add(memory, row, total)
        nameless = 0
        for (instance, pid), used in memory.items():
            inside = self._pids.container_pid(pid)
            nameless += not inside
            if used is not None:
                label = f"{pid}|{inside}"
                mig = "" if instance == _NO_INSTANCE else f"mig.process_memory|{instance}|{label}"
                values[mig or f"process_memory|{label}"] = used
        if values:
            values["processes_unattributed"] = float(nameless)
        self._pids.forget_but(pid for _, pid in memory)
        return values

    def _lists(self, kind: str, handles: Sequence[object]) -> list[list[object]]:
        """The lists of all handles; graphics, which serving has none of, only each third time."""
        if kind == "graphics":
            self._round += 1
            if self._round % 3 != 1:
                return self._graphics
        lists = [rows for handle in handles if (rows := self._rows(kind, handle)) is not None]
        if kind == "graphics":
            self._graphics = lists
        return lists

    def _add(
        self, memory: dict[tuple[int, int], float | None], row: object, total: float | None
    ) -> None:
        key = (_instance(row), int(getattr(row, "pid", 0)))
        raw = getattr(row, "usedGpuMemory", None)
        # None is the binding's word for NVML_VALUE_NOT_AVAILABLE: absent, and no reject.
        used = None if raw is None else self._reader.checked("processes", raw, total or 2.0**50)
        before = memory.get(key)
        memory[key] = used if before is None else max(before, used or 0.0)

    def _rows(self, kind: str, handle: object) -> list[object] | None:
        """A list that can be believed; the older struct is tried once and then kept."""
        while True:
            version = self._versions[kind]
            source = f"processes.{kind}.v{version}"
            call = getattr(self._nvml, f"nvmlDeviceGet{_LISTS[kind]}RunningProcesses_v{version}")
            rows: list[object] | None = self._reader.ask("processes", call, handle, source=source)
            if rows is not None and all(_plausible(row) for row in rows):
                return rows
            if rows is not None:
                self._reader.reject("processes")
            elif not self._reader.is_unsupported(source):
                return None
            if version == 2:
                return None
            self._versions[kind] = 2


def _instance(row: object) -> int:
    return int(getattr(row, "gpuInstanceId", _NO_INSTANCE))


def _plausible(row: object) -> bool:
    pid = int(getattr(row, "pid", 0))
    instance = _instance(row)
    return 0 < pid <= _MOST_PID and (instance == _NO_INSTANCE or instance < _MOST_INSTANCES)
