"""HAProxy in front of the engines with its usual settings, which lump streamed answers.

Left out on purpose: `option http-no-delay`. Without it HAProxy corks small chunks (MSG_MORE) and
the kernel releases them about every 200 ms, which the engines' own figures cannot show.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from rig.gateway import Absent, Launch

SETTINGS = """\
global
    nbthread 1
    log stdout format raw local0 notice

defaults
    mode http
    log global
    timeout connect 1s
    timeout client 60s
    timeout server 60s
    timeout queue 5s
    # llama.cpp closes its side after a request although it advertises keep-alive: give each
    # request a connection of its own on the engines' side, or some requests fail.
    option http-server-close
    # A refused connection has done no work: try the other replica.
    retries 2
    option redispatch 1

frontend gateway
    bind 127.0.0.1:{port}
    default_backend engines

frontend statistics
    bind 127.0.0.1:{admin_port}
    http-request use-service prometheus-exporter if {{ path /metrics }}
    stats enable
    stats uri /stats

backend engines
    balance roundrobin
{servers}
"""


def binary() -> Path:
    """The installed haproxy, also where /usr/sbin is not in PATH; raises `Absent`."""
    found = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise Absent("HAProxy is not installed: apt-get install haproxy")
    return Path(found)


def plan(folder: Path, port: int, admin_port: int, engines: Sequence[int]) -> Launch:
    """Write haproxy.cfg and run it in the foreground as one process (`-db`)."""
    servers = "\n".join(f"    server engine-{at} 127.0.0.1:{at}" for at in engines)
    config = folder / "haproxy.cfg"
    config.write_text(SETTINGS.format(port=port, admin_port=admin_port, servers=servers))
    metrics = f"http://127.0.0.1:{admin_port}/metrics"
    return Launch(
        name="haproxy",
        command=(str(binary()), "-db", "-f", str(config)),
        ready_url=metrics,
        metrics_url=metrics,
    )
