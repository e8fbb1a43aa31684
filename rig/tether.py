"""Run a command that dies with the process that started it: `python tether.py PARENT COMMAND…`.

A SIGKILLed parent cannot clean up, so the kernel does (PR_SET_PDEATHSIG, prctl(2); the setting
survives exec). Surprise: it follows the parent's *thread*; start parts from one that stays.
"""

import ctypes
import os
import signal
import sys
from typing import NoReturn

PR_SET_PDEATHSIG = 1


def main() -> NoReturn:
    """Become the command, under the same pid; exit 1 when the parent is already gone."""
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):  # it died before the line above
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606  the same pid stays, no shell


if __name__ == "__main__":
    main()
