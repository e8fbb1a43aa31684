"""How a Prometheus is reached: its address, the token it wants, and whom TLS trusts."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from sidecar.config import ConfigError


@dataclass(frozen=True, slots=True)
class Access:
    """Where Prometheus answers and what is needed to be let in. The token's file is read at each
    start, so that a mounted one may change.
    """

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None
    seconds: float = 60.0


def token(path: Path) -> str:
    """The one word of a token's file; ConfigError when it holds none."""
    try:
        found = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not ASCII"
        raise ConfigError(f"{path}: the token cannot be read: {reason}") from error
    if not found or not found.isprintable() or " " in found:
        raise ConfigError(f"{path}: holds no token (one word on one line)")
    return found


def trust(ca_file: Path | None) -> ssl.SSLContext:
    """TLS that verifies, by the system's authorities or by those of a file."""
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except OSError as error:  # ssl.SSLError is one
        reason = error.strerror or "holds no certificate"
        raise ConfigError(f"{ca_file}: {reason}; name a file of PEM certificates") from error
