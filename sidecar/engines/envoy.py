"""Envoy, as proxy or as the data plane of a gateway.

Source: ``http_conn_man/stats.rst`` and ``cluster_manager/cluster_stats.rst`` of its documentation,
a live capture of 1.40, and runs of it in which clients left (HTTP/1 and HTTP/2) and engines died.
"""

from __future__ import annotations

from sidecar.engines import canonical
from sidecar.engines.table import Name, NameTable, Role
from sidecar.signals import Labels

_MILLISECONDS = 1e-3
_CLIENTS: Labels = (("envoy_http_conn_manager_prefix", "admin"),)  # left out: who reads statistics
_ENGINES: Labels = tuple(  # left out: Envoy's own clusters of Envoy Gateway and of its AI Gateway
    ("envoy_cluster_name", name)
    for name in ("xds_cluster", "prometheus_stats", "wasm_cluster", "ai-gateway-extproc-uds")
)

_DOWNSTREAM = (
    Name("http_downstream_rq_active", canonical.GATEWAY_ACTIVE, where_not=_CLIENTS),
    *(
        Name(
            "http_downstream_rq_xx",
            canonical.GATEWAY_REQUESTS,
            labels=(("code", f"{number}xx"),),
            where=(("envoy_response_code_class", str(number)),),
            where_not=_CLIENTS,
            note="A client that leaves during the answer is counted with the status it saw.",
        )
        for number in range(1, 6)
    ),
    Name(
        "http_downstream_cx_destroy_remote_active_rq",
        canonical.GATEWAY_ABORTS,
        where_not=_CLIENTS,
        note="Connections that clients closed before the end; of HTTP/2 one may hold several "
        "requests. `downstream_rq_rx_reset` is not used: it counts engines that die, too.",
    ),
    *(
        Name(
            f"{protocol}_rx_reset",
            canonical.GATEWAY_ABORTS,
            optional=True,
            note="Streams that clients reset.",
        )
        for protocol in ("http2", "http3")
    ),
    Name(
        "http_downstream_rq_time",
        canonical.GATEWAY_DURATION,
        where_not=_CLIENTS,
        scale=_MILLISECONDS,
        note="Of requests that came to their end only.",
    ),
)

_UPSTREAM = (
    *(
        Name(
            f"cluster_upstream_{raw}",
            canonical.GATEWAY_UPSTREAM_ERRORS,
            labels=(("kind", kind),),
            where_not=_ENGINES,
        )
        for raw, kind in (
            ("cx_connect_fail", "connect"),
            ("cx_destroy_remote_with_active_rq", "closed"),
            ("rq_rx_reset", "reset"),
            ("rq_timeout", "timeout"),
            ("rq_pending_overflow", "overflow"),
        )
    ),
    Name("cluster_upstream_rq_retry", canonical.GATEWAY_RETRIES, where_not=_ENGINES),
    Name("cluster_upstream_rq_pending_active", canonical.GATEWAY_QUEUED, where_not=_ENGINES),
    Name(
        "cluster_upstream_rq_time",
        canonical.GATEWAY_UPSTREAM_DURATION,
        where_not=_ENGINES,
        scale=_MILLISECONDS,
        optional=True,
        note="From the whole request sent to the whole answer received; with the first one.",
    ),
)

TABLE = NameTable(
    engine="envoy",
    title="Envoy",
    prefixes=("envoy_",),
    role=Role.GATEWAY,
    names=(*_DOWNSTREAM, *_UPSTREAM),
    source="http_conn_man/stats.rst, cluster_stats.rst, a live capture and runs of 1.40",
    metrics_path="/stats/prometheus",
    notes=(
        "Listeners' connection managers add up, except the admin interface's; the same counts by "
        "listener (`envoy_listener_http_…`) are not used.",
        "Clusters add up: what Envoy calls besides the engines (tracing, authorisation) is among "
        "them unless its cluster is one of Envoy Gateway's own.",
        "Its times are milliseconds; a stream's ends with its last byte. Its histograms lag by up "
        "to `stats_flush_interval` (5 s), its counters do not.",
        "An engine that breaks off an answer it has begun is `closed`: the client saw a 200.",
    ),
)
