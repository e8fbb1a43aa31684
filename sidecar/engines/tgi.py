"""Text Generation Inference.

Source: ``docs/source/reference/metrics.md``, ``router/src`` and ``backends/v3/src`` of the main
branch (2026-01); a hand-written exposition with its real names.
"""

from __future__ import annotations

from sidecar.engines import canonical
from sidecar.engines.table import Clock, Name, NameTable

_QUEUES = (
    Name(
        "batch_current_size",
        canonical.RUNNING,
        note="The decoding batch: requests in prefill are not in it yet.",
    ),
    Name("queue_size", canonical.WAITING),
)

_TOKENS = (
    Name(
        "request_input_length_sum",
        canonical.PROMPT_TOKENS,
        labels=(("source", "all"),),
        clock=Clock.AT_FINISH,
        note="Counted when a request is validated, before it waits.",
    ),
    Name("request_generated_tokens_sum", canonical.GENERATED_TOKENS, clock=Clock.AT_FINISH),
    Name(
        "request_skipped_tokens_sum",
        canonical.ACCEPTED_TOKENS,
        clock=Clock.PER_STEP,
        optional=True,
        note="How many were proposed is not told.",
    ),
    *(
        Name(
            "batch_inference_count",
            canonical.DECODE_STEPS,
            where=(("method", method),),
            clock=Clock.PER_STEP,
            optional=True,
        )
        # Some exporters that speak for TGI print the whole mapping into the label.
        for method in ("decode", "{'method': 'decode'}")
    ),
)

_LATENCIES = (
    Name(
        "request_mean_time_per_token_duration",
        canonical.TPOT,
        definition="request_mean_with_prefill",
        note="Inference time, prefill too, by all tokens: longer than others' TPOT.",
    ),
    Name("request_duration", canonical.E2E),
    Name("request_queue_duration", canonical.QUEUE),
)

_ENDS = (
    Name(
        "request_success",
        canonical.FINISHED,
        labels=(("reason", "success"),),
        clock=Clock.AT_FINISH,
    ),
    Name(
        "request_failure",
        canonical.ERRORS,
        by=(("err", "kind"),),
        clock=Clock.AT_FINISH,
        optional=True,
        note="overloaded, validation, template, incomplete, generation or dropped: a client that "
        "went away is `dropped`.",
    ),
)

TABLE = NameTable(
    engine="tgi",
    title="Text Generation Inference",
    prefixes=("tgi_",),
    names=(*_QUEUES, *_TOKENS, *_LATENCIES, *_ENDS),
    source="docs/source/reference/metrics.md, router/src/server.rs and backends/v3/src of 2026-01",
    notes=(
        "No labels of a model or a rank: one router publishes for all shards.",
        "It has no time to the first token and none between tokens, and no KV usage: only the "
        "tokens of the batch and of the batch at most, which are not of the same kind.",
        "Latencies are of successful requests, and observed at their end.",
    ),
)
