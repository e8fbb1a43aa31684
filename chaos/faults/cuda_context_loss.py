"""CUDA context loss: a sticky error, or a context that really is destroyed."""

from __future__ import annotations

import random

from chaos.fault import Fault, Injection, Method
from chaos.hooking import Hooked, lacking
from chaos.interposer.rules import Action, Reset, Rule, Sticky, Trap
from chaos.namespaces import inner
from chaos.target import Target
from chaos.undo.restart import Restart
from chaos.vocabulary import Healer, Layer

CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED = 700, 719
STEPS = (
    "cuLaunchKernel",
    "cuLaunchKernel_ptsz",
    "cuLaunchKernelEx",
    "cuLaunchKernelEx_ptsz",
    "cuLaunchCooperativeKernel",
    "cuLaunchCooperativeKernel_ptsz",
    "cuGraphLaunch",
    "cuGraphLaunch_ptsz",
    "cuStreamSynchronize",
    "cuStreamSynchronize_ptsz",
    "cuEventSynchronize",
    "cuCtxSynchronize",
)


def _rule(target: Target, action: Action) -> Rule:
    return Rule(STEPS, action, pid=inner(target.leader().pid, target.proc))


def hook(target: Target, rng: random.Random, astray: bool) -> Injection:
    """The driver answers the target with a sticky error, one of two drawn by ``rng``."""
    code = rng.choice((CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED))
    return Hooked(target, [_rule(target, Sticky(code))], astray)


def reset(target: Target, rng: random.Random, astray: bool) -> Injection:
    """The target's primary context is reset under it, from inside."""
    return _inside(target, Reset(), astray)


def trap(target: Target, rng: random.Random, astray: bool) -> Injection:
    """A kernel that traps is launched in the target's context."""
    return _inside(target, Trap(), astray)


def _inside(target: Target, action: Action, astray: bool) -> Injection:
    rules = [_rule(target, action)]
    # The old process cannot be mended: it has to go.
    return Hooked(target, rules, astray, after=Restart(target.leader()))


_NEEDS = "the interposer in the target"
FAULT = Fault(
    name="cuda_context_loss",
    summary="the engine's CUDA context is lost",
    expects=("cuda_context_loss",),
    methods=(
        Method(
            "hook",
            Layer.API,
            Healer.LEASE,
            _NEEDS,
            "every CUDA call of the engine's process answers 700 or 719 from its next step on",
            1.0,
            lacking,
            hook,
        ),
        Method(
            "reset",
            Layer.REAL,
            Healer.RESTART,
            f"{_NEEDS}, and a supervisor that starts it again",
            "the primary context is reset inside the engine's process: its calls answer 709 or 201",
            1.0,
            lacking,
            reset,
        ),
        Method(
            "trap",
            Layer.REAL,
            Healer.RESTART,
            f"{_NEEDS}, and a supervisor that starts it again",
            "a kernel that traps is launched in the engine's context: a real sticky error",
            1.0,
            lacking,
            trap,
        ),
    ),
)
