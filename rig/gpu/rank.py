"""Rank 1 and above of an engine: a process on its own device that follows rank 0 step by step.

`python -m rig.gpu.rank --fd N --rank R --ranks R` is started by the front with one end of a socket
pair. It ends when the other end closes, and with the line that torch prints on a device error.
"""

import argparse
import socket
import sys

from rig.gpu.abi import UNIQUE_ID
from rig.gpu.blocks import Blocks
from rig.gpu.device import Device, Shape
from rig.gpu.errors import DeviceError, OutOfMemory
from rig.gpu.guarded import ContextGone, Guard, Guarded, Unguarded
from rig.gpu.orders import ORDER, Failure, Kind, Order

SHAPE = Shape()


def follow(device: Device, blocks: Blocks, line: socket.socket, guard: Guard) -> None:
    """Do what comes over the line until it closes."""
    while frame := line.recv(ORDER.size, socket.MSG_WAITALL):
        order = Order.unpacked(frame)
        guard.check()
        match order.kind:
            case Kind.STEP:
                device.launch(order.number)
                device.synchronise()
            case Kind.ALLOCATE:
                try:
                    blocks.allocate(order.request, order.number)
                except OutOfMemory as full:
                    sizes = (full.wanted, full.free, full.total, full.mine)
                    line.sendall(Failure(order.request, *sizes).packed())
            case Kind.FREE:
                blocks.free(order.request)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(prog="python -m rig.gpu.rank", description=__doc__)
    found.add_argument("--fd", type=int, required=True, help="its end of the socket pair")
    found.add_argument("--rank", type=int, required=True)
    found.add_argument("--ranks", type=int, required=True)
    found.add_argument("--weights-share", type=float, default=SHAPE.weights)
    found.add_argument("--layers", type=int, default=SHAPE.layers)
    found.add_argument("--pool-bytes", type=int, default=0)
    found.add_argument("--guard", choices=("on", "off"), default="off", help="over the context")
    return found


def watched(device: Device, on: bool) -> Guard:
    """A rank alone cannot rebuild its context: the communicator went with it. So it leaves."""
    return Guarded(1, None, device.adopt, lambda gone: None) if on else Unguarded()


def main() -> int:
    """Exit 0 when rank 0 has gone, 1 after a device error, 75 by its guard."""
    args = parser().parse_args()
    with socket.socket(fileno=args.fd) as line:
        try:
            device = Device(args.rank, Shape(args.weights_share, args.layers))
            blocks = Blocks(device, args.pool_bytes)
            device.join(line.recv(UNIQUE_ID, socket.MSG_WAITALL), args.ranks, args.rank)
            follow(device, blocks, line, watched(device, args.guard == "on"))
        except DeviceError as error:
            print(f"(Worker_TP{args.rank}) {error.kind}: {error}", file=sys.stderr, flush=True)
            return error.exit_code if isinstance(error, ContextGone) else 1
        except ConnectionError:  # rank 0 died with answers of ours unread
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
