"""``python -m sidecar.probed --socket PATH``: the privileged process. See ``--help``."""

from __future__ import annotations

import argparse
import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType

from sidecar.privileges import Capability
from sidecar.probed import seccomp
from sidecar.probed.daemon import Daemon
from sidecar.probed.loaders import LOADERS
from sidecar.probed.namespaces import Network, network_of
from sidecar.probed.probe import PROBES, loading
from sidecar.probed.server import Server, SocketRefused
from sidecar.probed.surrender import Everything, Nothing, keep_for_node
from sidecar.probed.words import say
from sidecar.signals import NoData

SOCKET = Path("/run/model-probe/probed.sock")  # where the sidecar looks by default


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="probed",
        description="Loads the kernel programs and hands their records to a sidecar over a Unix "
        "socket. Needs CAP_BPF and CAP_NET_RAW, and gives them up once loaded; probes that follow "
        "processes need and keep CAP_PERFMON and CAP_SYS_PTRACE.",
    )
    parser.add_argument("--socket", type=Path, default=SOCKET, metavar="PATH", help=f"[{SOCKET}]")
    parser.add_argument("--loader", choices=("auto", *LOADERS), default="auto")
    parser.add_argument(
        "--probe",
        choices=tuple(PROBES),
        action="append",
        help="a probe to load; may be repeated [wire]",
    )
    parser.add_argument(
        "--node",
        action="store_true",
        help="serve every pod of the node: each client's own network namespace is watched; needs "
        "the host's process namespace, CAP_SYS_ADMIN and CAP_SYS_PTRACE, and keeps what it uses",
    )
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


def _watched_for(options: argparse.Namespace, home: Network, pid: int) -> Network:
    return network_of(pid) if options.node else home


def _daemon(options: argparse.Namespace) -> Daemon:
    """The daemon, confined as far as it is before anything is loaded."""
    if options.socket == SOCKET:
        SOCKET.parent.mkdir(mode=0o755, exist_ok=True)
    home = network_of()
    server = Server(options.socket, options.peer_uid, partial(_watched_for, options, home))
    try:
        seccomp.leave_network()
    except seccomp.Unconfined as error:
        say(f"no filter of system calls: {error}; going on without")
    if options.node:
        keep_for_node()
    return Daemon(
        server,
        {name: loading(name) for name in options.probe or ("wire",)},
        Nothing() if options.node else Everything(_keep_to_loop),
        home=None if options.node else home,
        loader=options.loader,
        stdin=sys.stdin.fileno() if options.exit_on_stdin_eof else None,
    )


def _keep_to_loop(keeps: frozenset[Capability]) -> None:
    with suppress(seccomp.Unconfined):  # said at the start
        seccomp.keep_to_loop(keeps)


def main(arguments: list[str] | None = None) -> int:
    """Runs until SIGTERM or SIGINT; exit code 2 when the socket is refused."""
    options = _parse(arguments)
    try:
        daemon = _daemon(options)
    except (SocketRefused, OSError) as error:
        say(str(error))
        return 2
    except NoData as failure:
        say(failure.reason)
        return 2
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
