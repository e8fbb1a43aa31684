"""The ends of our children, taken note of without waiting."""

from __future__ import annotations

import subprocess
import threading


def reaped(process: subprocess.Popen[bytes]) -> None:
    """Takes note of a child's end whenever it comes: one that hangs in the kernel is not waited
    for.
    """
    threading.Thread(target=process.wait, name=f"reaps {process.pid}", daemon=True).start()
