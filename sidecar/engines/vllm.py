"""vLLM, its own server and as a backend of Triton.

Source: ``vllm/v1/metrics/loggers.py``, ``stats.py`` and ``vllm/v1/spec_decode/metrics.py`` of 0.32,
live captures of about 0.13 and of 0.32; former names from the comments beside their deprecation
(0.9.2 and 0.11) and the release notes. Triton's backend: ``src/utils/metrics.py``.
"""

from __future__ import annotations

from sidecar.engines import canonical
from sidecar.engines.table import Clock, Combine, Name, NameTable, Was

_BY_SOURCE = "prompt_tokens_by_source_total"

_QUEUES = (
    Name("num_requests_running", canonical.RUNNING),
    Name("num_requests_waiting", canonical.WAITING),
    Name(
        "num_requests_waiting_by_reason",
        canonical.WAITING_BY_REASON,
        by=(("reason", "reason"),),
        optional=True,
        note="`capacity` and `deferred` (LoRA budget, KV transfer); they add up to all waiting.",
    ),
    Name(
        "kv_cache_usage_perc",
        canonical.KV_USAGE,
        was=(Was("gpu_cache_usage_perc", "0.9.1"),),
        note="A ratio from 0 to 1 in spite of its name. Both names from 0.9.2 to 0.11.",
    ),
    Name("num_preemptions_total", canonical.PREEMPTIONS, clock=Clock.PER_STEP),
)

_TOKENS = (
    *(
        Name(
            _BY_SOURCE,
            canonical.PROMPT_TOKENS,
            labels=(("source", ours),),
            where=(("source", own),),
            clock=Clock.PER_STEP,
            optional=True,
        )
        for own, ours in (
            ("local_compute", "computed"),
            ("local_cache_hit", "cached"),
            ("external_kv_transfer", "external"),
        )
    ),
    Name(
        "prompt_tokens_total",
        canonical.PROMPT_TOKENS,
        labels=(("source", "all"),),
        unless=_BY_SOURCE,
        clock=Clock.PER_STEP,
        note="A prompt is counted as a whole when its prefill ends.",
    ),
    Name("generation_tokens_total", canonical.GENERATED_TOKENS, clock=Clock.PER_STEP),
    Name(
        "prefix_cache_queries_total",
        canonical.PREFIX_QUERIES,
        definition="tokens",
        clock=Clock.PER_STEP,
        was=(Was("gpu_prefix_cache_queries_total", "0.9.1"),),
        note="0.7 and 0.8 counted blocks under the former name.",
    ),
    Name(
        "prefix_cache_hits_total",
        canonical.PREFIX_HITS,
        definition="tokens",
        clock=Clock.PER_STEP,
        was=(Was("gpu_prefix_cache_hits_total", "0.9.1"),),
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
    Name(
        "inter_token_latency_seconds",
        canonical.ITL,
        definition="per_step",
        was=(Was("time_per_output_token_seconds", "0.10"),),
        note="Both names in 0.11. With speculation a step brings several tokens.",
    ),
    Name(
        "request_time_per_output_token_seconds",
        canonical.TPOT,
        definition="request_mean",
        optional=True,
    ),
    Name("e2e_request_latency_seconds", canonical.E2E),
    Name(
        "request_queue_time_seconds",
        canonical.QUEUE,
        was=(Was("time_in_queue_requests", "0.7"),),
        note="Observed when the request finishes, as are prefill and decode.",
    ),
    Name("request_prefill_time_seconds", canonical.PREFILL),
    Name("request_decode_time_seconds", canonical.DECODE),
)

_ENDS = (
    Name(
        "request_success_total",
        canonical.FINISHED,
        by=(("finished_reason", "reason"),),
        clock=Clock.AT_FINISH,
        note="Every end, in spite of its name: `abort` and `error` too.",
    ),
    *(
        Name(
            "http_requests_total",
            canonical.ERRORS,
            labels=(("kind", kind),),
            where=(("status", kind),),
            clock=Clock.AT_FINISH,
            plain=True,
            optional=True,
        )
        for kind in ("4xx", "5xx")
    ),
    Name(
        "lora_requests_info",
        canonical.LORA_ADAPTERS,
        by=(("running_lora_adapters", "running"), ("waiting_lora_adapters", "waiting")),
        combine=Combine.NEWEST,
        optional=True,
        note="The value is the wall clock; former label sets stay in the exposition.",
    ),
)

TABLE = NameTable(
    engine="vllm",
    title="vLLM",
    prefixes=("vllm:",),
    names=(*_QUEUES, *_TOKENS, *_LATENCIES, *_ENDS),
    source="vllm/v1/metrics/loggers.py of 0.32 and live captures of about 0.13 and of 0.32",
    parts=("engine",),
    models=("model_name", "model"),
    notes=(
        "Each data-parallel engine has a series of its own (`engine`): they add up. Tensor- and "
        "pipeline-parallel ranks publish nothing, the scheduler alone does.",
        "A request whose client goes away is dropped without a word: `abort` counts those that "
        "the scheduler itself ended, not those.",
        "`iteration_tokens_total` is a histogram and `_created` series are times: neither is used.",
        "With several API servers the gauges are those of whichever wrote last.",
        "As a backend of Triton it has no queue, no cache and no ends, and calls the time between "
        "tokens `time_per_output_token_seconds` still.",
    ),
)
