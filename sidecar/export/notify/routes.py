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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
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
Target = AlertmanagerSettings | WebhookSettings | OtlpSettings
Origin = tuple[Target, Sign, float, int]

log = structlog.get_logger("notify")


class Routes:
    """All outputs: lanes, by what each was made of. Those that ``before`` has too are its own and
    run already, the others are not started yet.
    """

    def __init__(self, lanes: Mapping[Origin, Lane], before: Routes | None = None) -> None:
        self.lanes = dict(lanes)
        self._lanes = tuple(lanes.values())
        self._before = before
        self._handed_on: tuple[Lane, ...] = ()

    def start(self) -> None:
        """Starts the outputs' threads, and takes over those of the routes before: they do not end
        with these.
        """
        running = () if self._before is None else self._before.hand_on(self._lanes)
        self._before = None  # else every reload would be kept for ever
        for lane in self._lanes:
            if lane not in running:
                lane.start()

    def hand_on(self, lanes: Sequence[Lane]) -> tuple[Lane, ...]:
        """Those of ``lanes`` that are running here, which ``stop`` now spares. They are told of
        alarms here too until the end: a round may be under way.
        """
        self._handed_on = tuple(lane for lane in self._lanes if lane in lanes)
        return self._handed_on

    def stop(self, timeout: float = 1.0) -> list[str]:
        """Ends within about ``timeout``; returns the outputs still in a call."""
        own = [lane for lane in self._lanes if lane not in self._handed_on]
        for lane in own:
            lane.stop()
        deadline = time.monotonic() + timeout
        return [lane.name for lane in own if not lane.join(max(0.0, deadline - time.monotonic()))]

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


def routes(
    settings: NotifySettings, rng: random.Random | None = None, before: Routes | None = None
) -> Routes:
    """The outputs of the settings, not started; ConfigError names what cannot be used: the key,
    the file and the remedy. An output of ``before`` whose settings are the same goes on as it is,
    with what it has still to tell.
    """
    running = {} if before is None else before.lanes
    found = lanes(settings, rng or random.Random(), running)  # noqa: S311 - jitter, not a secret
    return Routes(found, before)


def lanes(
    settings: NotifySettings, rng: random.Random, running: Mapping[Origin, Lane] | None = None
) -> dict[Origin, Lane]:
    """A lane for each output, in the order of the settings; one that is running already is that."""
    sign = Sign(
        settings.instance or socket.gethostname(), settings.external_url, settings.runbook_base
    )
    resend = settings.resend_seconds
    made: dict[Origin, Callable[[], tuple[Sender, Repeats | Changes]]] = {}
    for number, target in enumerate(settings.alertmanagers):
        make = partial(_alertmanager, target, f"notify.alertmanagers[{number}]", sign, resend)
        made[_origin(target, sign, resend)] = make
    for number, hook in enumerate(settings.webhooks):
        made[_origin(hook, sign)] = partial(_webhook, hook, f"notify.webhooks[{number}]", sign)
    if settings.otlp.endpoint:
        made[_origin(settings.otlp, sign)] = partial(_otlp, settings.otlp, sign)
    found = {origin: lane for origin, lane in (running or {}).items() if origin in made}
    taken = {lane.name for lane in found.values()}
    for origin, make_one in made.items():
        if origin not in found:
            sender, outbox = make_one()
            found[origin] = Lane(sender, outbox, rng, name=_unique(sender.name, taken))
    return {origin: found[origin] for origin in made}


def _origin(settings: Target, sign: Sign, resend_seconds: float = 0.0) -> Origin:
    """All that an output is made of. An authority's file that was renewed makes another output."""
    renewed = settings.ca_file.stat().st_mtime_ns if settings.ca_file.is_file() else 0
    return settings, sign, resend_seconds, renewed


def _alertmanager(
    settings: AlertmanagerSettings, key: str, sign: Sign, resend_seconds: float
) -> tuple[Sender, Repeats]:
    token = None
    if settings.token_file != Path():
        token = SecretFile(settings.token_file, f"{key}.token_file", secret=False)
        token.check()
        if settings.url.startswith("http:"):
            log.warning("a token is sent without TLS", setting=key, to=place(settings.url))
    context = trust(settings.url, settings.ca_file, key)
    poster = Poster(settings.url + alertmanager.PATH, SEND_SECONDS, context)
    sender = Alertmanager(poster, sign, resend_seconds, token, seconds=SEND_SECONDS)
    return sender, Repeats(resend_seconds)


def _webhook(settings: WebhookSettings, key: str, sign: Sign) -> tuple[Sender, Changes]:
    secret = SecretFile(settings.secret_file, f"{key}.secret_file", secret=True)
    secret.check()
    poster = Poster(settings.url, SEND_SECONDS, trust(settings.url, settings.ca_file, key))
    return Webhook(poster, sign, secret, seconds=SEND_SECONDS), Changes(_TOLD, repeats=True)


def _otlp(settings: OtlpSettings, sign: Sign) -> tuple[Sender, Changes]:
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
    return sender, Changes(otlp.STATES, repeats=False)


def _unique(name: str, taken: set[str]) -> str:
    """Two webhooks of one host differ by what must not be shown, so they get numbers."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}#{number}"
    taken.add(free)
    return free
