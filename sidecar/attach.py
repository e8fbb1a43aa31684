"""``model-probe attach``: the whole sidecar on a service that already runs, in one command.

Root starts ``probed`` for the wire and then becomes an ordinary user; anybody else joins a
``probed`` that is already there, or goes on without the wire and says so.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import structlog

from sidecar import privileges
from sidecar.collectors.engine import EngineCollector
from sidecar.config import (
    ConfigError,
    EngineSettings,
    Settings,
    WireSettings,
    from_values,
)
from sidecar.signals import Leg, NoData

log = structlog.get_logger("attach")


def settings_for(
    ports: list[int],
    upstream_ports: list[int],
    engines: list[str],
    listen: str | None,
    interval_seconds: float = 5.0,
) -> Settings:
    """Settings of the command line; the environment's stand above. ConfigError on bad ones."""
    wire = [{"port": port, "leg": Leg.DOWNSTREAM} for port in ports]
    wire += [{"port": port, "leg": Leg.UPSTREAM} for port in upstream_ports]
    values: dict[str, object] = {"wire": {"ports": wire}}
    urls = engines or find_engines([*upstream_ports, *ports])
    deadline = min(4.0, interval_seconds)
    values["engines"] = [
        {
            "name": _name(url),
            "url": url,
            "interval_seconds": interval_seconds,
            "deadline_seconds": deadline,
        }
        for url in urls
    ]
    if listen:
        values["export"] = {"listen": listen}
    return from_values("command line", values)


def _name(url: str) -> str:
    """Host and port of a URL as a replica's name, on this machine the port alone.

    A URL without them is refused later.
    """
    host = url.partition("://")[2].split("/")[0].replace("[", "").replace("]", "")
    return host.removeprefix("127.0.0.1:").removeprefix("localhost:")[:63] or "engine"


def find_engines(ports: list[int]) -> list[str]:
    """Which of our own ports answer with metrics of a known engine."""
    return [url for url in (f"http://127.0.0.1:{port}" for port in ports) if _is_engine(url)]


def _is_engine(url: str) -> bool:
    collector = EngineCollector(EngineSettings(name="probe", url=url, deadline_seconds=2))
    try:
        collector.open()
        collector.collect(0.0)
    except NoData:
        return False
    finally:
        collector.close()
    return True


def start_probed(loader: str, peer_uid: int) -> Path:
    """Starts the privileged process, which ends when this one does, and returns its socket."""
    folder = Path(tempfile.mkdtemp(prefix="model-probe-"))
    folder.chmod(0o711)  # the peer must reach the socket, not list the folder
    path = folder / "probed.sock"
    command = [sys.executable, "-m", "sidecar.probed", "--socket", str(path), "--loader", loader]
    command += ["--peer-uid", str(peer_uid), "--exit-on-stdin-eof", "--remove-folder"]
    # Its standard input is a pipe that only we hold: however we end, it sees the end of it.
    subprocess.Popen(command, stdin=subprocess.PIPE, close_fds=True)
    return path


def with_probed(settings: Settings, loader: str) -> tuple[Settings, Callable[[], str] | None]:
    """As root, starts ``probed``; returns the settings to use and how to drop privileges then."""
    if os.geteuid() != 0:
        return settings, None
    uid, gid = privileges.heir()
    if settings.wire.ports:
        wire = WireSettings(socket=start_probed(loader, uid), ports=settings.wire.ports)
        settings = settings.model_copy(update={"wire": wire})
    return settings, partial(privileges.drop_to, uid, gid)


def require_something(settings: Settings) -> None:
    """Refuses a start that could never show anything."""
    if not settings.wire.ports and not settings.engines:
        raise ConfigError(
            "nothing to watch: give --port of the service, --engine of its metrics, or a "
            "configuration file with `wire.ports` or `engines`"
        )
