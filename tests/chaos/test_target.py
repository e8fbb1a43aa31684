"""Who may be broken, and who is found behind a name."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chaos.target import CONSENT, PAGE, Gone, Refused, Target, live

LISTENER = """
import socket, subprocess, sys, time
with socket.socket() as listening:
    listening.bind(("127.0.0.1", 0)); listening.listen()
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    print(listening.getsockname()[1], child.pid, flush=True)
    time.sleep(60)
"""


@contextmanager
def listening(**environment: str) -> Iterator[tuple[int, int, int]]:
    """A process that listens on a port and has a child: port, pid, the child's pid."""
    command = (sys.executable, "-c", LISTENER)
    env = {k: v for k, v in os.environ.items() if k not in (CONSENT, PAGE)} | environment
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True) as process:
        assert process.stdout is not None
        port, child = map(int, process.stdout.readline().split())
        try:
            yield port, process.pid, child
        finally:
            process.kill()
            os.kill(child, 9)


@pytest.mark.parametrize("name", ["", "port:", "port:0", "port:65536", "pid:x", "host:1", "8080"])
def test_a_name_that_is_none_is_refused_with_what_to_write(name: str) -> None:
    """The remedy is in the text."""
    with pytest.raises(Refused, match="write port:N"):
        Target.named(name, "staging")


@pytest.mark.parametrize(
    "name", ["production", "prod", "PROD-eu-1", "eu.live", "my_prd", "prod2", "Production 3"]
)
def test_production_is_refused_by_its_name(name: str) -> None:
    """However it is spelled."""
    assert live(name)
    with pytest.raises(Refused, match="production"):
        Target.named("port:8080", name)


@pytest.mark.parametrize("name", ["staging", "product-tests", "delivery", "olive", "dev"])
def test_names_that_only_look_like_production_are_not(name: str) -> None:
    """A word counts, not letters in one."""
    assert not live(name)


def test_an_environment_has_to_be_named() -> None:
    """None is assumed."""
    with pytest.raises(Refused, match="--environment"):
        Target.named("port:8080", "  ")


def test_who_listens_is_found_with_those_of_its_children_that_agreed() -> None:
    """The leader comes first."""
    with listening(**{CONSENT: "staging"}) as (port, pid, child):
        members = Target.named(f"port:{port}", "staging").members()
    assert [process.pid for process in members] == [pid, child]


def test_who_did_not_agree_is_not_touched() -> None:
    """The text says how one agrees."""
    with listening() as (port, _, _), pytest.raises(Refused, match=f"{CONSENT}=staging"):
        Target.named(f"port:{port}", "staging").leader()


def test_who_agreed_elsewhere_is_not_touched() -> None:
    """Consent is for one environment."""
    with listening(**{CONSENT: "dev"}) as (port, _, _), pytest.raises(Refused, match="'dev'"):
        Target.named(f"port:{port}", "staging").leader()


def test_nobody_there_is_gone_and_not_somebody_else() -> None:
    """Between two lives of an engine nobody is found."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Gone, match="nobody listens"):
        Target.named(f"port:{port}", "staging").leader()


def test_a_target_without_the_interposer_says_how_to_start_it() -> None:
    """With both variables."""
    with listening(**{CONSENT: "staging"}) as (port, _, _):
        target = Target.named(f"port:{port}", "staging")
        with pytest.raises(Refused, match=f"LD_PRELOAD.*{PAGE}"):
            target.page()


def test_the_page_is_the_one_that_the_target_names() -> None:
    """It is read from its environment."""
    with listening(**{CONSENT: "staging", PAGE: "/run/chaos/page"}) as (port, _, _):
        assert str(Target.named(f"port:{port}", "staging").page()) == "/run/chaos/page"
