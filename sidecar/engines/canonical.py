"""What every engine's and gateway's numbers are called here, whatever they call them themselves.

``definition`` tells numbers apart that share a name and not a meaning: what one observation of a
latency is, or whether a cache counts tokens or blocks.
"""

from __future__ import annotations

from sidecar.signals import Kind, Metric

ENGINE_LABELS = ("engine", "replica", "model", "dp_rank")
GATEWAY_LABELS = ("gateway", "replica", "model")
DEFINITION = "definition"
LAST_BATCH = "last_batch"  # of a ratio: the engine's own gauge, of one batch


def _engine(name: str, kind: Kind, text: str, *labels: str) -> Metric:
    return Metric(f"modelprobe_engine_{name}", kind, text, (*ENGINE_LABELS, *labels))


def _gateway(name: str, kind: Kind, text: str, *labels: str) -> Metric:
    return Metric(f"modelprobe_gateway_{name}", kind, text, (*GATEWAY_LABELS, *labels))


START_TIME = Metric(
    "modelprobe_target_start_time_seconds",
    Kind.GAUGE,
    "When the process that answers says it started, Unix time.",
    ("replica",),
)
RUNNING = _engine("requests_running", Kind.GAUGE, "Requests the engine says it is processing.")
WAITING = _engine("requests_waiting", Kind.GAUGE, "Requests the engine says are waiting.")
WAITING_BY_REASON = _engine(
    "requests_waiting_by_reason",
    Kind.GAUGE,
    "Those of the waiting requests for which the engine gives a reason.",
    "reason",
)
KV_USAGE = _engine(
    "kv_cache_usage_ratio", Kind.GAUGE, "Share of the KV cache in use, 0 to 1; of copies the worst."
)
PREFIX_QUERIES = _engine(
    "prefix_cache_queries_total",
    Kind.COUNTER,
    "What was looked up in the prefix cache; `definition`: `tokens` or `blocks`.",
    DEFINITION,
)
PREFIX_HITS = _engine(
    "prefix_cache_hits_total",
    Kind.COUNTER,
    "What of it was found there; `definition`: `tokens` or `blocks`.",
    DEFINITION,
)
PREFIX_HIT_RATIO = _engine(
    "prefix_cache_hit_ratio",
    Kind.GAUGE,
    "Found share of what was looked up in the last minute, from the engine's counters; "
    "`definition` `last_batch`: the engine's own gauge. No sample while nothing is looked up.",
    DEFINITION,
)
PROMPT_TOKENS = _engine(
    "prompt_tokens_total",
    Kind.COUNTER,
    "Prompt tokens; `source`: `computed`, `cached`, or `all` where the engine does not tell.",
    "source",
)
GENERATED_TOKENS = _engine(
    "generated_tokens_total", Kind.COUNTER, "Tokens the engine says it generated."
)
PROMPT_SECONDS = _engine(
    "prompt_seconds_total", Kind.COUNTER, "Time the engine says it spent on prompts."
)
DECODE_SECONDS = _engine(
    "decode_seconds_total",
    Kind.COUNTER,
    "Time the engine says requests spent generating, summed over requests.",
)
DECODE_STEPS = _engine(
    "decode_steps_total", Kind.COUNTER, "Decode steps (forward passes) of the engine."
)
TTFT = _engine(
    "time_to_first_token_seconds",
    Kind.HISTOGRAM,
    "Time to first token as the engine counts it, with its own bounds.",
    DEFINITION,
)
ITL = _engine(
    "inter_token_latency_seconds",
    Kind.HISTOGRAM,
    "Time between output tokens; `definition`: `per_step` (one observation a request and step, "
    "which may bring several tokens) or `per_token` (the interval divided by its tokens).",
    DEFINITION,
)
TPOT = _engine(
    "time_per_output_token_seconds",
    Kind.HISTOGRAM,
    "Mean time of an output token after the first; one observation a request.",
    DEFINITION,
)
E2E = _engine(
    "request_duration_seconds", Kind.HISTOGRAM, "Whole requests, as the engine counts them."
)
QUEUE = _engine("queue_time_seconds", Kind.HISTOGRAM, "Time requests waited in the engine.")
PREFILL = _engine("prefill_time_seconds", Kind.HISTOGRAM, "Time requests spent in prefill.")
DECODE = _engine("decode_time_seconds", Kind.HISTOGRAM, "Time requests spent in decode.")
PREEMPTIONS = _engine(
    "preemptions_total", Kind.COUNTER, "Times a running request lost its KV blocks to another."
)
PAUSED = _engine("requests_paused", Kind.GAUGE, "Requests set back for want of KV blocks.")
DRAFT_TOKENS = _engine(
    "speculative_draft_tokens_total", Kind.COUNTER, "Tokens the draft of speculation proposed."
)
ACCEPTED_TOKENS = _engine(
    "speculative_accepted_tokens_total", Kind.COUNTER, "Those of them that were accepted."
)
ACCEPTANCE_RATIO = _engine(
    "speculative_acceptance_ratio",
    Kind.GAUGE,
    "Accepted share of drafted tokens, as the engine gives it.",
)
FINISHED = _engine(
    "requests_finished_total", Kind.COUNTER, "Requests ended, by the engine's reason.", "reason"
)
ERRORS = _engine("request_errors_total", Kind.COUNTER, "Requests that failed, by kind.", "kind")
GPU_MEMORY_USED = _engine(
    "gpu_memory_used_bytes", Kind.GAUGE, "GPU memory in use, as the engine gives it.", "uuid"
)
GPU_MEMORY_TOTAL = _engine(
    "gpu_memory_total_bytes", Kind.GAUGE, "GPU memory there is, as the engine gives it.", "uuid"
)
LORA_ADAPTERS = _engine(
    "lora_adapter",
    Kind.GAUGE,
    "1 for each LoRA adapter in this state, from the newest of the engine's label sets.",
    "adapter",
    "state",
)

GATEWAY_ACTIVE = _gateway("requests_active", Kind.GAUGE, "Requests in the gateway now.")
GATEWAY_REQUESTS = _gateway(
    "requests_total", Kind.COUNTER, "Requests answered to clients, by class of status.", "code"
)
GATEWAY_ABORTS = _gateway(
    "client_aborts_total", Kind.COUNTER, "Requests whose client went away before their end."
)
GATEWAY_UPSTREAM_ERRORS = _gateway(
    "upstream_errors_total", Kind.COUNTER, "Failures towards the engine, by kind.", "kind"
)
GATEWAY_RETRIES = _gateway("retries_total", Kind.COUNTER, "Requests sent to an engine again.")
GATEWAY_QUEUED = _gateway("requests_queued", Kind.GAUGE, "Requests that wait for an engine.")
GATEWAY_DURATION = _gateway(
    "request_duration_seconds", Kind.HISTOGRAM, "Whole requests, as the gateway counts them."
)
GATEWAY_UPSTREAM_DURATION = _gateway(
    "upstream_duration_seconds", Kind.HISTOGRAM, "The engine's part of them."
)
GATEWAY_OVERHEAD = _gateway(
    "overhead_seconds", Kind.HISTOGRAM, "The gateway's own part of them, where it tells."
)
GATEWAY_TTFT = _gateway(
    "time_to_first_token_seconds", Kind.HISTOGRAM, "Time to first token, as the gateway counts it."
)
GATEWAY_TPOT = _gateway(
    "time_per_output_token_seconds", Kind.HISTOGRAM, "Mean time of an output token after the first."
)
GATEWAY_TOKENS = _gateway(
    "tokens_total", Kind.COUNTER, "Tokens as the gateway accounts for them.", "type"
)

QUANTILE = Metric(
    "modelprobe_target_latency_quantile_seconds",
    Kind.GAUGE,
    "Between which bounds a quantile of the last minute lies, from the target's own buckets; "
    "`signal` is the histogram's name. Without `upper` it lies beyond the last bucket.",
    ("replica", "signal", "quantile", "bound"),
)

CANONICAL: tuple[Metric, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Metric)
)
