"""Debian's Alertmanager on loopback, alone: it groups, silences and resolves, and tells nobody."""

import argparse
import json
import os
import shutil
import sys
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn, cast

from rig.gateway import Absent, Launch
from rig.meter import scrape, values
from rig.part import Part

Alert = dict[str, Any]
SETTINGS = """\
route:
  receiver: nobody
receivers:
  - name: nobody
"""


def binary() -> Path:
    """The installed Alertmanager; raises `Absent`.

    Debian's build only runs installed: it reads its templates from /usr/share.
    """
    for name in ("prometheus-alertmanager", "alertmanager"):
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    raise Absent("Alertmanager is not installed: apt-get install prometheus-alertmanager")


def plan(folder: Path, port: int) -> Launch:
    """Write its configuration into `folder` and say how to run it on 127.0.0.1:`port`."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "alertmanager.yml"
    config.write_text(SETTINGS)
    address = f"127.0.0.1:{port}"
    options = (
        f"--config.file={config}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",  # a cluster of one would listen on every interface
        "--log.level=warn",
    )
    return Launch(
        name="alertmanager",
        command=(str(binary()), *options),
        ready_url=f"http://{address}/-/ready",
        metrics_url=f"http://{address}/metrics",
    )


def alerts(port: int) -> list[Alert]:
    """The alerts that it takes for active now, as its API has them."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/api/v2/alerts")
        return cast(list[Alert], json.load(connection.getresponse()))
    finally:
        connection.close()


class Running:
    """An Alertmanager on one port that can be stopped and started again; it forgets its alerts."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        self._folder = folder
        self._part: Part | None = None

    def start(self, seconds: float = 20.0) -> None:
        """Returns when it is ready; raises `Absent`, `PartDied` or TimeoutError."""
        launch = plan(self._folder, self.port)
        self._part = Part(launch.name, launch.command, self._folder, launch.ready_url)
        self._part.wait_ready(monotonic() + seconds)

    def stop(self) -> None:
        """End it, if it was started."""
        if self._part is not None:
            self._part.terminate()
            self._part.reap(monotonic() + 5)

    def alerts(self, rule: str) -> list[Alert]:
        """The active alerts of a rule."""
        return [one for one in alerts(self.port) if one["labels"]["alertname"] == rule]

    def received(self) -> float:
        """How many alerts it has been sent, repetitions included."""
        found = values(scrape(f"http://127.0.0.1:{self.port}/metrics"))
        name = "alertmanager_alerts_received_total"
        return sum(value for (other, _), value in found.items() if other == name)


def main() -> NoReturn:
    """Become the Alertmanager; exit 2 when it is absent."""
    parser = argparse.ArgumentParser(prog="./run rig alertmanager", description=__doc__)
    parser.add_argument("--port", type=int, default=9093)
    parser.add_argument("--folder", type=Path, default=Path(".cache/rig"))
    args = parser.parse_args()
    try:
        launch = plan(args.folder, args.port)
    except Absent as absent:
        print(absent, file=sys.stderr)
        sys.exit(2)
    os.execv(launch.command[0], launch.command)  # noqa: S606  the same pid, no shell


if __name__ == "__main__":
    main()
