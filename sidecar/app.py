"""Wiring: settings → collectors → pipeline → exporter and page, and the signals that end it."""

from __future__ import annotations

import gc
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from types import FrameType
from typing import NoReturn

import structlog
import uvicorn

from sidecar import __version__, bucket_recorder, traffic, watch
from sidecar.addresses import split_address
from sidecar.collectors import COLLECTORS, Collector, analyst
from sidecar.collectors.analyst import Analyst, AnalystCollector
from sidecar.config import ConfigError, Settings
from sidecar.detect import rules
from sidecar.detect.slo import objectives
from sidecar.engines import canonical
from sidecar.export.notify import routes as notify
from sidecar.export.notify.routes import routes
from sidecar.export.server import CalmServer, ImpatientProtocol, raise_descriptor_limit
from sidecar.pipeline import Pipeline
from sidecar.readings import gpus
from sidecar.signals import Metric
from sidecar.snapshot import Plotted, Snapshot
from sidecar.state import State
from sidecar.watch import Watch

PLOTTED = (
    Plotted(canonical.GENERATED_TOKENS.name),
    Plotted(canonical.RUNNING.name),
    Plotted(canonical.WAITING.name),
    *gpus.PLOTTED,
)
Load = Callable[[], Settings]
_MAX_CONNECTIONS = 256

log = structlog.get_logger("app")


def configure_logging(level: str) -> None:
    """One JSON object a line on stderr; values are escaped, so hostile text stays data."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
    )


def make_collectors(settings: Settings, analyst: Analyst | None = None) -> list[Collector]:
    """Every collector that the settings ask for, in the order of the table, and the analyst's."""
    found: list[Collector] = []
    for entry in COLLECTORS.values():
        module, _, attribute = entry.partition(":")
        factory: Callable[[Settings], Iterable[Collector]]
        factory = getattr(import_module(module), attribute)
        found.extend(factory(settings))
    return found if analyst is None else [*found, AnalystCollector(analyst)]


def declared_metrics() -> tuple[Metric, ...]:
    """Every metric that can be exported, without those of the exporter itself."""
    parts = (traffic, bucket_recorder, watch, notify, analyst)
    found = {metric.name: metric for part in parts for metric in part.METRICS}
    for entry in COLLECTORS.values():
        module = import_module(entry.partition(":")[0])
        found.update((metric.name, metric) for metric in module.METRICS)
    return tuple(found.values())


def bind(listen: str) -> socket.socket:
    """The listening socket; ConfigError names the address, the trouble and the remedy."""
    host, port = split_address(listen)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named asyncio turns Nagle's algorithm off for what is accepted.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"export.listen: cannot listen on {listen}: {error.strerror}; "
            "stop what holds it or set another with --listen or MODELPROBE_EXPORT__LISTEN"
        ) from error
    return listener


def refuse_unknown_rules(settings: Settings) -> None:
    """ConfigError for a rule to disable that there is not: it would go on alarming."""
    known = sorted(rule.name for rule in rules())
    unknown = [name for name in settings.alarms.disabled if name not in known]
    if unknown:
        raise ConfigError(
            f"alarms.disabled: no such rule: {unknown[0][:80]!r}; there are {', '.join(known)}"
        )


class App:
    """The running sidecar.

    ``load`` gives the settings, again at each reload. ``drop`` gives up privileges once everything
    that needs them is open, and says what is left.
    """

    def __init__(self, load: Load, drop: Callable[[], str] | None = None) -> None:
        self._load = load
        self._drop = drop
        self._settings = load()
        refuse_unknown_rules(self._settings)
        configure_logging(self._settings.log_level)
        raise_descriptor_limit()
        self._listener = bind(self._settings.export.listen)
        limit = self._settings.export.max_label_sets
        wanted = objectives(self._settings.slo)
        self._analyst = Analyst(self._settings) if self._settings.drift.enabled else None
        slots = None if self._analyst is None else self._analyst.put
        most = self._settings.drift.max_series
        state = State(time.time(), PLOTTED, limit, time.monotonic(), wanted, slots, most)
        self._routes = routes(self._settings.notify)
        self._watch: Watch
        collectors = make_collectors(self._settings, self._analyst)
        self.pipeline = Pipeline(collectors, state, judge=self._judge)
        self._asked: queue.SimpleQueue[int] = queue.SimpleQueue()

    def run(self) -> int:
        """Serves until SIGTERM or SIGINT; returns the exit status. Ends within 5 s."""
        from sidecar.export.http import build_app  # the web stack is heavy: only to serve

        config = uvicorn.Config(
            build_app(self.pipeline, declared_metrics()),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
            timeout_keep_alive=75,
            limit_concurrency=_MAX_CONNECTIONS,
            http=ImpatientProtocol,
        )
        config.load()  # imports the protocol modules while they can surely be read
        if self._drop is not None:
            log.info("privileges dropped", now=self._drop())
        # Not before: a file of alarms that root has made could not be opened by the analyst, nor
        # again by us.
        self._watch = Watch(self._settings, self._routes)
        signal.signal(signal.SIGHUP, self._on_request)
        signal.signal(signal.SIGUSR1, self._on_request)
        threading.Thread(target=self._requests, name="requests", daemon=True).start()
        self._routes.start()
        self._watch.start()
        self.pipeline.start()
        spare_garbage_collection()
        log.info("serving", listen=self._settings.export.listen, version=__version__)
        server = CalmServer(config)
        _end_on_signal(server)
        server.run(sockets=[self._listener])
        stuck = self.pipeline.stop()
        if self._analyst is not None:
            self._analyst.stop()
        if stuck:
            log.warning("left in a call", collectors=stuck)
        stuck = self._routes.stop()
        if stuck:
            log.warning("outputs left in a call", outputs=stuck)
        if not self._watch.stop():
            log.warning("alarms were not written in time")
        log.info("ended")
        return 0

    def _judge(self, snapshot: Snapshot, clock: float) -> Snapshot:
        return self._watch.judge(snapshot, clock)

    def _on_request(self, number: int, _frame: FrameType | None) -> None:
        self._asked.put(number)

    def _requests(self) -> None:
        """SIGHUP reads the settings again, SIGUSR1 gives the GPU driver up and takes it again."""
        released = False
        while True:
            number = self._asked.get()
            if number == signal.SIGHUP:
                self._reload()
            else:
                released = not released
                self.pipeline.hold(released)
                log.info("driver released" if released else "driver taken again")

    def _reload(self) -> None:
        try:
            settings = self._load()
            refuse_unknown_rules(settings)
            collectors = make_collectors(settings, self._analyst)
            renewed = settings.notify != self._settings.notify
            outlet = self._routes
            if renewed:
                outlet = routes(settings.notify, before=outlet)
        except ConfigError as error:
            log.warning("reload refused, the old settings stay", problem=str(error))
            return
        except Exception:  # a reload that fails oddly must not be the last one
            log.exception("reload failed, the old settings stay")
            return
        if settings.export != self._settings.export:
            log.warning("export settings change at a restart only")
        if settings.slo.objectives != self._settings.slo.objectives:
            log.warning("objectives change at a restart only")
        if settings.drift != self._settings.drift:
            log.warning("drift settings change at a restart only")
        if settings.alarms.database != self._settings.alarms.database:
            log.warning("the file of alarms changes at a restart only")
        configure_logging(settings.log_level)
        self.pipeline.replace(collectors)
        self._watch.reconfigure(settings, outlet)
        if outlet is not self._routes:
            outlet.start()
            self._routes.stop()
            self._routes = outlet
        self._settings = settings
        log.info("reloaded")


def spare_garbage_collection() -> None:
    """Takes what start-up made, which lives for ever, out of garbage collection's walks: those
    fall in the middle of scrapes. A second makes some thousand objects, few of them in cycles, so
    a walk every few seconds is enough.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)


def _end_on_signal(server: uvicorn.Server) -> None:
    """Lets SIGTERM and SIGINT end the server and not the process, which has more to close.

    uvicorn raises a signal it took a second time when it has ended; then this is harmless.
    """

    def end(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)


def serve(load: Load, drop: Callable[[], str] | None = None) -> NoReturn:
    """Runs the sidecar; a thread left in a blocking call cannot keep the process alive."""
    status = App(load, drop).run()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
