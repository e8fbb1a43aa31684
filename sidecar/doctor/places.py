"""Checks of what the settings name: our own address, probed's socket, the engines."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import TypeGuard

from sidecar.addresses import split_address
from sidecar.collectors.engine import INFO, EngineCollector
from sidecar.collectors.listening import Listening
from sidecar.collectors.wire import WireCollector
from sidecar.config import Settings
from sidecar.doctor.check import Check, Outcome
from sidecar.signals import NoData, Sample, Signal


def listen(settings: Settings) -> Iterable[Check]:
    """Whether our own address is free."""
    host, port = split_address(settings.export.listen)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            yield Check(
                "listen",
                Outcome.FAIL,
                f"{settings.export.listen}: {error.strerror}",
                "the sidecar will not start",
                "stop what holds it, or set export.listen",
            )
            return
    yield Check("listen", Outcome.PASS, f"{settings.export.listen} is free")


def probed(settings: Settings) -> Iterable[Check]:
    """Whether a privileged process answers."""
    ports = {entry.port: entry.leg for entry in settings.wire.ports}
    collector = WireCollector(settings.wire.socket, Listening(ports))
    try:
        collector.open()
        collector.collect(0.0)
    except NoData as error:
        yield Check(
            "probed",
            Outcome.WARN,
            f"{error.absence}: {error.reason}",
            "no wire tap until it runs",
            "`model-probe attach` as root starts one; or run `model-probe probed`",
        )
    else:
        yield Check("probed", Outcome.PASS, f"{settings.wire.socket} answers")
    finally:
        collector.close()


def engines(settings: Settings) -> Iterable[Check]:
    """What each configured engine answers."""
    if not settings.engines:
        yield Check(
            "engines",
            Outcome.WARN,
            "none configured",
            "no queue, no token counters: only the wire",
            "set `engines` in the configuration, or pass --engine to attach",
        )
    for engine in settings.engines:
        collector = EngineCollector(engine)
        try:
            collector.open()
            samples = list(collector.collect(0.0))
        except NoData as error:
            yield Check(
                f"engine {engine.name}",
                Outcome.WARN,
                f"{error.absence}: {error.reason}",
                "this engine's queue and token counters",
                "see the reason",
            )
        else:
            kind = next((dict(s.labels)["engine"] for s in samples if _is_info(s)), "")
            yield Check(f"engine {engine.name}", Outcome.PASS, f"{kind}, {len(samples)} signals")
        finally:
            collector.close()


def _is_info(signal: Signal) -> TypeGuard[Sample]:
    return isinstance(signal, Sample) and signal.metric == INFO.name
