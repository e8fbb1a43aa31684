"""A process that holds device memory and does nothing: what a bad restart leaves behind.

`python -m rig.gpu.leftover --bytes N` prints `holding` once it does.
"""

import argparse
import signal
import sys

from rig.gpu.device import Device, Shape
from rig.gpu.errors import Absent, DeviceError


def main() -> int:
    """Hold until killed; exit 1 when the memory is not there."""
    parser = argparse.ArgumentParser(prog="python -m rig.gpu.leftover", description=__doc__)
    parser.add_argument("--bytes", type=int, required=True)
    args = parser.parse_args()
    try:
        device = Device(0, Shape(weights=0.0, layers=0))
        device.allocate(args.bytes)
    except (Absent, DeviceError) as error:
        print(error, file=sys.stderr)
        return 1
    print("holding", flush=True)
    signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
