"""nginx in front of an engine, with its own defaults or as it is set for streams.

By default it speaks HTTP/1.0 to the engine, a connection a request, and buffers the answer. It is
no gateway of the demo's table: its statistics are not Prometheus' and no collector reads them.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from rig.gateway import Absent, Launch

SETTINGS = """\
daemon off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream engines {{
{servers}
        keepalive 32;
    }}
    sendfile on;
    server {{
        listen 127.0.0.1:{port};
        location /files/ {{
            root {folder};
            default_type text/event-stream;
        }}
        location / {{
            proxy_pass http://engines;
{streaming}
        }}
    }}
    server {{
        listen 127.0.0.1:{admin_port};
        location / {{ return 200 "ready\\n"; }}
    }}
}}
"""
STREAMING = """\
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_read_timeout 60s;
"""


def binary() -> Path:
    """The installed nginx, also where /usr/sbin is not in PATH; raises `Absent`."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        # By hand, apt-get install nginx-light would also start it, on every interface.
        raise Absent("nginx is not installed: ./run rig servers installs it, or says why not")
    return Path(found)


def plan(
    folder: Path, port: int, admin_port: int, engines: Sequence[int], streaming: bool = True
) -> Launch:
    """Write nginx.conf and run it in the foreground. Not `streaming`: with its own defaults.

    What lies in `folder`/files it sends itself, by sendfile(2), as streams.
    """
    servers = "\n".join(f"        server 127.0.0.1:{at};" for at in engines)
    config = folder / "nginx.conf"
    config.write_text(
        SETTINGS.format(
            folder=folder,
            port=port,
            admin_port=admin_port,
            servers=servers,
            streaming=STREAMING if streaming else "",
        )
    )
    ready = f"http://127.0.0.1:{admin_port}/"
    return Launch(
        name="nginx",
        # -e: until it has read its settings it would write to the system's own log.
        command=(str(binary()), "-e", "stderr", "-p", str(folder), "-c", str(config)),
        ready_url=ready,
        metrics_url=ready,
    )
