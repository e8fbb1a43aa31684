"""What an output is made of: an outbox that says what is to be told, a sender that tells it, and
the reasons why it may fail to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Protocol

from sidecar.alarms.standing import Transition
from sidecar.verdicts import Alarm


class Reason(StrEnum):
    """Why a delivery failed."""

    REFUSED = "refused"  # nobody listens there
    NOT_FOUND = "not_found"  # the host's name is not known
    NO_PERMISSION = "no_permission"  # the kernel does not let us connect
    TLS = "tls"  # the certificate is not one that we trust, or it is no TLS
    TIMEOUT = "timeout"
    CLOSED = "closed"  # the connection broke, or what came is no answer
    UNAUTHORIZED = "unauthorized"  # 401, 403
    REJECTED = "rejected"  # 400, 413, 422: not this message, not ever
    THROTTLED = "throttled"  # 429
    SERVER_ERROR = "server_error"  # 5xx
    HTTP_STATUS = "http_status"  # any other status, a redirect among them
    SECRET = "secret"  # noqa: S105 - no password: the token or secret file cannot be used now
    ERROR = "error"  # a bug of ours, which is in the log


class Loss(StrEnum):
    """Why something that waited is not sent any more."""

    SUPERSEDED = "superseded"  # a later change of the same alarm came first
    OUTDATED = "outdated"  # the alarm is not pending or firing any more
    REJECTED = "rejected"  # the receiver does not take it
    FULL = "full"  # more alarms than are kept


class Undelivered(Exception):
    """A delivery failed. The text is one line for people and holds neither a path nor a secret.
    ``wait_seconds`` is how long the receiver asked to be left alone.
    """

    def __init__(self, reason: Reason, text: str, wait_seconds: float = 0.0) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text
        self.wait_seconds = wait_seconds

    @property
    def final(self) -> bool:
        """Whether it is the message that fails: sending the same again soon makes no sense."""
        return self.reason in (Reason.REJECTED, Reason.ERROR)


class Sender(Protocol):
    """Tells one receiver. ``name`` is the value of the `output` label, ``batch`` how many alarms
    go into one message, ``seconds`` how long a message may take.
    """

    name: str
    batch: int
    seconds: float

    def send(self, alarms: Sequence[Alarm]) -> None:
        """Returns when all of them are accepted; raises Undelivered."""

    def close(self) -> None:
        """From another thread: ends a ``send`` under way."""


class Outbox(Protocol):
    """What one output has still to tell. Times are monotonic. Nothing in it blocks."""

    dropped: Counter[Loss]

    def take(
        self, alarms: Sequence[Alarm], transitions: Iterable[Transition], clock: float
    ) -> None:
        """Takes in a round: all alarms there are, and what changed."""

    def due(self, clock: float, limit: int) -> tuple[Alarm, ...]:
        """What is to be told now, the most urgent first. It stays until ``delivered``."""

    def next_due(self) -> float:
        """When something is to be told next; infinity for never."""

    def failed(self, alarms: Iterable[Alarm], clock: float) -> None:
        """These did not arrive this time, as far as anybody knows; they stay due."""

    def delivered(self, alarms: Iterable[Alarm], clock: float) -> None:
        """These have been told."""

    def rejected(self, alarms: Iterable[Alarm], clock: float) -> None:
        """These were not taken and, as they are now, will hardly ever be."""

    def waiting(self) -> int:
        """How many alarms have news that the receiver does not know."""
