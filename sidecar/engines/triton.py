"""Triton Inference Server, and its TensorRT-LLM backend.

Source: ``docs/user_guide/metrics.md`` (main, 2026-08), ``src/metrics.cc`` and
``src/infer_stats.cc`` of triton-inference-server/core (2026-06), README.md of tensorrtllm_backend
(2026-07); a live capture of the server and the README's excerpt of the backend. Its vLLM backend
uses vLLM's names: :mod:`sidecar.engines.vllm`.
"""

from __future__ import annotations

from sidecar.engines import canonical
from sidecar.engines.table import Clock, Name, NameTable

_MICROSECONDS = 1e-6
_MILLISECONDS = 1e-3
_BACKEND = "trt_llm_request_metrics"

_SERVER = (
    Name("inference_pending_request_count", canonical.WAITING, unless=_BACKEND),
    Name(
        "inference_first_response_histogram_ms",
        canonical.TTFT,
        scale=_MILLISECONDS,
        definition="from_arrival",
        optional=True,
        note="With `--metrics-config histogram_latencies=true`; the first token of models that "
        "stream (decoupled), the whole answer of others.",
    ),
    Name(
        "inference_request_duration_us",
        canonical.E2E,
        scale=_MICROSECONDS,
        count="inference_request_success",
        note="Grows with successful requests only, as does the queue's.",
    ),
    Name(
        "inference_request_summary_us",
        canonical.E2E,
        unless="inference_request_duration_us",
        scale=_MICROSECONDS,
        optional=True,
    ),
    Name(
        "inference_queue_duration_us",
        canonical.QUEUE,
        scale=_MICROSECONDS,
        count="inference_request_success",
    ),
    Name(
        "inference_queue_summary_us",
        canonical.QUEUE,
        unless="inference_queue_duration_us",
        scale=_MICROSECONDS,
        optional=True,
    ),
    Name(
        "inference_request_success",
        canonical.FINISHED,
        labels=(("reason", "success"),),
        clock=Clock.AT_FINISH,
    ),
    Name(
        "inference_request_failure",
        canonical.ERRORS,
        by=(("reason", "kind"),),
        clock=Clock.AT_FINISH,
        note="REJECTED, CANCELED, BACKEND or OTHER; older servers do not tell.",
    ),
    Name(
        "gpu_memory_used_bytes",
        canonical.GPU_MEMORY_USED,
        by=(("gpu_uuid", "uuid"),),
        optional=True,
        note="Of the whole card, from DCGM.",
    ),
    Name(
        "gpu_memory_total_bytes",
        canonical.GPU_MEMORY_TOTAL,
        by=(("gpu_uuid", "uuid"),),
        optional=True,
    ),
)

_TENSORRT_LLM = (
    *(
        Name(_BACKEND, metric, where=(("request_type", kind),), optional=True)
        for kind, metric in (
            ("scheduled", canonical.RUNNING),
            ("waiting", canonical.WAITING),
        )
    ),
    Name(
        "trt_llm_kv_cache_block_metrics",
        canonical.KV_USAGE,
        where=(("kv_cache_block_type", "fraction"),),
        optional=True,
    ),
)

TABLE = NameTable(
    engine="triton",
    title="Triton Inference Server",
    prefixes=("nv_",),
    names=(*_SERVER, *_TENSORRT_LLM),
    source="docs/user_guide/metrics.md and core/src/infer_stats.cc of 2026, README.md of "
    "tensorrtllm_backend, a live capture",
    models=("model",),
    notes=(
        "Versions of a model add up; models are kept apart, and an ensemble counts a request that "
        "its parts count again.",
        "Durations are sums of microseconds beside a count of requests: means, and no quantiles.",
        "It counts no tokens. An inference is an element of a batch, not a token.",
        "With the TensorRT-LLM backend the backend's queue is the one that counts: Triton hands "
        "requests on at once.",
    ),
)
