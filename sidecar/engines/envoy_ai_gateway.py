"""Envoy AI Gateway's processor, by the names of OpenTelemetry's conventions for generative AI.

Source: ``internal/metrics/genai.go``, ``metrics_impl.go`` and ``cmd/extproc/mainlib/admin_test.go``
of the main branch (2026-08); no live capture. Envoy itself: :mod:`sidecar.engines.envoy`.
"""

from __future__ import annotations

from sidecar.engines import canonical
from sidecar.engines.table import Name, NameTable, Role
from sidecar.signals import Labels

_ERROR: Labels = (("error_type", "_OTHER"),)
_COUNT = "server_request_duration_seconds_count"

TABLE = NameTable(
    engine="envoy_ai_gateway",
    title="Envoy AI Gateway",
    prefixes=("gen_ai_",),
    role=Role.GATEWAY,
    names=(
        Name(
            _COUNT,
            canonical.GATEWAY_REQUESTS,
            labels=(("code", "ok"),),
            where_not=_ERROR,
            note="It tells no status, only whether there was an error.",
        ),
        Name(
            _COUNT,
            canonical.GATEWAY_REQUESTS,
            labels=(("code", "error"),),
            where=_ERROR,
            optional=True,
        ),
        Name("server_request_duration_seconds", canonical.GATEWAY_DURATION),
        Name(
            "server_time_to_first_token_seconds",
            canonical.GATEWAY_TTFT,
            optional=True,
            note="From the request's headers to the first piece of a stream.",
        ),
        Name(
            "server_time_per_output_token_seconds",
            canonical.GATEWAY_TPOT,
            optional=True,
            note="Without the first token, as the conventions have it; streams only.",
        ),
        *(
            Name(
                "client_token_usage_sum",
                canonical.GATEWAY_TOKENS,
                labels=(("type", kind),),
                where=(("gen_ai_token_type", kind),),
                optional=True,
            )
            for kind in ("input", "cached_input", "cache_creation_input", "output", "reasoning")
        ),
    ),
    source="internal/metrics/genai.go and metrics_impl.go of the main branch, 2026-08",
    # The name clients ask for, before the gateway puts another in its place.
    models=("gen_ai_original_model", "gen_ai_request_model"),
    notes=(
        "It answers on the admin port of its external processor (1064), not on Envoy's.",
        "Whatever else uses these conventions in the Prometheus format is read the same way.",
        "`cached_input`, `cache_creation_input` and `reasoning` are among `input` and `output`.",
        "Clients that went away, retries and engines' errors are Envoy's to count.",
    ),
)
