"""Tokens and secrets, which live in files and nowhere else: never in settings, logs or errors."""

from __future__ import annotations

import stat
from pathlib import Path

from sidecar.config import ConfigError
from sidecar.export.notify.delivery import Reason, Undelivered

_MAX_BYTES = 16_384
_MIN_SECRET = 16


class SecretFile:
    """One such file, read anew for each use, so that it can be replaced while we run.

    ``setting`` is the key that names it. ``secret``: it signs, so it has to be long and not
    readable by every user; else it is a bearer token, which a kubelet may well write readable.
    """

    def __init__(self, path: Path, setting: str, secret: bool) -> None:
        self._path = path
        self._setting = setting
        self._secret = secret

    def check(self) -> None:
        """ConfigError names the setting, the file and the remedy if it cannot be used."""
        try:
            self._load()
        except ValueError as error:
            raise ConfigError(f"{self._setting}: {self._path}: {error}") from None

    def read(self) -> bytes:
        """What is in it now; Undelivered if it cannot be used now."""
        try:
            return self._load()
        except ValueError as error:
            text = f"{self._setting}: {self._path}: {error}"
            raise Undelivered(Reason.SECRET, text) from None

    def _load(self) -> bytes:
        try:
            status = self._path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise ValueError("is not a file; name the file itself")
            if self._secret and status.st_mode & stat.S_IRWXO:
                mode = stat.S_IMODE(status.st_mode)
                raise ValueError(f"is open to every user (mode {mode:o}); chmod o-rwx it")
            with self._path.open("rb") as file:
                content = file.read(_MAX_BYTES + 1)
        except OSError as error:
            remedy = "create it, or mend its path or its permissions"
            raise ValueError(f"cannot be read: {error.strerror}; {remedy}") from None
        return self._checked(content)

    def _checked(self, content: bytes) -> bytes:
        if len(content) > _MAX_BYTES:
            raise ValueError(f"is larger than {_MAX_BYTES} bytes, so it is no secret")
        content = content.strip()
        if self._secret and len(content) < _MIN_SECRET:
            raise ValueError(
                f"holds fewer than {_MIN_SECRET} bytes; write one with: openssl rand -hex 32"
            )
        if not self._secret and not (content and all(0x21 <= byte <= 0x7E for byte in content)):
            raise ValueError("does not hold one token in printable ASCII; write it without more")
        return content
