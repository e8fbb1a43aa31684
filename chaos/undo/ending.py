"""Ending a process for good: asked first, then killed, then seen to be gone."""

from __future__ import annotations

import signal

from chaos.processes import Process, ended, send
from chaos.undo.undo import World, failed, healed, moot
from chaos.vocabulary import Healing


def end(process: Process, grace: float, world: World) -> Healing:
    """SIGTERM, and SIGKILL after ``grace`` seconds. MOOT when it had ended already. A zombie is
    gone: it holds no memory, no file and no device.
    """
    name = f"process {process.pid}"
    with process.held(world.proc) as descriptor:
        if descriptor is None:
            return moot(f"{name} had ended already")
        try:
            send(descriptor, signal.SIGTERM)
            if ended(descriptor, grace):
                return healed(f"{name} ended when asked to")
            send(descriptor, signal.SIGKILL)
        except PermissionError:
            return failed(f"{name} is not ours to end; as root: kill -KILL {process.pid}")
        if ended(descriptor, world.patience):
            return healed(f"{name} was killed, as it did not end within {grace:g} s")
    return failed(f"{name} got SIGKILL and is still there; it hangs in the kernel")
