"""``model-probe attach``: the whole sidecar on a service that already runs, in one command.

Root starts ``probed`` for the wire and then becomes an ordinary user; anybody else joins a
``probed`` that is already there, or goes on without the wire and says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import structlog

from sidecar import privileges
from sidecar.collectors.engine import EngineCollector
from sidecar.config import (
    ConfigError,
    Settings,
    TargetSettings,
    from_values,
)
from sidecar.privileges import Capability
from sidecar.probed.loaders import LOADERS
from sidecar.probed.probe import PROBES, PROCESSLESS
from sidecar.signals import Leg, NoData

log = structlog.get_logger("attach")


def settings_for(
    ports: list[int],
    upstream_ports: list[int],
    engines: list[str],
    listen: str | None,
    interval_seconds: float = 5.0,
    gateways: tuple[str, ...] = (),
    probes: tuple[str, ...] = (),
) -> Settings:
    """Settings of the command line; the environment's stand above. ConfigError on bad ones."""
    wire = [{"port": port, "leg": Leg.DOWNSTREAM} for port in ports]
    wire += [{"port": port, "leg": Leg.UPSTREAM} for port in upstream_ports]
    values: dict[str, object] = {"wire": {"ports": wire}}
    urls = engines or find_engines([*upstream_ports, *ports])
    values["engines"] = [_target(url, interval_seconds) for url in urls]
    values["gateways"] = [_target(url, interval_seconds) for url in gateways]
    if probes:
        values["probes"] = {"enabled": probes}
    if listen:
        values["export"] = {"listen": listen}
    return from_values("command line", values)


def _target(url: str, interval_seconds: float) -> dict[str, object]:
    """Settings of a metrics URL; without a path the default one is read."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    target: dict[str, object] = {
        "name": _name(url),
        "url": f"{scheme}{mark}{host}",
        "interval_seconds": interval_seconds,
        "deadline_seconds": min(4.0, interval_seconds),
    }
    return {**target, "metrics_path": f"{slash}{path}"} if path else target


def _name(url: str) -> str:
    """Host and port of a URL as a replica's name, on this machine the port alone.

    A URL without them is refused later.
    """
    host = url.partition("://")[2].split("/")[0].rpartition("@")[2]
    host = host.replace("[", "").replace("]", "")
    return host.removeprefix("127.0.0.1:").removeprefix("localhost:")[:63] or "engine"


def find_engines(ports: list[int]) -> list[str]:
    """Which of our own ports answer with metrics of a known engine."""
    urls = [f"http://127.0.0.1:{port}" for port in ports if 0 < port < 65536]
    return [url for url in urls if _is_engine(url)]


def _is_engine(url: str) -> bool:
    collector = EngineCollector(TargetSettings(name="probe", url=url, deadline_seconds=2))
    try:
        collector.open()
        collector.collect(0.0)
    except NoData:
        return False
    finally:
        collector.close()
    return True


def start_probed(loader: str, peer_uid: int, probes: Iterable[str] = ("wire",)) -> Path:
    """Starts the privileged process, which ends when this one does, and returns its socket."""
    folder = Path(tempfile.mkdtemp(prefix="model-probe-"))
    folder.chmod(0o711)  # the peer must reach the socket, not list the folder
    path = folder / "probed.sock"
    # -P: modules come from the installation, not from a folder that root happens to stand in.
    command = [sys.executable, "-P", "-m", "sidecar.probed", "--loader", loader]
    command += [word for probe in probes for word in ("--probe", probe)]
    command += ["--socket", str(path)]
    command += ["--peer-uid", str(peer_uid), "--exit-on-stdin-eof", "--remove-folder"]
    # Its standard input is a pipe that only we hold: however we end, it sees the end of it.
    # Its own session: what a terminal sends to our group is for us to hand on or not.
    probed = subprocess.Popen(
        command, stdin=subprocess.PIPE, close_fds=True, start_new_session=True
    )
    watch = threading.Thread(
        target=_tell_its_end, args=(probed, folder), name="probed", daemon=True
    )
    watch.start()
    return path


def _tell_its_end(probed: subprocess.Popen[bytes], folder: Path) -> None:
    """Collects an ended ``probed`` and says so; without root it cannot be started again."""
    status = probed.wait()
    shutil.rmtree(folder, ignore_errors=True)  # it does so itself, unless it was killed
    log.error("probed has ended", status=status, remedy="start model-probe attach again")


def with_probed(settings: Settings, loader: str) -> tuple[Settings, Callable[[], str] | None]:
    """As root, starts ``probed``; returns the settings to use and how to drop privileges then.
    Raises ConfigError for a loader that there is not.
    """
    if loader not in ("auto", *LOADERS):
        known = ", ".join(("auto", *LOADERS))
        raise ConfigError(f"--loader: no such loader: {loader!r}; there are {known}")
    probed = settings.wire.watches or _follows(settings)
    if os.geteuid() != 0:
        if probed and not settings.wire.socket.exists():
            log.warning("not root: the wire is not measured", remedy="run this with sudo")
        return settings, None
    uid, _ = privileges.heir()
    if probed:
        peer = 0 if settings.kmsg.enabled else uid
        path = start_probed(loader, peer, settings.probes.enabled)
        wire = settings.wire.model_copy(update={"socket": path})
        settings = settings.model_copy(update={"wire": wire})
    return settings, drop_root(settings)


def drop_root(settings: Settings) -> Callable[[], str] | None:
    """How a root process becomes ordinary once everything is open; None for any other user."""
    if os.geteuid() != 0:
        return None
    keep = {Capability.SYSLOG} if settings.kmsg.enabled else set()  # to read the kernel's log
    return partial(privileges.drop_to, *privileges.heir(), keep)


def _follows(settings: Settings) -> bool:
    """Whether a probe is enabled that follows processes, and some are chosen."""
    return bool(settings.probes.processes) and not PROCESSLESS.issuperset(settings.probes.enabled)


def _refuse_unknown_probes(settings: Settings) -> None:
    """A misspelt probe would never be loaded."""
    for name in settings.probes.enabled:
        if name not in PROBES:
            known = ", ".join(sorted(PROBES))
            raise ConfigError(f"probes.enabled: no such probe: {name!r}; there are {known}")


def require_something(settings: Settings) -> None:
    """Refuses a start that could never show anything, or not what was asked for."""
    _refuse_unknown_probes(settings)
    watched = settings.wire.watches or settings.engines or settings.gateways
    if not (watched or _follows(settings)):
        raise ConfigError(
            "nothing to watch: give --port of the service, --engine of its metrics, or a "
            "configuration file with `wire.ports` or `engines`"
        )
