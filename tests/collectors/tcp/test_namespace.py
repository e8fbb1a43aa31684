"""Tests of sidecar.collectors.tcp on real sockets, each in a network namespace of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
Play = Callable[[str], dict[str, object]]
TCP = "modelprobe_tcp_"


@pytest.fixture(scope="module")
def play() -> Play:
    """Plays a scene and gives what the collector said; skips where there are no namespaces."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("needs unshare(1)")
    inside = [unshare, "--net", *(() if os.geteuid() == 0 else ("--map-root-user",))]
    tried = subprocess.run([*inside, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no network namespace of our own: {tried.stderr.strip()}")

    def run(name: str) -> dict[str, object]:
        command = [*inside, sys.executable, "-m", "tests.collectors.tcp.scene", name]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=58
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, object] = json.loads(done.stdout)
        return found

    return run


def sockets(side: str, state: str) -> str:
    return f"{TCP}port_sockets/8000/upstream/{side}/{state}"


def test_exact_counts(play: Play) -> None:
    """11 came in of 14 tried, 3 failed; 5 were reset, which is 10 ends; 8 resets were sent."""
    said = play("counters")
    counted = {
        name: said[f"{TCP}{name}_total"]
        for name in (
            "active_opens",
            "passive_opens",
            "attempt_fails",
            "established_resets",
            "sent_resets",
        )
    }
    assert counted == {
        "active_opens": 14,
        "passive_opens": 11,
        "attempt_fails": 3,
        "established_resets": 10,
        "sent_resets": 8,
    }
    assert said[sockets("client", "established")] == said[sockets("server", "established")] == 6


def test_a_client_that_does_not_read_closes_its_window(play: Play) -> None:
    """Each time it shuts it is counted, and each time it opens again."""
    said = play("zero_window")
    shut = said[f"{TCP}zero_window_advertisements_total"]
    assert shut == said[f"{TCP}zero_window_recoveries_total"] != 0


def test_an_accept_queue_that_overflows_is_told_by_port(play: Play) -> None:
    """17 SYNs found a queue of 1 full: the server is named, though another listens too."""
    said = play("overflow")
    overflows = said[f"{TCP}listen_overflows_total"]
    assert isinstance(overflows, float)
    assert overflows >= 17  # a SYN that comes again counts again
    subject, text = said["accept_overflow"]  # type: ignore[misc]
    assert subject == "8000"
    assert text.startswith("the server of port 8000 accepts too slowly: its queue was full and ")


def test_the_queue_is_told_against_its_limit(play: Play) -> None:
    """Two wait where one may, which is how the kernel counts: the queue is full."""
    said = play("overflow")
    listener = {
        name: said[f"modelprobe_listener_{name}/8000/upstream"]
        for name in (
            "up",
            "accept_queue_connections",
            "accept_queue_limit_connections",
            "accept_queue_used_ratio",
        )
    }
    assert list(listener.values()) == [1, 2, 1, 1]
    dropped = said["modelprobe_listener_dropped_packets_total/8000/upstream"]
    assert isinstance(dropped, float)
    assert dropped >= 17


def test_a_burst_at_a_full_queue_is_not_told(play: Play) -> None:
    """3 SYNs were dropped, and counted; that alone is no server that accepts too slowly."""
    said = play("few_overflows")
    overflows = said[f"{TCP}listen_overflows_total"]
    assert isinstance(overflows, float)
    assert 3 <= overflows < 10
    assert "accept_overflow" not in said


def test_connections_closed_at_once_are_counted_and_not_told(play: Play) -> None:
    """1,201 TIME_WAITs towards the port, each with an ephemeral port of its own; no pile."""
    said = play("burst")
    assert said[sockets("client", "time_wait")] == said[f"{TCP}time_wait_sockets"] == 1_201
    assert said[sockets("server", "time_wait")] == 0
    ports = said[f"{TCP}ephemeral_ports"]
    assert isinstance(ports, float)
    assert said[f"{TCP}ephemeral_ports_used_ratio/8000/upstream"] == 1_201 / ports
    assert "time_wait" not in said


@pytest.mark.parametrize(("scene", "held"), [("few_ports", 79), ("many_ports", 83)])
def test_local_ports_that_run_out_are_told(play: Play, scene: str, held: int) -> None:
    """Over 80 of 100 it is told, at 79 it is not; the share is exact on both sides."""
    said = play(scene)
    assert said[f"{TCP}ephemeral_ports_used_ratio/8000/upstream"] == held / 100
    assert ("ephemeral_ports" in said) is (held > 80)


def test_local_ports_in_time_wait_run_out_in_truth(play: Play) -> None:
    """Where the kernel takes none of them again: 89 are told, and after 11 more connect fails."""
    said = play("waiting")
    assert said[f"{TCP}ephemeral_ports_used_ratio/8000/upstream"] == 0.89
    assert said["error"] == "EADDRNOTAVAIL"
    [subject, text] = said["ephemeral_ports"]  # type: ignore[misc]
    assert (subject, text[:22]) == ("8000", "89 of 100 local ports ")


def test_local_ports_that_are_taken_again_are_no_trouble(play: Play) -> None:
    """On loopback, by default: as many are used and connecting succeeds, so nothing is told."""
    said = play("waiting_reuse")
    assert said[f"{TCP}ephemeral_ports_used_ratio/8000/upstream"] == 0.89
    assert said["error"] == ""
    assert "ephemeral_ports" not in said


def test_segments_sent_again_are_told(play: Play) -> None:
    """SYNs that a full server drops come again; the sentence tells them from lost data."""
    said = play("retransmissions")
    _, text = said["retransmissions"]  # type: ignore[misc]
    assert "of them to open connections" in text
    again, opening = said[f"{TCP}retransmitted_segments_total"], said[f"{TCP}syn_retransmits_total"]
    assert isinstance(again, float)
    assert isinstance(opening, float)
    assert again >= opening >= 11


def test_a_network_that_loses_nothing_is_not_told(play: Play) -> None:
    """Thousands of segments, hardly one sent again, no sentence at all."""
    said = play("quiet")
    sent = said[f"{TCP}sent_segments_total"]
    assert isinstance(sent, float)
    assert sent >= 2_018
    assert not [value for value in said.values() if isinstance(value, list)]


def test_both_families_count_together(play: Play) -> None:
    """7 over IPv6 and 3 over IPv4 to one dual-stack server; the fullest address has 7."""
    said = play("ipv6")
    assert said[sockets("client", "established")] == 10
    ports = said[f"{TCP}ephemeral_ports"]
    assert isinstance(ports, float)
    assert said[f"{TCP}ephemeral_ports_used_ratio/8000/upstream"] == 7 / ports
    assert said["modelprobe_listener_accept_queue_connections/8000/upstream"] == 10
    assert said["modelprobe_listener_accept_queue_limit_connections/8000/upstream"] == 127


@pytest.mark.slow
def test_a_client_without_keep_alive_is_told(play: Play) -> None:
    """Connections that are closed after each use, half a minute long: they pile up."""
    subject, text = play("pile")["time_wait"]  # type: ignore[misc]
    assert subject == "8000"
    assert text.endswith(", towards port 8000: keep-alive is off or too short")
