"""HAProxy's lumps, from the packets to the page, and their end when it is told not to make them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from rig.sidecar import Sidecar
from rig.stack import Stack
from sidecar.testing import wait_for
from tests.e2e.test_incidents import observed, page, said, window

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.ebpf,
    pytest.mark.slow,  # what the last minute held is what the sentence is about
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="the wire tap needs root and BPF"),
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed"),
]
SENTENCE = "receive tokens in lumps"


def told_not_to(stack: Stack) -> None:
    """HAProxy again, on the same port, with the one option that cures it."""
    config = stack.folder / "haproxy.cfg"
    text = config.read_text()
    assert "http-no-delay" not in text
    config.write_text(text.replace("    mode http\n", "    mode http\n    option http-no-delay\n"))
    stack.stop("haproxy")
    stack.restart("haproxy")


def test_lumps_are_on_the_page_until_the_option_is_set(tmp_path: Path) -> None:
    """The page names them and where the stream is held back; ``option http-no-delay`` ends the
    lumps, and a minute later the sentence.
    """
    with observed(tmp_path, "haproxy") as (stack, sidecar):
        wait_for(lambda: said(sidecar, SENTENCE), 60, "the sentence in the state")
        text = page(sidecar)
        assert SENTENCE in text
        assert "held back between the two legs, in the gateway" in text
        told_not_to(stack)
        wait_for(lambda: even(sidecar), 150, "a minute of even tokens")
        wait_for(lambda: not said(sidecar, SENTENCE), 10, "the sentence's end")
        assert SENTENCE not in page(sidecar)
        stack.check()


def even(sidecar: Sidecar) -> bool:
    """Whether the last minute's tokens came to clients as the engine sent them."""
    client, engine = window(sidecar, "downstream"), window(sidecar, "upstream")
    if client.get("requests", 0) < 11 or engine.get("requests", 0) < 11:
        return False
    return bool(client["itl_seconds"]["p50"] > engine["itl_seconds"]["p50"] / 2)
