"""An injector of its own: arms what it is told, says so, and then does nothing until it is ended.

``holder.py PAGE LEASE_SECONDS SYMBOL CODE``; it never renews its lease.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from chaos.interposer.page import Page, Rule
from chaos.interposer.rules import Error

page = Page.open(Path(sys.argv[1]))
page.arm([Rule((sys.argv[3],), Error(int(sys.argv[4])))], float(sys.argv[2]))
sys.stdout.write("armed\n")
sys.stdout.flush()
while True:
    signal.pause()
