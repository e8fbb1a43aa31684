"""Files of tokens and secrets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sidecar.config import ConfigError
from sidecar.export.notify.delivery import Reason, Undelivered
from sidecar.export.notify.secret import SecretFile

SECRET = "0123456789abcdef" * 2
KEY = "notify.webhooks[0].secret_file"


def made(path: Path, content: str, mode: int = 0o600) -> SecretFile:
    """A file with a signing secret."""
    path.write_text(content)
    path.chmod(mode)
    return SecretFile(path, KEY, secret=True)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o440])
def test_a_secret_of_its_owner_and_group_is_read(tmp_path: Path, mode: int) -> None:
    """Also as a group may read it, which is how Kubernetes gives it to a pod that is not root."""
    secret = made(tmp_path / "secret", f"{SECRET}\n", mode)
    secret.check()
    assert secret.read() == SECRET.encode()


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o606, 0o601])
def test_a_secret_of_everybody_is_refused(tmp_path: Path, mode: int) -> None:
    """The error names setting, file, mode and remedy."""
    secret = made(tmp_path / "secret", SECRET, mode)
    with pytest.raises(ConfigError) as caught:
        secret.check()
    assert str(caught.value).startswith(f"{KEY}: {tmp_path / 'secret'}: ")
    assert str(caught.value).endswith(f"(mode {mode:o}); chmod o-rwx it")


def test_a_link_is_followed(tmp_path: Path) -> None:
    """A mounted secret is a link, and what counts is the file's mode."""
    made(tmp_path / "..data", SECRET)
    (tmp_path / "secret").symlink_to("..data")
    SecretFile(tmp_path / "secret", KEY, secret=True).check()


@pytest.mark.parametrize(
    ("content", "words"),
    [("", "fewer than 16 bytes"), ("5-h-0-r-t", "openssl rand"), ("x" * 20_000, "larger than")],
)
def test_no_secret(tmp_path: Path, content: str, words: str) -> None:
    """Too short or too long is refused, and never repeated."""
    with pytest.raises(ConfigError, match=words) as caught:
        made(tmp_path / "secret", content).check()
    assert not content or content not in str(caught.value)


@pytest.mark.parametrize("content", ["", "two words", "line\nline", "tök", "a\x00b"])
def test_no_token(tmp_path: Path, content: str) -> None:
    """A token that would break out of its header, or is none, is refused."""
    (tmp_path / "token").write_text(content)
    token = SecretFile(tmp_path / "token", "notify.alertmanagers[0].token_file", secret=False)
    with pytest.raises(ConfigError, match="one token"):
        token.check()


def test_what_is_not_a_file(tmp_path: Path) -> None:
    """A folder, a FIFO (which would block) and nothing at all are named as such."""
    os.mkfifo(tmp_path / "fifo")
    for name, words in (("", "is not a file"), ("fifo", "is not a file"), ("no", "create it")):
        with pytest.raises(ConfigError, match=words):
            SecretFile(tmp_path / name, KEY, secret=True).check()


def test_a_file_that_goes_away_is_a_failed_delivery(tmp_path: Path) -> None:
    """At work the same trouble is no end: it is counted and tried again."""
    secret = made(tmp_path / "secret", SECRET)
    (tmp_path / "secret").unlink()
    with pytest.raises(Undelivered) as caught:
        secret.read()
    assert caught.value.reason is Reason.SECRET
    assert not caught.value.final
