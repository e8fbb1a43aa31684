"""What happened to a process, in words for people."""

from __future__ import annotations

import signal

from sidecar.probed.sched_frames import Happened, ProcessEvent
from sidecar.signals import Event

_LAST_SIGNAL = 64


def how(found: ProcessEvent) -> tuple[str, str]:
    """``exit`` and the code, or ``signal`` and its name."""
    if not found.signal:
        return "exit", str(found.exit_code)
    return "signal", _name(found.signal)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}" if number <= _LAST_SIGNAL else "other"


def event(found: ProcessEvent, at: float) -> Event | None:
    """None of the good end of a child: there may be thousands."""
    who = found.label or found.comm or f"pid {found.host_pid}"
    if found.happened is Happened.OOM_KILL:
        unwatched = "" if found.label else ", which is not watched,"
        text = f"the kernel killed {who} (pid {_pid(found)}){unwatched} to free memory"
        return Event(at, "oom_kill", who, text)
    if found.happened is Happened.EXEC:
        text = f"{who} (pid {_pid(found)}) became another program, {found.comm}"
        return Event(at, "exec", who, text)
    if found.happened is Happened.CHILD_EXIT and not found.code & 0xFFFF:
        return None
    child = f"{found.comm}, a child of {who}," if found.happened is Happened.CHILD_EXIT else who
    return Event(at, "exit", who, f"{child} (pid {_pid(found)}) {_ending(found)}")


def _pid(found: ProcessEvent) -> int:
    return found.pid or found.host_pid


def _ending(found: ProcessEvent) -> str:
    kind, detail = how(found)
    if kind == "exit":
        return f"ended with exit code {detail}"
    return f"was killed by {detail}{' and dumped core' if found.dumped_core else ''}"
