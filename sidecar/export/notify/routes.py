"""The door: hands alarms to every configured output, and says how each fares.

``publish`` is called by the pipeline's thread once a second and waits for no network: each output
has a thread of its own. Nothing is flushed at the end, which would hold the process up: the next
one knows from the alarms' file what still fires and tells it.
"""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import structlog

from sidecar import __version__
from sidecar.alarms.standing import Transition
from sidecar.config.notify import (
    AlertmanagerSettings,
    NotifySettings,
    OtlpSettings,
    WebhookSettings,
)
from sidecar.export.notify import alertmanager
from sidecar.export.notify.alertmanager import Alertmanager
from sidecar.export.notify.changes import Changes
from sidecar.export.notify.delivery import Sender
from sidecar.export.notify.lane import Lane
from sidecar.export.notify.post import Poster, place, trust
from sidecar.export.notify.repeats import Repeats
from sidecar.export.notify.secret import SecretFile
from sidecar.export.notify.status import METRICS, OutputStatus, samples
from sidecar.export.notify.webhook import Webhook
from sidecar.export.notify.wording import Sign
from sidecar.signals import Sample
from sidecar.verdicts import Alarm, AlarmState

__all__ = ["METRICS", "Routes", "lanes", "routes"]
SEND_SECONDS = 10.0
_TOLD = frozenset((AlarmState.FIRING, AlarmState.RESOLVED))

log = structlog.get_logger("notify")


class Routes:
    """All outputs. Made of lanes, none of which may be started yet."""

    def __init__(self, lanes: Iterable[Lane]) -> None:
        self._lanes = tuple(lanes)

    def start(self) -> None:
        """Starts the outputs' threads."""
        for lane in self._lanes:
            lane.start()

    def stop(self, timeout: float = 1.0) -> list[str]:
        """Ends within about ``timeout``; returns the outputs still in a call."""
        for lane in self._lanes:
            lane.stop()
        deadline = time.monotonic() + timeout
        return [
            lane.name
            for lane in self._lanes
            if not lane.join(max(0.0, deadline - time.monotonic()))
        ]

    def publish(self, alarms: Sequence[Alarm], transitions: Iterable[Transition]) -> None:
        """All alarms as they stand now, and what changed in this round. Never blocks."""
        changed = tuple(transitions)
        for lane in self._lanes:
            lane.offer(alarms, changed)

    def statuses(self) -> tuple[OutputStatus, ...]:
        """How each output fares; ``status.line`` says it in one line."""
        return tuple(lane.status() for lane in self._lanes)

    def samples(self) -> Iterator[Sample]:
        """The outputs' metrics."""
        for status in self.statuses():
            yield from samples(status)


def routes(settings: NotifySettings, rng: random.Random | None = None) -> Routes:
    """The outputs of the settings, not started; ConfigError names what cannot be used: the key,
    the file and the remedy.
    """
    return Routes(lanes(settings, rng or random.Random()))  # noqa: S311 - jitter, not a secret


def lanes(settings: NotifySettings, rng: random.Random) -> Iterator[Lane]:
    """A lane for each output, in the order of the settings."""
    sign = Sign(
        settings.instance or socket.gethostname(), settings.external_url, settings.runbook_base
    )
    taken: set[str] = set()

    def lane(sender: Sender, outbox: Repeats | Changes) -> Lane:
        return Lane(sender, outbox, rng, name=_unique(sender.name, taken))

    resend = settings.resend_seconds
    for number, target in enumerate(settings.alertmanagers):
        key = f"notify.alertmanagers[{number}]"
        yield lane(_alertmanager(target, key, sign, resend), Repeats(resend))
    for number, hook in enumerate(settings.webhooks):
        key = f"notify.webhooks[{number}]"
        yield lane(_webhook(hook, key, sign), Changes(_TOLD, repeats=True))
    if settings.otlp.endpoint:
        yield _otlp(settings.otlp, sign, lane)


def _alertmanager(
    settings: AlertmanagerSettings, key: str, sign: Sign, resend_seconds: float
) -> Alertmanager:
    token = None
    if settings.token_file != Path():
        token = SecretFile(settings.token_file, f"{key}.token_file", secret=False)
        token.check()
        if settings.url.startswith("http:"):
            log.warning("a token is sent without TLS", setting=key, to=place(settings.url))
    context = trust(settings.url, settings.ca_file, key)
    poster = Poster(settings.url + alertmanager.PATH, SEND_SECONDS, context)
    return Alertmanager(poster, sign, resend_seconds, token, seconds=SEND_SECONDS)


def _webhook(settings: WebhookSettings, key: str, sign: Sign) -> Webhook:
    secret = SecretFile(settings.secret_file, f"{key}.secret_file", secret=True)
    secret.check()
    poster = Poster(settings.url, SEND_SECONDS, trust(settings.url, settings.ca_file, key))
    return Webhook(poster, sign, secret, seconds=SEND_SECONDS)


def _otlp(
    settings: OtlpSettings, sign: Sign, lane: Callable[[Sender, Repeats | Changes], Lane]
) -> Lane:
    from sidecar.export.notify import otlp  # 4 MB of memory that only this output needs

    context = trust(settings.endpoint, settings.ca_file, "notify.otlp")
    transport: otlp.Transport
    if settings.protocol == "grpc":
        # The library takes this from the environment alone, once, as it is imported; without it
        # failed handshakes go to stderr, past every logger.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        from sidecar.export.notify.otlp_grpc import Grpc

        transport = Grpc(settings.endpoint, settings.ca_file, SEND_SECONDS)
    else:
        transport = otlp.Http(Poster(settings.endpoint + otlp.PATH, SEND_SECONDS, context))
    sender = otlp.Otlp(transport, sign, __version__, seconds=SEND_SECONDS)
    # Logs are not deduplicated: each change once, and rather never than twice after a restart.
    return lane(sender, Changes(otlp.STATES, repeats=False))


def _unique(name: str, taken: set[str]) -> str:
    """Two webhooks of one host differ by what must not be shown, so they get numbers."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}#{number}"
    taken.add(free)
    return free
