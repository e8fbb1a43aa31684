"""``python -m sidecar.probed --socket PATH``: the privileged process. See ``--help``."""

from __future__ import annotations

import argparse
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType

from sidecar.probed.daemon import Daemon, wire
from sidecar.probed.loaders import LOADERS
from sidecar.probed.server import Server, SocketRefused
from sidecar.probed.words import say

SOCKET = Path("/run/model-probe/probed.sock")  # where the sidecar looks by default


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="probed",
        description="Loads the kernel programs and hands their records to a sidecar over a Unix "
        "socket. Needs CAP_BPF and CAP_NET_RAW, and gives them up once loaded.",
    )
    parser.add_argument("--socket", type=Path, default=SOCKET, metavar="PATH", help=f"[{SOCKET}]")
    parser.add_argument("--loader", choices=("auto", *LOADERS), default="auto")
    parser.add_argument(
        "--peer-uid",
        type=int,
        action="append",
        default=[],
        metavar="UID",
        help="a user that may connect, besides root and our own; may be repeated",
    )
    parser.add_argument(
        "--exit-on-stdin-eof",
        action="store_true",
        help="end when standard input does, so that a parent's death ends us too",
    )
    parser.add_argument(
        "--remove-folder", action="store_true", help="at the end remove the socket's folder too"
    )
    return parser.parse_args(arguments)


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def main(arguments: list[str] | None = None) -> int:
    """Runs until SIGTERM or SIGINT; exit code 2 when the socket is refused."""
    options = _parse(arguments)
    try:
        if options.socket == SOCKET:
            SOCKET.parent.mkdir(mode=0o755, exist_ok=True)
        server = Server(options.socket, options.peer_uid)
    except (SocketRefused, OSError) as error:
        say(str(error))
        return 2
    daemon = Daemon(
        server,
        wire(options.loader),
        stdin=sys.stdin.fileno() if options.exit_on_stdin_eof else None,
    )
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    # A closed terminal does not end it, and there is nothing to read anew.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        daemon.run()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        daemon.close()
        if options.remove_folder:
            with suppress(OSError):  # somebody else's file is in it, or it is gone
                options.socket.parent.rmdir()
    return 0


if __name__ == "__main__":
    sys.exit(main())
