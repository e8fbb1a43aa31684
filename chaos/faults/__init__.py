"""The table of faults: add a file here, a line there, and its test."""

from __future__ import annotations

from importlib import import_module

from chaos.fault import Fault, Method
from chaos.target import Refused

FAULTS = {
    "gpu_oom": "chaos.faults.gpu_oom:FAULT",
    "nccl_timeout": "chaos.faults.nccl_timeout:FAULT",
    "cuda_context_loss": "chaos.faults.cuda_context_loss:FAULT",
}


def fault(name: str) -> Fault:
    """The fault of that name; raises ``Refused`` for one that is not in the table."""
    if name not in FAULTS:
        raise Refused(f"no fault named {name!r}; there are {', '.join(FAULTS)}")
    module, _, attribute = FAULTS[name].partition(":")
    found: Fault = getattr(import_module(module), attribute)
    return found


def chosen(words: str) -> tuple[Fault, Method]:
    """The fault and method of ``gpu_oom`` or ``gpu_oom:balloon``."""
    name, _, method = words.partition(":")
    found = fault(name)
    for one in found.methods:
        if method in ("", one.name):
            return found, one
    names = ", ".join(one.name for one in found.methods)
    raise Refused(f"{name} has no method {method!r}; there are {names}")
