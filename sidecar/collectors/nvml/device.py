"""One device: what is read of it when, and what state it is in. A thread of its own calls it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from sidecar.collectors.nvml.fast import MOST_MEGAHERTZ, Fast
from sidecar.collectors.nvml.gpm import Gpm
from sidecar.collectors.nvml.memory import Memory
from sidecar.collectors.nvml.mig import Instance, Mig
from sidecar.collectors.nvml.processes import Pids, Processes
from sidecar.collectors.nvml.protocol import Identity, Options
from sidecar.collectors.nvml.reading import Blind, Reader, Trouble, Values
from sidecar.collectors.nvml.slow import Slow

_TEMPERATURE_GPU = 0  # NVML_TEMPERATURE_GPU
_CLOCK_MEMORY = 2  # NVML_CLOCK_MEM
_EARLY = 0.05  # seconds: a group due so soon is read in this round


class Device:
    """``step`` reads what is due. Others read the public fields; each is one assignment."""

    def __init__(
        self,
        nvml: ModuleType,
        index: int,
        options: Options,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.index = index
        self.state = "starting"
        self.since = wall()
        self.code = 0
        self.blind: int | None = None
        self.good_at: float | None = None
        self.handle: object | None = None
        self.identity: Identity | None = None
        self.groups: dict[str, Values] = {}
        self.account: Values = {}
        self._nvml = nvml
        self._options = options
        self._clock = clock
        self._wall = wall
        self._failures = 0
        self._due = {"middle": 0.0, "slow": 0.0}
        self.reader = Reader(nvml, options.deadline, options.unsupported, clock)
        self._memory = Memory(nvml, self.reader, Path(options.proc))
        self._processes = Processes(nvml, self.reader, Pids(Path(options.proc)))
        self._gpm = Gpm(nvml, self.reader, 3 * options.middle, clock)
        self._mig = Mig(nvml, self.reader)
        self._slow = Slow(nvml, self.reader)
        self._fast = Fast(nvml, self.reader, self._memory)

    def step(self) -> float:
        """Reads what is due; returns the seconds until the next step. NVML's errors end here."""
        started = self._clock()
        try:
            self._read()
        except Trouble as trouble:
            began = self._wall() - (self._clock() - started)
            self._enter(trouble.state, began, trouble.code)
        except Blind as blind:
            self.blind = blind.code
            return self._options.most_backoff
        finally:
            self.account = self.reader.account() or self.account
        if self.state != "ok":
            self._failures += 1
            wait = self._options.backoff * 2.0 ** min(self._failures - 1, 10)
            return min(self._options.most_backoff, wait)
        self._failures = 0
        return max(0.0, self._options.fast - (self._clock() - started))

    def stuck_since(self, now: float) -> float | None:
        """When the call began that has not come back within its deadline (monotonic), or None."""
        since = self.reader.busy_since
        return since if since is not None and now - since > self._options.deadline else None

    def _enter(self, state: str, since: float, code: int) -> None:
        self.code = code
        if state != self.state:
            self.state, self.since = state, since
        if state != "ok":
            self.groups = {}
            self._due = dict.fromkeys(self._due, 0.0)
            self._fast.forget()

    def _read(self) -> None:
        if self.state not in ("ok", "starting"):
            self.reader.forgive()
        self.identity = self.identity or self._identify()
        if self.identity is None:
            raise Trouble("error", self.reader.last_code)
        before = self.reader.answers
        groups = dict(self.groups) | {"fast": self._fast.read(self.handle, self.identity)}
        if self.reader.answers == before:
            raise Trouble("error", self.reader.last_code)
        now = self._clock()
        # Slow first: it finds the MIG instances that the middle group reads.
        if now + _EARLY >= self._due["slow"]:
            groups["slow"] = self._slow.read(self.handle) | self._layout()
            self._due["slow"] = now + self._options.slow
        if now + _EARLY >= self._due["middle"]:
            groups["middle"] = self._middle()
            self._due["middle"] = now + self._options.middle
        self.groups = groups
        self.good_at = self._clock()
        self._enter("ok", self._wall(), 0)

    def _identify(self) -> Identity | None:
        ask, nvml = self.reader.ask, self._nvml
        handle = self.handle = ask("handle", nvml.nvmlDeviceGetHandleByIndex, self.index)
        if handle is None:
            return None
        uuid = ask("identity", nvml.nvmlDeviceGetUUID, handle)
        if uuid is None:
            return None
        pci = ask("identity", nvml.nvmlDeviceGetPciInfo, handle, source="pci")
        name = ask("identity", nvml.nvmlDeviceGetName, handle, source="name")
        vbios = ask("identity", nvml.nvmlDeviceGetVbiosVersion, handle, source="vbios")
        bus = str(pci.busId) if pci is not None else ""
        return (str(uuid), bus, str(name or ""), str(vbios or ""))

    def _layout(self) -> Values:
        before = self._mig.instances is None
        values = self._mig.read(self.handle)
        if before is not (self._mig.instances is None):
            self.reader.forgive(unsupported=True)  # a card that is cut up supports other fields
        return values

    def _middle(self) -> Values:
        ask, put, nvml = self.reader.ask, self.reader.put, self._nvml
        values = self._fast.clock(self.handle)
        degrees = ask("temperature", nvml.nvmlDeviceGetTemperature, self.handle, _TEMPERATURE_GPU)
        if degrees is not None:
            put(values, "temperature|gpu", "temperature", degrees, 200.0)
        megahertz = ask(
            "clocks", nvml.nvmlDeviceGetClockInfo, self.handle, _CLOCK_MEMORY, source="clock_m"
        )
        if megahertz is not None:
            put(values, "clock|memory", "clocks", megahertz, MOST_MEGAHERTZ, 1e6)
        scopes = self._instances(values)
        handles = [self.handle] if scopes is None else [x.handle for x in scopes.values()]
        values |= self._processes.read(handles, self._memory.total)
        ratios = self._gpm.read(self.handle, None if scopes is None else list(scopes))
        self._fast.compare(ratios)
        return values | ratios

    def _instances(self, values: Values) -> dict[int, Instance] | None:
        """The GPU instances with their memory; None where MIG is off."""
        if self._mig.instances is None:
            return None
        found = self._mig.first_of_each()
        for number, instance in list(found.items()):
            memory = self._memory.read_instance(instance.handle, number)
            if memory is None:  # cut anew while we ran: the next round lists again
                self._due["slow"] = 0.0
                del found[number]
            else:
                values |= memory
        return found
