"""Where in a function's first instructions a user probe costs least, on x86-64.

The kernel emulates ``push``, ``nop``, ``jmp`` and ``call`` at a probe (0.6 µs) and single-steps
most others (9 µs). A probe that reads arguments and the return address must be hit before either
moves, which leaves the first instruction, behind ``endbr64`` where there is one; but OpenSSL's
public functions often do nothing but call one inside, with the same arguments.
"""

from __future__ import annotations

ENDBR64 = b"\xf3\x0f\x1e\xfa"
_SUB_RSP = b"\x48\x83\xec"  # and one byte
_CALL = 0xE8  # and the distance, 4 bytes
CODE_BYTES = 96  # of a function that are looked at


def entry(code: bytes) -> int:
    """How many bytes behind a function's start the probe goes."""
    return len(ENDBR64) if code.startswith(ENDBR64) else 0


def is_cheap(code: bytes) -> bool:
    """Whether the instruction that a probe at :func:`entry` replaces is emulated: ``push`` of a
    register, or a ``nop``.
    """
    rest = code[entry(code) :]
    if rest[:1] == b"\x41":  # the prefix for r8 to r15
        rest = rest[1:]
    return bool(rest) and (0x50 <= rest[0] <= 0x57 or rest[0] == 0x90)


def inner(code: bytes) -> int | None:
    """Of a function that makes room on the stack and at once calls another: where that one lies,
    in bytes from this one's start. None for any other.
    """
    at = entry(code)
    if code[at : at + 3] != _SUB_RSP or len(code) < at + 9 or code[at + 4] != _CALL:
        return None
    return _called(code, at + 4)


def calls(code: bytes, target: int) -> bool:
    """Whether one of the first bytes begins a call of ``target``, counted from the start. That four
    bytes which mean something else give this very distance does not happen by chance.
    """
    return any(
        code[at] == _CALL and _called(code, at) == target for at in range(max(0, len(code) - 4))
    )


def _called(code: bytes, at: int) -> int:
    return at + 5 + int.from_bytes(code[at + 1 : at + 5], "little", signed=True)
