"""Runs a function in a child of its own, for what cannot be taken back: privileges, filters of
system calls, namespaces.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from typing import Any


def in_child(act: Callable[[], object]) -> Any:
    """What the function returned there, by way of JSON; AssertionError with the child's traceback
    when it raised or did not come to its end.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _report(act, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        raw = told.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == 0, f"child ended with {status}: {raw.decode(errors='replace')}"
    return json.loads(raw)


def _report(act: Callable[[], object], writing: int) -> None:
    code, told = 1, b""
    try:
        told, code = json.dumps(act()).encode(), 0
    except BaseException:  # noqa: BLE001  # whatever it is, it must not go on as another pytest
        told = traceback.format_exc().encode()
    finally:
        while told:
            told = told[os.write(writing, told) :]
        os._exit(code)


def refusal(act: Callable[[], object]) -> str:
    """The name of the error's number that a call is refused with; ``allowed`` if it is not."""
    try:
        act()
    except OSError as error:
        return os.strerror(error.errno or 0)
    return "allowed"
