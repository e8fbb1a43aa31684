"""The frames between probed and the sidecar: round trips, and frames of a hostile peer."""

from __future__ import annotations

import random
import struct

import pytest

from sidecar import gaps
from sidecar.probed import frames
from sidecar.probed.frames import Counters, Flag, FrameError, FrameType, OpenCount, Status, Watch
from sidecar.signals import End, Leg

PORTS = {8000: Leg.UPSTREAM, 8080: Leg.DOWNSTREAM}
SECOND = 10**9


def record(**changes: object) -> bytes:
    """A record as the kernel writes it."""
    values: dict[str, object] = {
        "times": (5 * SECOND, 6 * SECOND, 6 * SECOND, 7 * SECOND, 8 * SECOND, 9 * SECOND, SECOND),
        "bytes": (71, 1013), "counts": (4, 2), "status": 200, "port": 8000, "end": 1,
        "flags": int(Flag.STREAMED), "address": b"\x7f\0\0\1", "method": b"POST",
        "path": b"/v1/x", "traceparent": b"00-" + b"ab" * 16 + b"-" + b"cd" * 8 + b"-01",
        "request_id": b"r-1", "gap": gaps.index(SECOND), "keys": (0, 2**64 - 5, 2**63 + 7),
    }  # fmt: skip
    values |= changes
    head = struct.pack(
        "=9Q2I3H2B16s8s64s56s40s", *values["times"], *values["bytes"], *values["counts"],  # type: ignore[misc]  # a test's own dict
        values["status"], values["port"], 40000, values["end"], values["flags"],
        values["address"], values["method"], values["path"], values["traceparent"],
        values["request_id"],
    )  # fmt: skip
    counts = [0] * gaps.BUCKETS
    counts[int(str(values["gap"]))] = 1
    return head + struct.pack(f"={gaps.BUCKETS}HI2Q", *counts, *values["keys"])  # type: ignore[misc]  # a test's own dict


def test_request_round_trip() -> None:
    """A record's times are counted from its start, and its names come out whole."""
    frame = frames.pack_request(record())
    assert frames.frame_type(frame) is FrameType.REQUEST
    assert len(frame) == frames.FRAME_BYTES
    timing = frames.unpack_request(frame, PORTS, 100.0)
    assert (timing.at, timing.ttfb_seconds, timing.ttft_seconds) == (105.0, 1.0, 2.0)
    assert (timing.last_token_seconds, timing.seconds, timing.largest_gap_seconds) == (
        3.0,
        4.0,
        1.0,
    )
    assert (timing.leg, timing.server, timing.method) == (Leg.UPSTREAM, "127.0.0.1:8000", "POST")
    assert (timing.path, timing.request_id, timing.trace_id) == ("/v1/x", "r-1", "ab" * 16)
    assert (timing.events, timing.token_events, timing.end) == (4, 2, End.COMPLETE)
    assert timing.gaps == ((gaps.index(SECOND), 1),)
    assert (timing.streamed, timing.encoded, timing.resynced) == (True, False, False)


def test_keys() -> None:
    """Hashes come whole, none is None, and events not told apart are counted."""
    timing = frames.unpack_request(frames.pack_request(record(keys=(17, 1, 2**64 - 1))), PORTS, 0.0)
    assert (timing.unclassified, timing.body_key, timing.response_key) == (17, 1, 2**64 - 1)
    timing = frames.unpack_request(frames.pack_request(record(keys=(0, 0, 0))), PORTS, 0.0)
    assert (timing.unclassified, timing.body_key, timing.response_key) == (0, None, None)


def test_absent_is_not_zero() -> None:
    """A request without an answer has no status, no first byte and no token time."""
    bare = record(
        times=(5, 0, 0, 0, 0, 9, 0), counts=(0, 0), status=0, traceparent=b"", request_id=b""
    )
    timing = frames.unpack_request(frames.pack_request(bare), PORTS, 0.0)
    assert (timing.status, timing.ttfb_seconds, timing.ttft_seconds) == (None, None, None)
    assert (timing.last_token_seconds, timing.largest_gap_seconds) == (None, None)
    assert (timing.trace_id, timing.request_id) == (None, None)


@pytest.mark.parametrize("text", [b"00-xyz", b"00-" + b"0" * 32 + b"-1-1", b"\xff" * 55, b"----"])
def test_bad_traceparent(text: bytes) -> None:
    """A trace id that is not well formed is none."""
    frame = frames.pack_request(record(traceparent=text))
    assert frames.unpack_request(frame, PORTS, 0.0).trace_id is None


def test_watch_round_trip() -> None:
    """A WATCH frame brings the ports with their legs."""
    frame = frames.pack_watch(Watch(PORTS))
    assert frames.frame_type(frame) is FrameType.WATCH
    assert frames.unpack_watch(frame) == Watch(PORTS)
    with pytest.raises(ValueError, match="at most 32"):
        frames.pack_watch(Watch(dict.fromkeys(range(1, 40), Leg.UPSTREAM)))


def test_status_round_trip() -> None:
    """A STATUS frame brings every counter under its name and what is open on each port, as many as
    can be watched, and cuts long reasons.
    """
    counters = Counters(*range(1, len(frames.COUNTER_NAMES) + 1))
    opened = tuple(OpenCount(65535 - i, 8192 * 256, 2**63 + i) for i in range(frames.MAX_PORTS))
    sent = Status("wire", "prebuilt", "no_permission", counters, "x" * 999, opened)
    frame = frames.pack_status(sent)
    got = frames.unpack_status(frame)
    assert (got.probe, got.loader, got.absence, got.counters) == (
        "wire", "prebuilt", "no_permission", counters,
    )  # fmt: skip
    assert 200 < len(got.reason) < 999
    assert got.open == opened
    assert frames.unpack_status(frames.pack_status(Status("w", "", "", counters, ""))).open == ()
    with pytest.raises(ValueError, match="at most 32"):
        frames.pack_status(Status("w", "", "", counters, "", (*opened, opened[0])))


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f[:-1],
        lambda f: f + b"\0",
        lambda f: b"",
        lambda f: b"GET " + f[4:],
        lambda f: f[:2] + b"\x63" + f[3:],
        lambda f: f[:3] + b"\x63" + f[4:],
    ],
)
def test_not_ours(change: object) -> None:
    """Another size, magic, version or type is refused."""
    assert callable(change)
    with pytest.raises(FrameError):
        frames.frame_type(change(frames.pack_watch(Watch(PORTS))))


@pytest.mark.parametrize(
    "body", [b"\x21", b"\x01\0\0\0\0", b"\x01\0\x50\0\x09", b"\0\x0d", b"\xff" * 200]
)
def test_bad_watch(body: bytes) -> None:
    """Too many ports, port 0 and an unknown leg are refused."""
    with pytest.raises(FrameError):
        frames.unpack_watch(
            (frames.pack_watch(Watch({}))[:8] + body).ljust(frames.FRAME_BYTES, b"\0")
        )


def test_bad_record() -> None:
    """A record of another port, with an unknown end, or cut short is refused."""
    for frame in (frames.pack_request(record(port=9)), frames.pack_request(record(end=77))):
        with pytest.raises(FrameError):
            frames.unpack_request(frame, PORTS, 0.0)
    with pytest.raises(FrameError):
        frames.pack_request(record()[:-1])


def test_random_frames() -> None:
    """Random bytes behind a good header raise FrameError or decode; nothing else happens."""
    rng = random.Random(5)
    for kind in FrameType:
        for _ in range(199):
            noise = bytearray(rng.randbytes(frames.FRAME_BYTES - 8))
            noise[82:84] = struct.pack("=H", 8000)
            frame = frames.pack_watch(Watch({}))[:3] + bytes([kind]) + b"\0" * 4 + bytes(noise)
            frames.frame_type(frame)
            try:
                frames.unpack_watch(frame)
                frames.unpack_status(frame)
                frames.unpack_request(frame, PORTS, 0.0)
            except FrameError:
                continue


@pytest.mark.parametrize(
    "changes",
    [
        {"times": (5 * SECOND, 6 * SECOND, 6 * SECOND, 7 * SECOND, 8 * SECOND, 4 * SECOND, 0)},
        {"times": (5 * SECOND, 4 * SECOND, 6 * SECOND, 7 * SECOND, 8 * SECOND, 9 * SECOND, 0)},
        {"times": (5 * SECOND, 6 * SECOND, 6 * SECOND, 4 * SECOND, 8 * SECOND, 9 * SECOND, 0)},
        {"times": (5 * SECOND, 6 * SECOND, 6 * SECOND, 7 * SECOND, 4 * SECOND, 9 * SECOND, 0)},
        {"counts": (2, 3)},
    ],
)
def test_record_that_cannot_be(changes: dict[str, object]) -> None:
    """A time before the request's start, or more token events than events, is refused: a negative
    duration would cost everything that came with it.
    """
    with pytest.raises(FrameError):
        frames.unpack_request(frames.pack_request(record(**changes)), PORTS, 0.0)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"a\n# TYPE x\r\x1b[2J\x07", "a\ufffd# TYPE x\ufffd\ufffd[2J\ufffd"),
        ("\x9b31m\u202egnp\u2028".encode(), "\ufffd31m\ufffdgnp\ufffd"),
        (b'\xff caf\xc3\xa9 <b>"\\', '\ufffd caf\u00e9 <b>"\\'),
    ],
)
def test_text_that_does_not_print(raw: bytes, shown: str) -> None:
    """Escapes, line ends and marks of direction of a process's name reach no terminal; what
    prints stays as it is.
    """
    assert frames.text(raw + b"\0rest") == shown


def test_watch_without_requests() -> None:
    """A client may ask for the processes of ports alone."""
    watch = Watch(PORTS, requests=False)
    assert frames.unpack_watch(frames.pack_watch(watch)) == watch
