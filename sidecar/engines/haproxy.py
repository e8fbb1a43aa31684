"""HAProxy, by its own exporter.

Source: ``addons/promex/README`` of its repository, a live capture of 2.8.25, and runs of it in
which clients left, servers died or were not there, and the frontend answered by itself.
"""

from __future__ import annotations

from sidecar.engines import canonical
from sidecar.engines.table import Name, NameTable, Role

TABLE = NameTable(
    engine="haproxy",
    title="HAProxy",
    prefixes=("haproxy_",),
    role=Role.GATEWAY,
    names=(
        Name("backend_current_sessions", canonical.GATEWAY_ACTIVE, note="Queued ones too."),
        Name(
            "backend_http_responses_total",
            canonical.GATEWAY_REQUESTS,
            by=(("code", "code"),),
            note="A client that leaves during the answer is counted with the status it saw.",
        ),
        Name(
            "backend_client_aborts_total",
            canonical.GATEWAY_ABORTS,
            note="Without `option abortonclose` one that leaves before its answer begins is found "
            "out when it does.",
        ),
        *(
            Name(
                f"backend_{raw}_errors_total",
                canonical.GATEWAY_UPSTREAM_ERRORS,
                labels=(("kind", kind),),
            )
            for raw, kind in (("connection", "connect"), ("response", "response"))
        ),
        *(
            Name(
                f"backend_{raw}_warnings_total",
                canonical.GATEWAY_RETRIES,
                note="A retry goes to the same server, a redispatch to another.",
            )
            for raw in ("retry", "redispatch")
        ),
        *(
            Name(
                f"{where}_current_queue",
                canonical.GATEWAY_QUEUED,
                note="A backend's queue and those of its servers hold different requests.",
            )
            for where in ("backend", "server")
        ),
    ),
    source="addons/promex/README, a live capture and runs of 2.8.25",
    notes=(
        "Backends add up, not frontends: a frontend counts this exporter's readers and the pages "
        "of statistics as well, and could be told apart by its name only. What a frontend answers "
        "by itself (denied, limited, malformed) is thus not among the requests.",
        "Servers' aborts are among the `response` errors already.",
        "It has means over the last 1024 requests, no histogram: no durations come from it.",
    ),
)
