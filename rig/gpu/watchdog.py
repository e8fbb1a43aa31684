"""The thread that looks at the step under way from outside, as torch's process group does.

It is the only one that can tell of a collective that never ends: the device's thread waits in it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from time import monotonic

from rig.gpu.core import Core
from rig.gpu.errors import DeviceError, NcclTimeout, StepTimeout

PERIOD = 0.1  # seconds between two looks; torch's is 0.1 too


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds: torch gives a collective 600, vLLM a step 300."""

    collective: float = 600.0
    step: float = 300.0


def verdict(core: Core, limits: Limits, now: float) -> DeviceError | None:
    """What is wrong with the step under way at `now` on the monotonic clock."""
    device, flight, busy = core.device, core.device.flight, core.busy_since
    if flight is not None and now - flight.since > PERIOD:
        if found := device.asynchronous_error():
            return found
        ran = now - flight.since
        if ran > limits.collective and not device.done():
            return NcclTimeout(0, flight.sequence, flight.numel, limits.collective, ran)
    if busy is not None and now - busy > limits.step:
        return StepTimeout()
    return None


def patrol(core: Core, limits: Limits, dead: Callable[[DeviceError], None], stop: Event) -> None:
    """Look until something is wrong: then abort the communicator, tell, and end."""
    core.device.adopt()
    while not stop.wait(PERIOD):
        error = verdict(core, limits, monotonic())
        if error is not None:
            dead(error)
            core.device.abort(error)
            return
