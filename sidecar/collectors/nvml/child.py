"""The process that calls NVML: ``python -m sidecar.collectors.nvml.child OPTIONS``.

A call of the driver can block for 45 s, or for ever where no signal reaches it. Here that harms
nobody: the parent stops listening and goes on. This is the only file that imports pynvml.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import traceback

import pynvml

from sidecar.collectors.nvml.protocol import Options
from sidecar.collectors.nvml.watch import Watch

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def _address(handle: object) -> int:
    return int(ctypes.cast(handle, ctypes.c_void_p).value or 0)  # type: ignore[arg-type]  # opaque


def _stand_in() -> bool:
    return hasattr(pynvml.nvmlLib, "modelprobe_stand_in")


def _failed(args: threading.ExceptHookArgs) -> None:
    """A bug in one thread ends all: a device that is silently no longer read is worse."""
    traceback.print_exception(args.exc_type, args.exc_value, args.exc_traceback)
    os._exit(70)


def main() -> None:
    """Runs until the parent is gone or NVML is."""
    # Ends us with the thread that started us even if we are stopped, when no pipe would.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's is meant for the parent
    threading.excepthook = _failed
    status = Watch(pynvml, Options.parse(sys.argv[1]), _address, _stand_in).run()
    os._exit(status)  # not through Python's own end, which would wait for a blocked thread


if __name__ == "__main__":
    main()
