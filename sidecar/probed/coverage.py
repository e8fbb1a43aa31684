"""How a probe fares with one process: attached, firing, or blind and why. Sent once a second."""

from __future__ import annotations

import struct

from sidecar.probed import frames
from sidecar.probed.frames import FrameError, FrameType
from sidecar.signals import Absence, CollectorState, Coverage

_BODY = struct.Struct("=16s64sIIQBI16s256s")
_STATES = (CollectorState.ATTACHED, CollectorState.FIRING, CollectorState.BLIND)


def pack(found: Coverage) -> bytes:
    """The frame; over-long texts are cut."""
    return frames.pack(
        FrameType.COVERAGE,
        _BODY.pack(
            found.probe.encode(),
            found.process.encode()[:63],
            found.pid,
            found.ns_pid,
            found.start,
            _STATES.index(found.state),
            found.parts,
            found.absence.value.encode() if found.absence else b"",
            found.reason.encode()[:255],
        ),
    )


def unpack(frame: bytes) -> Coverage:
    """The body of a COVERAGE frame; raises FrameError when a field is out of range."""
    probe, process, pid, ns_pid, start, state, parts, absence, reason = _BODY.unpack_from(
        frame, frames.HEADER_BYTES
    )
    if state >= len(_STATES):
        raise FrameError(f"coverage state {state}")
    why = frames.text(absence)
    try:
        named = Absence(why) if why else None
    except ValueError as error:
        raise FrameError(f"absence {why!r}") from error
    return Coverage(
        frames.text(probe),
        frames.text(process),
        pid,
        ns_pid,
        start,
        _STATES[state],
        parts,
        named,
        frames.text(reason),
    )
