"""The two routers of the vLLM project: the Rust one, and the production stack's in Python.

Source: ``src/metrics.rs`` of vllm-project/router (2026, names checked in the 0.1.17 wheel) and
``src/vllm_router/services`` of vllm-project/production-stack (2026-08); no live capture.
"""

from __future__ import annotations

from sidecar.engines import canonical
from sidecar.engines.table import Name, NameTable, Role

_RUST = (
    Name(
        "running_requests",
        canonical.GATEWAY_ACTIVE,
        optional=True,
        note="With the cache-aware policy only.",
    ),
    Name(
        "requests_total",
        canonical.GATEWAY_REQUESTS,
        labels=(("code", "all"),),
        optional=True,
    ),
    Name(
        "request_errors_total",
        canonical.GATEWAY_UPSTREAM_ERRORS,
        by=(("error_type", "kind"),),
        optional=True,
    ),
    Name("retries_total", canonical.GATEWAY_RETRIES, optional=True),
)

_PYTHON = (
    Name(
        "vllm:num_requests_running",
        canonical.GATEWAY_ACTIVE,
        unless="running_requests",
        plain=True,
        optional=True,
        note="The router's own count of what it has sent and not had back.",
    ),
    Name(
        "vllm:num_incoming_requests_total",
        canonical.GATEWAY_REQUESTS,
        labels=(("code", "all"),),
        unless="requests_total",
        plain=True,
        optional=True,
        note="Counted as they come in, whatever becomes of them.",
    ),
    Name(
        "vllm:request_errors_total",
        canonical.GATEWAY_UPSTREAM_ERRORS,
        by=(("error_type", "kind"),),
        unless="request_errors_total",
        plain=True,
        optional=True,
    ),
    Name(
        "vllm:request_latency_seconds",
        canonical.GATEWAY_DURATION,
        plain=True,
        optional=True,
        note="To the last byte, of those that failed too.",
    ),
    *(
        Name(
            f"vllm:{kind}_tokens_total",
            canonical.GATEWAY_TOKENS,
            labels=(("type", kind),),
            plain=True,
            optional=True,
        )
        for kind in ("input", "output")
    ),
)

TABLE = NameTable(
    engine="vllm_router",
    title="vLLM router",
    prefixes=(
        "vllm_router_",
        "vllm:num_incoming_requests",
        "vllm:current_qps",
        "vllm:healthy_pods",
        "vllm:request_latency_seconds",
    ),
    role=Role.GATEWAY,
    names=(*_RUST, *_PYTHON),
    source="vllm-project/router src/metrics.rs and vllm-project/production-stack src/vllm_router "
    "of 2026",
    models=("model",),
    instead_of=("vllm",),
    notes=(
        "The Rust router's durations end with the headers of an answer: of a stream they are "
        "nobody's whole request, and are not used. Its port is 29000.",
        "The production stack's router takes names of vLLM itself, with a label `server`: its "
        "numbers of running requests are the router's count, not an engine's.",
        "Workers and routes add up.",
    ),
)
