"""uvicorn made fit to stand idle beside a service: calm, impatient with half requests, and not
starved by many clients.
"""

from __future__ import annotations

import asyncio
import resource

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

_HEAD_SECONDS = 10.0


def raise_descriptor_limit() -> None:
    """Takes all descriptors that the hard limit allows: many idle clients must not starve us."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class CalmServer(uvicorn.Server):
    """Looks twice a second whether it is to end; uvicorn does so ten times, which is most of what
    an idle sidecar would cost.
    """

    async def main_loop(self) -> None:
        """Until a signal asks for the end."""
        # Tick 0 is the one in which uvicorn renews the Date header.
        while not await self.on_tick(0):
            await asyncio.sleep(0.5)


class ImpatientProtocol(H11Protocol):
    """Hangs up on a client that has not sent a whole request head in time; uvicorn would wait."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Starts the clock."""
        super().connection_made(transport)
        self.loop.call_later(_HEAD_SECONDS, self._give_up)

    def _give_up(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()
