"""The table of engines and gateways known by name.

One is one file with a :class:`~sidecar.engines.table.NameTable` and one line here; nothing else
changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from sidecar.engines.table import NameTable

ENGINES: dict[str, str] = {
    "vllm": "sidecar.engines.vllm:TABLE",
    "sglang": "sidecar.engines.sglang:TABLE",
    "trtllm": "sidecar.engines.trtllm:TABLE",
    "triton": "sidecar.engines.triton:TABLE",
    "tgi": "sidecar.engines.tgi:TABLE",
    "llamacpp": "sidecar.engines.llamacpp:TABLE",
    "litellm": "sidecar.engines.litellm:TABLE",
    "envoy": "sidecar.engines.envoy:TABLE",
    "envoy_ai_gateway": "sidecar.engines.envoy_ai_gateway:TABLE",
    "haproxy": "sidecar.engines.haproxy:TABLE",
    "vllm_router": "sidecar.engines.vllm_router:TABLE",
}


def tables(registered: Mapping[str, str] = ENGINES) -> tuple[NameTable, ...]:
    """Every registered name table, in the order of :data:`ENGINES`."""
    found = []
    for entry in registered.values():
        module, _, attribute = entry.partition(":")
        found.append(getattr(import_module(module), attribute))
    return tuple(found)
