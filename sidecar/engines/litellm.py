"""LiteLLM's proxy.

Source: ``litellm/integrations/prometheus.py``, ``types/integrations/prometheus.py`` and
``proxy/middleware/in_flight_requests_middleware.py`` of 1.110.2; a live capture of 1.105.7, and a
run of it in which a client left, an engine failed and a model was not there.
"""

from __future__ import annotations

from sidecar.engines import canonical
from sidecar.engines.table import Name, NameTable, Role

TABLE = NameTable(
    engine="litellm",
    title="LiteLLM",
    prefixes=("litellm_",),
    role=Role.GATEWAY,
    names=(
        Name(
            "in_flight_requests",
            canonical.GATEWAY_ACTIVE,
            note="Counts whoever reads `/metrics` too: an idle one says 1.",
        ),
        Name(
            "proxy_total_requests_metric_total",
            canonical.GATEWAY_REQUESTS,
            by=(("status_code", "code"),),
            optional=True,
        ),
        Name(
            "deployment_failure_responses_total",
            canonical.GATEWAY_UPSTREAM_ERRORS,
            by=(("exception_status", "kind"),),
            where_not=(("litellm_model_name", ""),),
            optional=True,
            note="Without those for models it does not know, which reach no engine.",
        ),
        Name("request_total_latency_metric", canonical.GATEWAY_DURATION, optional=True),
        Name("llm_api_latency_metric", canonical.GATEWAY_UPSTREAM_DURATION, optional=True),
        Name(
            "overhead_latency_metric",
            canonical.GATEWAY_OVERHEAD,
            optional=True,
            note="In seconds, although its help says milliseconds. Not of streams.",
        ),
        Name(
            "llm_api_time_to_first_token_metric",
            canonical.GATEWAY_TTFT,
            optional=True,
            note="From the call of the engine on, not from the client's request; streams only.",
        ),
        *(
            Name(
                f"{raw}_tokens_metric_total",
                canonical.GATEWAY_TOKENS,
                labels=(("type", kind),),
                optional=True,
            )
            for raw, kind in (
                ("input", "input"),
                ("input_cached", "cached_input"),
                ("output", "output"),
                ("output_reasoning", "reasoning"),
            )
        ),
    ),
    source="litellm/integrations/prometheus.py of 1.110.2, a live capture and a run of 1.105.7",
    # The name clients ask for; `model` is the one LiteLLM calls the engine by.
    models=("requested_model", "model_group", "model"),
    notes=(
        "Needs the `prometheus` callback. All but the number in flight appear with their first "
        "request.",
        "Up to twenty labels (keys, users, teams) are added up: none of them is kept.",
        "`cached_input` and `reasoning` tokens are among `input` and `output`, not beside them.",
        "`deployment_latency_per_output_token` divides a stream's time to its first token by all "
        "of its tokens: it is no time per output token, and not used.",
        "Total latency takes in the time before authentication since mid-2026 only.",
        "It counts no clients that went away and no retries: a stream nobody heard to its end is "
        "a 200 like others, with tokens that LiteLLM guessed.",
    ),
)
