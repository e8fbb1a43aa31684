"""What a command line may ask for, checked before anything is begun."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Awaitable, Callable
from functools import partial
from math import isfinite
from urllib.parse import urlsplit

from chaos.campaign import repair
from chaos.judging import IN_A_ROW, STEADY
from chaos.target import Refused


def sensible(most: float, hold: float, steady: float, period: float) -> None:
    """Raises ``Refused`` for times in which nothing could be judged, all in seconds."""
    told = {
        "--max-seconds": most,
        "--hold": hold,
        "--steady-seconds": steady,
        "--period": period,
    }
    for name, value in told.items():
        if not isfinite(value):
            raise Refused(f"{name} {value}: give a number of seconds")
    if 2 * max(hold, IN_A_ROW * period) > most:
        raise Refused(
            f"--max-seconds {most:g}: a fault that lasts {hold:g} s and {IN_A_ROW} answers "
            f"{period:g} s apart leave no time to recover; give "
            f"{2 * max(hold, IN_A_ROW * period):g} or more"
        )
    if STEADY * period > steady:
        raise Refused(
            f"--steady-seconds {steady:g}: {STEADY} answers {period:g} s apart take longer; give "
            f"{STEADY * period:g} or more"
        )


def same(target: str, engine_url: str) -> None:
    """Raises ``Refused`` for an address on this machine that is another port's than the target's:
    it would recover without ever having been broken.
    """
    kind, _, number = target.partition(":")
    try:
        found = urlsplit(engine_url)
        port = found.port or (443 if found.scheme == "https" else 80)
    except ValueError as error:
        raise Refused(f"--engine-url {engine_url!r}: {error}") from None
    here = found.hostname in ("localhost", "::1") or (found.hostname or "").startswith("127.")
    if engine_url and kind == "port" and here and port != int(number):
        raise Refused(
            f"--engine-url {engine_url}: is not the target, which is {target}; its recovery would "
            "be another's"
        )


def mending(command: str) -> Callable[[], Awaitable[None]] | None:
    """What runs that command, which no shell sees; None for no command. Raises ``Refused``."""
    if not command:
        return None
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Refused(f"--repair {command!r}: {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise Refused(f"--repair {command!r}: there is no such program")
    return partial(repair, *words)
