"""The guard is off unless its variable says 1."""

from __future__ import annotations

import pytest
from modelprobe_hooks.guard import Guard, State
from modelprobe_hooks.switch import Off, from_environment


@pytest.mark.parametrize("environ", [{}, {"MODELPROBE_HOOKS_GUARD": "0"}])
def test_off_by_default(environ: dict[str, str]) -> None:
    """Without the variable its place is taken by one that does nothing."""
    found = from_environment(lambda: None, environ)
    found.check()
    assert isinstance(found, Off)
    assert found.look() is State.PASSIVE


def test_on_when_asked() -> None:
    """With 1 it is a guard with the options given."""
    found = from_environment(lambda: None, {"MODELPROBE_HOOKS_GUARD": "1"}, attempts=5)
    assert isinstance(found, Guard)


def test_other_value_stays_off_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """`true` is no 1: off, with a line that names variable and value."""
    assert isinstance(from_environment(environ={"MODELPROBE_HOOKS_GUARD": "true"}), Off)
    assert "MODELPROBE_HOOKS_GUARD='true' is neither 0 nor 1" in caplog.text
