"""Which instruction a probe replaces: recorded beginnings of OpenSSL's functions."""

from __future__ import annotations

import pytest

from sidecar.probed import prologue

PUSH = bytes.fromhex("4155415455534883ec38")  # push r13, push r12, push rbp, push rbx, sub
BRANCH_PUSH = bytes.fromhex("f30f1efa4155")  # endbr64, push r13
SUB = bytes.fromhex("4883ec1864488b0425280000")  # sub 0x18,rsp; mov fs:0x28,rax
READ_EX = bytes.fromhex("4883ec08e8c7fdffff31d285c0")  # sub 8,rsp; call -0x239
OTHER_ARGUMENTS = bytes.fromhex("4989c831c9e9d6ffffff")  # mov rcx,r8; xor ecx,ecx; jmp


@pytest.mark.parametrize(
    ("code", "behind", "cheap"),
    [
        (PUSH, 0, True),
        (BRANCH_PUSH, 4, True),
        (b"\x53\x48", 0, True),
        (b"\x90", 0, True),
        (SUB, 0, False),
        (b"\x48\x85\xff", 0, False),
        (b"\x41\x89\xf4", 0, False),
        (b"\x0f\x1f\x44\0\0", 0, False),
        (b"", 0, False),
        (prologue.ENDBR64, 4, False),
        (b"\x41", 0, False),
    ],
)
def test_entry(code: bytes, behind: int, cheap: bool) -> None:
    """The probe goes behind endbr64, and is cheap on a push or a one-byte nop."""
    assert (prologue.entry(code), prologue.is_cheap(code)) == (behind, cheap)


def test_inner() -> None:
    """A function that only makes room and calls another is seen through."""
    assert prologue.inner(READ_EX) == -0x230
    assert prologue.inner(prologue.ENDBR64 + READ_EX) == -0x230 + 4


@pytest.mark.parametrize("code", [PUSH, SUB, OTHER_ARGUMENTS, b"", READ_EX[:8]])
def test_no_inner(code: bytes) -> None:
    """One that does more first, or passes other arguments on, is not."""
    assert prologue.inner(code) is None


def test_calls() -> None:
    """A call of a target is found among other instructions, and no other target."""
    code = SUB + READ_EX[4:]
    target = len(SUB) + 5 - 0x239
    assert prologue.calls(code, target)
    assert not prologue.calls(code, target + 1)
    assert not prologue.calls(b"\xe8", target)
