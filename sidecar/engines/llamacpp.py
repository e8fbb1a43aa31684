"""llama.cpp's server: a handful of counters and gauges, no histogram, no KV usage.

Source: ``tools/server/server-context.cpp`` and ``server-common.h`` of the main branch (2026-10) and
live captures of it; what it had before pull requests 13660 and 26389 from those. It exposes nothing
about latency of single requests: TTFT and ITL come from the wire only.
"""

from __future__ import annotations

from sidecar.engines import canonical
from sidecar.engines.table import Clock, Name, NameTable

_PROMPT = (("prompt_tokens_total", "computed"), ("prompt_tokens_cached_total", "cached"))

TABLE = NameTable(
    engine="llamacpp",
    title="llama.cpp",
    prefixes=("llamacpp:",),
    names=(
        Name("requests_processing", canonical.RUNNING),
        Name("requests_deferred", canonical.WAITING),
        Name(
            "kv_cache_usage_ratio",
            canonical.KV_USAGE,
            optional=True,
            note="Taken out in May 2025, with no successor.",
        ),
        *(
            Name(
                raw,
                canonical.PROMPT_TOKENS,
                labels=(("source", source),),
                clock=Clock.PER_STEP,
                optional=source == "cached",
                note="Builds before mid-2026 count a prompt in one jump when its prefill ends.",
            )
            for raw, source in _PROMPT
        ),
        *(
            Name(
                raw,
                canonical.PREFIX_QUERIES,
                definition="tokens",
                clock=Clock.PER_STEP,
                optional=True,
                note="What was looked up is what was computed and what was cached.",
            )
            for raw, _ in _PROMPT
        ),
        Name(
            "prompt_tokens_cached_total",
            canonical.PREFIX_HITS,
            definition="tokens",
            clock=Clock.PER_STEP,
            optional=True,
        ),
        Name("tokens_predicted_total", canonical.GENERATED_TOKENS, clock=Clock.AT_FINISH),
        Name("prompt_seconds_total", canonical.PROMPT_SECONDS, clock=Clock.PER_STEP),
        Name(
            "tokens_predicted_seconds_total",
            canonical.DECODE_SECONDS,
            clock=Clock.AT_FINISH,
            note="Summed over requests: with four slots busy it grows four times as fast as time.",
        ),
        Name(
            "n_decode_total",
            canonical.DECODE_STEPS,
            clock=Clock.PER_STEP,
            note="Calls of llama_decode: those of prefill too.",
        ),
        Name(
            "spec_decode_num_draft_tokens_total",
            canonical.DRAFT_TOKENS,
            clock=Clock.AT_FINISH,
            optional=True,
        ),
        Name(
            "spec_decode_num_accepted_tokens_total",
            canonical.ACCEPTED_TOKENS,
            clock=Clock.AT_FINISH,
            optional=True,
        ),
    ),
    source="tools/server/server-context.cpp of the main branch, 2026-10, and live captures",
    notes=(
        "Needs `--metrics`; without it `/metrics` answers 501.",
        "No labels: one process is one model and one scheduler.",
        "`prompt_tokens_seconds` and `predicted_tokens_seconds` are means since the last scrape, "
        "whoever made it: with two readers each sees a part. They are not used.",
        "It counts no ends, no errors and no aborts.",
    ),
)
