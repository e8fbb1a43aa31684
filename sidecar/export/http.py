"""The read-only listener: metrics, health, state as JSON, and the status page.

Handlers are coroutines that read one snapshot and answer; none of them waits for a collector. No
answer repeats a part of the request, so a forged ``Host`` ends nowhere.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sidecar import __version__
from sidecar.export import api
from sidecar.export.negotiation import exposition_format, gzip_accepted
from sidecar.export.page.render import FOLDER, Page
from sidecar.export.prometheus import Exposition
from sidecar.signals import CollectorState, Metric
from sidecar.snapshot import Snapshot

ALIVE_SECONDS = 10.0
_SMALL = 1024  # bytes; below, compression costs more than it saves
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" '
    'rx="3" fill="#0a58b8"/><path d="M2 9h3l2-5 3 8 1.5-3H14" fill="none" stroke="#fff" '
    'stroke-width="1.6"/></svg>'
)
_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        b"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class SnapshotSource(Protocol):
    """Where the listener gets its snapshots. Both calls return at once."""

    def snapshot(self) -> Snapshot:
        """The latest snapshot; an empty one before the first."""

    def ready(self) -> tuple[bool, str]:
        """Whether the first snapshot is there and, if not, why in one line."""


class _Envelope:
    """Puts the security headers on every answer, errors included, and answers HEAD bodiless."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            elif message["type"] == "http.response.body" and scope["method"] == "HEAD":
                message["body"] = b""
            await send(message)

        await self._app(scope, receive, sent if scope["type"] == "http" else send)


@dataclass(frozen=True, slots=True)
class _Static:
    body: bytes
    media_type: str


def _statics() -> dict[str, _Static]:
    return {
        "page.css": _Static((FOLDER / "page.css").read_bytes(), "text/css"),
        "page.js": _Static((FOLDER / "page.js").read_bytes(), "text/javascript"),
        "icon.svg": _Static(_ICON.encode(), "image/svg+xml"),
    }


class _Endpoints:
    def __init__(
        self,
        source: SnapshotSource,
        metrics: tuple[Metric, ...],
        version: str,
        clock: Callable[[], float],
    ) -> None:
        self._source = source
        self._clock = clock
        self._version = version
        self._exposition = Exposition(metrics, version)
        self._page = Page(version)
        self._statics = _statics()

    async def metrics(self, request: Request) -> Response:
        form = exposition_format(request.headers.get("accept", ""))
        snapshot, now = self._source.snapshot(), self._clock()
        headers = {"Vary": "Accept, Accept-Encoding", "Content-Type": form.value}
        if gzip_accepted(request.headers.get("accept-encoding", "")):
            headers["Content-Encoding"] = "gzip"
            return Response(self._exposition.scrape_gzip(snapshot, form, now), headers=headers)
        return Response(self._exposition.scrape(snapshot, form, now), headers=headers)

    async def healthz(self, request: Request) -> Response:
        age = self._clock() - self._source.snapshot().at
        if age <= ALIVE_SECONDS:
            return Response("alive\n", media_type="text/plain")
        text = f"the last snapshot is {age:.0f} s old; the pipeline stands still\n"
        return Response(text, 503, media_type="text/plain")

    async def readyz(self, request: Request) -> Response:
        ready, reason = self._source.ready()
        if not ready:
            return Response(f"not ready: {reason}\n", 503, media_type="text/plain")
        degraded = [
            f"degraded: {status.name} is blind ({status.absence or 'no reason given'})\n"
            for status in self._source.snapshot().collectors
            if status.state is CollectorState.BLIND
        ]
        body = "".join(["ready\n", *degraded]).encode("utf-8", "replace")
        return Response(body, media_type="text/plain")

    async def state(self, request: Request) -> Response:
        plain = api.state(self._source.snapshot(), self._version, self._clock())
        return self._packed(request, api.encode(plain), "application/json")

    async def page(self, request: Request) -> Response:
        html = self._page.page(self._source.snapshot(), self._clock())
        return self._packed(request, html, "text/html")

    async def live(self, request: Request) -> Response:
        html = self._page.live(self._source.snapshot(), self._clock())
        return self._packed(request, html, "text/html")

    async def static(self, request: Request) -> Response:
        found = self._statics.get(request.path_params["name"])
        if found is None:
            return Response("no such file\n", 404, media_type="text/plain")
        headers = {"Cache-Control": "no-cache"}
        return Response(found.body, media_type=found.media_type, headers=headers)

    def _packed(self, request: Request, body: bytes, media_type: str) -> Response:
        headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
        if len(body) > _SMALL and gzip_accepted(request.headers.get("accept-encoding", "")):
            headers["Content-Encoding"] = "gzip"
            body = gzip.compress(body, compresslevel=4, mtime=0)
        return Response(body, media_type=media_type, headers=headers)


def build_app(
    source: SnapshotSource,
    metrics: tuple[Metric, ...],
    *,
    version: str = __version__,
    clock: Callable[[], float] = time.time,
) -> ASGIApp:
    """The listener's application. ``metrics`` declares everything but the self-metrics;
    ValueError when two declarations contradict.
    """
    endpoints = _Endpoints(source, metrics, version, clock)
    routes = [
        Route("/", endpoints.page, methods=["GET"]),
        Route("/live", endpoints.live, methods=["GET"]),
        Route("/metrics", endpoints.metrics, methods=["GET"]),
        Route("/healthz", endpoints.healthz, methods=["GET"]),
        Route("/readyz", endpoints.readyz, methods=["GET"]),
        Route("/api/v1/state", endpoints.state, methods=["GET"]),
        Route("/static/{name}", endpoints.static, methods=["GET"]),
    ]
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False  # such a redirect repeats the Host header
    return _Envelope(app)  # outermost, so that even an internal error carries the headers
