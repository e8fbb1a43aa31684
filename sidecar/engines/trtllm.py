"""TensorRT-LLM's own server, ``trtllm-serve``.

Source: ``tensorrt_llm/metrics/collector.py`` and ``perf_utils.py`` of the main branch (2026); no
live capture. Under Triton it is named otherwise: :mod:`sidecar.engines.triton`.
"""

from __future__ import annotations

from sidecar.engines import canonical
from sidecar.engines.table import Clock, Name, NameTable

_QUEUES = (
    Name("num_requests_running", canonical.RUNNING, note="Its active requests."),
    Name("num_requests_waiting", canonical.WAITING),
    Name(
        "num_paused_requests",
        canonical.PAUSED,
        optional=True,
        note="Only with inflight batching. How many there are now, not how often it came to that.",
    ),
    Name("kv_cache_utilization", canonical.KV_USAGE, note="Used of all blocks."),
    Name("gpu_memory_usage_bytes", canonical.GPU_MEMORY_USED, optional=True),
)

_TOKENS = (
    Name(
        "prompt_tokens_total",
        canonical.PROMPT_TOKENS,
        labels=(("source", "all"),),
        clock=Clock.AT_FINISH,
    ),
    Name("generation_tokens_total", canonical.GENERATED_TOKENS, clock=Clock.AT_FINISH),
    Name(
        "kv_cache_reused_blocks_total",
        canonical.PREFIX_HITS,
        definition="blocks",
        clock=Clock.PER_STEP,
        optional=True,
    ),
    *(
        Name(
            raw,
            canonical.PREFIX_QUERIES,
            definition="blocks",
            clock=Clock.PER_STEP,
            optional=True,
            note="What was looked up is what was reused and what was missed.",
        )
        for raw in ("kv_cache_reused_blocks_total", "kv_cache_missed_blocks_total")
    ),
    Name(
        "spec_decode_num_draft_tokens_total",
        canonical.DRAFT_TOKENS,
        clock=Clock.PER_STEP,
        optional=True,
    ),
    Name(
        "spec_decode_num_accepted_tokens_total",
        canonical.ACCEPTED_TOKENS,
        clock=Clock.PER_STEP,
        optional=True,
    ),
)

_LATENCIES = (
    Name("time_to_first_token_seconds", canonical.TTFT, definition="from_arrival"),
    Name("time_per_output_token_seconds", canonical.TPOT, definition="request_mean"),
    Name("e2e_request_latency_seconds", canonical.E2E),
    Name("request_queue_time_seconds", canonical.QUEUE),
    Name("request_prefill_time_seconds", canonical.PREFILL, optional=True),
    Name("request_decode_time_seconds", canonical.DECODE, optional=True),
)

_ENDS = (
    Name(
        "request_success_total",
        canonical.FINISHED,
        by=(("finished_reason", "reason"),),
        clock=Clock.AT_FINISH,
    ),
    Name(
        "request_error_total",
        canonical.ERRORS,
        by=(("http_code", "kind"),),
        clock=Clock.AT_FINISH,
        optional=True,
    ),
)

TABLE = NameTable(
    engine="trtllm",
    title="TensorRT-LLM",
    prefixes=("trtllm_",),
    names=(*_QUEUES, *_TOKENS, *_LATENCIES, *_ENDS),
    source="tensorrt_llm/metrics/collector.py and perf_utils.py of the main branch, 2026",
    models=("model_name",),
    metrics_path="/prometheus/metrics",
    notes=(
        "`/metrics` is JSON: the text is at `/prometheus/metrics`.",
        "Latencies and tokens need `return_perf_metrics: true`, queues and blocks "
        "`enable_iter_perf_stats: true`; without them those names are missing.",
        "One rank publishes for all: there are no labels of ranks, and nothing to add up.",
        "Everything of a request is observed when it ends, its first token too. Requests with "
        "several answers (`n`) count no generated tokens.",
        "It has no time between tokens: `time_per_output_token_seconds` is a request's mean.",
    ),
)
