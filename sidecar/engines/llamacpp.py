"""llama.cpp's server: a handful of counters and gauges, no histogram, no KV usage.

Source: ``server_metrics`` in tools/server/server.cpp, and live captures of the rig. It exposes
nothing about latency of single requests: TTFT and ITL come from the wire only.
"""

from sidecar import engines
from sidecar.engines import Clock, Name, NameTable

TABLE = NameTable(
    engine="llamacpp",
    marks=("llamacpp:", "llamacpp_"),
    names={
        "requests_processing": Name(engines.RUNNING),
        "requests_deferred": Name(engines.WAITING),
        "prompt_tokens_total": Name(
            engines.PROMPT_TOKENS, labels=(("source", "computed"),), clock=Clock.AT_FINISH
        ),
        "prompt_tokens_cached_total": Name(
            engines.PROMPT_TOKENS, labels=(("source", "cached"),), clock=Clock.AT_FINISH
        ),
        "tokens_predicted_total": Name(engines.GENERATED_TOKENS, clock=Clock.AT_FINISH),
        "prompt_seconds_total": Name(engines.PROMPT_SECONDS, clock=Clock.AT_FINISH),
        "tokens_predicted_seconds_total": Name(engines.DECODE_SECONDS, clock=Clock.AT_FINISH),
        "n_decode_total": Name(engines.DECODE_STEPS, clock=Clock.PER_STEP),
    },
)
