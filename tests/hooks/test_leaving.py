"""How a process is left: options that make no sense, and callbacks that fail."""

from __future__ import annotations

import pytest
from modelprobe_hooks.guard import Leave

from tests.hooks.conftest import Inside


@pytest.mark.parametrize("code", [0, -1, 126, 256])
def test_exit_code_has_to_be_ones_own(code: int) -> None:
    """0 would be success, and 126 and above are the shell's and signals'."""
    with pytest.raises(ValueError, match=f"code: {code} is no exit code of one's own"):
        Leave(code=code)


def test_grace_has_to_be_a_time() -> None:
    """A negative grace is refused."""
    with pytest.raises(ValueError, match="grace: -1"):
        Leave(grace=-1)


def test_on_leave_that_raises_is_logged(inside: Inside) -> None:
    """The process goes with its code all the same."""
    inside.machine.set("trap.broken", 700)
    ended = inside.run("""
        start()
        guard = Guard(leave=Leave(on_leave=lambda lost: 1 / 0))
        trap()
        guard.check()
    """)
    assert ended.code == 75
    assert "on_leave failed" in ended.log


def test_leave_that_raises_is_replaced(inside: Inside) -> None:
    """A leave of the caller's that fails: the default one takes its place."""
    inside.machine.set("trap.broken", 700)
    ended = inside.run("""
        start()
        guard = Guard(leave=lambda lost: 1 / 0)
        trap()
        guard.check()
    """)
    assert ended.code == 75
    assert "leave failed; leaving in the default way" in ended.log
