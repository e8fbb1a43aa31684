"""uvicorn with the scripted application, on an event loop and with an HTTP parser of one's choice.

asyncio with h11 is in `.venv/`; uvloop and httptools are in `.venv-servers/`, so that they do not
become the sidecar's own by being there.
"""

import sys
from pathlib import Path

from rig.apart import program
from rig.gateway import Launch


def plan(port: int, loop: str = "asyncio", http: str = "h11") -> Launch:
    """One worker on 127.0.0.1; `loop` asyncio or uvloop, `http` h11 or httptools. Raises Absent."""
    python = Path(sys.executable)
    if (loop, http) != ("asyncio", "h11"):
        python = program("servers", "python")
    options = ("--loop", loop, "--http", http, "--host", "127.0.0.1", "--port", str(port))
    quiet = ("--lifespan", "off", "--no-access-log", "--log-level", "warning")
    url = f"http://127.0.0.1:{port}"
    return Launch(
        name=f"uvicorn-{loop}-{http}",
        command=(str(python), "-P", "-m", "uvicorn", "rig.scripted:app", *options, *quiet),
        ready_url=f"{url}/plain",
        metrics_url=f"{url}/metrics",
    )
