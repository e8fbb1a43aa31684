"""Servers and lanes that end with their test."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
import trustme

from sidecar.export.notify.delivery import Outbox, Sender
from sidecar.export.notify.lane import Lane
from tests.notify.receiver import Receiver, receiver

Laned = Callable[[Sender, Outbox], Lane]


@pytest.fixture
def server() -> Iterator[Receiver]:
    """An HTTP server."""
    with receiver() as running:
        yield running


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """A certificate authority that nobody knows."""
    return trustme.CA()


@pytest.fixture
def laned() -> Iterator[Laned]:
    """Starts a lane with a short back-off, and ends it with the test."""
    started: list[Lane] = []

    def start(sender: Sender, outbox: Outbox) -> Lane:
        lane = Lane(sender, outbox, random.Random(3), first_backoff_seconds=0.02)
        lane.start()
        started.append(lane)
        return lane

    yield start
    for lane in started:
        lane.stop()
    assert all(lane.join(5) for lane in started)
