"""The engine's guard over its CUDA context, from modelprobe-hooks; only where `--guard on` asks.

With it an engine of one rank survives the loss of its context, and each ends with a code of its own
where it cannot. Without it an engine dies of any error, as vLLM does.
"""

import importlib.util
from collections.abc import Callable
from typing import Protocol

from rig.gpu.errors import CudaError, DeviceError, EngineDead

HOOKS = "modelprobe_hooks"
MINUTE = 60.0  # seconds
LOST = frozenset({201, 709})  # CUresults of a context that is not current, or destroyed


class ContextGone(DeviceError):
    """The guard has given the context up; `exit_code` is the one to leave with."""

    kind = "ContextLost"

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


class BlocksLost(EngineDead):
    """What a request is told whose KV blocks went with a context: to it the engine has died."""

    def __str__(self) -> str:
        return "The CUDA context was lost and rebuilt; the request's KV blocks are gone."


class Guard(Protocol):
    """What looks before a round."""

    def check(self) -> None:
        """Return when the round may begin; raises `ContextGone`."""

    def survives(self, error: CudaError) -> bool:
        """Whether to look again after this error, instead of dying of it."""


class Unguarded:
    """Looks at nothing and survives nothing."""

    def check(self) -> None:
        """Return."""

    def survives(self, error: CudaError) -> bool:
        """False."""
        return False


class Guarded:
    """`rebuild` None: the context cannot be rebuilt here, as with other ranks in a communicator.

    `gone` is called, possibly from another thread, before `check` raises the same.
    """

    def __init__(
        self,
        rebuilds: int,
        rebuild: Callable[[], None] | None,
        adopt: Callable[[], None],
        gone: Callable[[ContextGone], None],
    ) -> None:
        from modelprobe_hooks import guard  # only here: an engine without a guard needs no hooks

        self._lost, self._code = guard.ContextLost, guard.EXIT
        self._guard = guard.Guard(
            rebuild,
            adopt=adopt,
            leave=lambda lost: gone(ContextGone(str(lost), guard.EXIT)),
            limit=(rebuilds, MINUTE),
        )

    def check(self) -> None:
        """Return when the round may begin; raises `ContextGone`."""
        try:
            self._guard.check()
        except self._lost as lost:
            raise ContextGone(str(lost), self._code) from None

    def survives(self, error: CudaError) -> bool:
        """Whether the error is about a context that a look may find to be rebuilt."""
        return error.code in LOST


def lacking(find: Callable[[str], object] = importlib.util.find_spec) -> str:
    """What a guard needs and is not here, empty when nothing."""
    if find(HOOKS) is None:
        return f"{HOOKS} cannot be imported: put the folder hooks/ on PYTHONPATH"
    return ""
