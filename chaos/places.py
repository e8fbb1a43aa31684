"""Where chaos keeps what must outlive it: the journal, and the results of campaigns."""

from __future__ import annotations

import os
import re
from pathlib import Path

from chaos.target import Refused

STATE = "MODELPROBE_CHAOS_STATE"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def state_folder() -> Path:
    """Root's is the machine's, everybody else's their own (XDG base directories)."""
    if named := os.environ.get(STATE):
        return Path(named)
    if os.geteuid() == 0:
        return Path("/var/lib/model-probe-chaos")
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    return Path(home) / "model-probe-chaos"


def results_file(state: Path, name: str) -> Path:
    """Of the campaign of that name; raises ``Refused`` for a name that is none."""
    if not _NAME.fullmatch(name):
        raise Refused(f"campaign {name!r}: letters, digits, dot, dash and underscore, 64 at most")
    return state / "campaigns" / f"{name}.jsonl"
