"""A real Prometheus on loopback: a past that is made up, and whatever it is told to scrape.

Its past comes from OpenMetrics text through promtool, which writes the blocks that a server would
have written; so a week of history is there in seconds. Debian: apt-get install prometheus.
"""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from rig.gateway import Absent, Launch

KEPT = "100y"  # of history: made-up samples may be old
SECONDS = 60.0  # for promtool


def binary(name: str) -> Path:
    """The installed `prometheus` or `promtool`; raises `Absent`."""
    found = shutil.which(name)
    if found is None:
        raise Absent(f"{name} is not installed: apt-get install prometheus")
    return Path(found)


def remember(data: Path, openmetrics: str) -> None:
    """Put samples, each with its time, into the data folder of a server that does not run."""
    data.mkdir(parents=True, exist_ok=True)
    text = data.with_suffix(".om")
    text.write_text(openmetrics)
    command = (str(binary("promtool")), "tsdb", "create-blocks-from", "openmetrics")
    subprocess.run(
        (*command, str(text), str(data)), check=True, capture_output=True, timeout=SECONDS
    )


def plan(folder: Path, port: int, targets: Sequence[str] = (), interval: str = "1s") -> Launch:
    """Write prometheus.json, which is YAML as well, and run it on the past in `folder`/data.

    `targets` are HOST:PORT to scrape `/metrics` of.
    """
    folder.mkdir(parents=True, exist_ok=True)
    job = {"job_name": "rig", "scrape_interval": interval, "scrape_timeout": interval}
    scraped = [{**job, "static_configs": [{"targets": list(targets)}]}] if targets else []
    config = folder / "prometheus.json"
    config.write_text(json.dumps({"scrape_configs": scraped}, indent=2) + "\n")
    url = f"http://127.0.0.1:{port}"
    return Launch(
        name="prometheus",
        command=(
            str(binary("prometheus")),
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--storage.tsdb.retention.time={KEPT}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=warn",
        ),
        ready_url=f"{url}/-/ready",
        metrics_url=f"{url}/metrics",
    )
