"""Tests of sidecar.doctor."""

import json
import socket

import pytest

from sidecar import doctor
from sidecar.config import Settings
from sidecar.doctor import machine, places
from sidecar.doctor.check import Check, Outcome
from sidecar.privileges import Capability


def test_a_taken_port_fails_and_says_what_to_do() -> None:
    """A port that somebody holds keeps the sidecar from starting: fail."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        [check] = places.listen(Settings.model_validate({"export": {"listen": listen}}))
    assert check.outcome is Outcome.FAIL
    assert listen in check.found
    assert "export.listen" in check.remedy


def test_an_absent_engine_costs_its_source_only() -> None:
    """An engine that refuses is a warning with the collector's own absence."""
    engines = [{"name": "r0", "url": "http://127.0.0.1:9"}]
    [check] = places.engines(Settings.model_validate({"engines": engines}))
    assert check.outcome is Outcome.WARN
    assert "refused" in check.found


def test_a_missing_library_costs_what_needs_it() -> None:
    """A library that does not load is a warning that says what is lost and how to get it."""
    [check] = machine.library("x", "libnonexistent.so.9", "no x", "install x")
    assert (check.outcome, check.costs, check.remedy) == (Outcome.WARN, "no x", "install x")


def test_capabilities_are_what_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root without CAP_BPF is told so; both capabilities pass."""
    monkeypatch.setattr("sidecar.privileges.held", lambda: frozenset({Capability.NET_RAW}))
    [check] = machine.capabilities()
    assert check.outcome is Outcome.WARN
    assert "CAP_BPF" in check.remedy
    both = frozenset({Capability.NET_RAW, Capability.BPF})
    monkeypatch.setattr("sidecar.privileges.held", lambda: both)
    [check] = machine.capabilities()
    assert check.outcome is Outcome.PASS


def test_following_names_each_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    """What probes that follow processes lack is named with what it is for; three are enough."""
    monkeypatch.setattr("sidecar.privileges.held", lambda: frozenset({Capability.PERFMON}))
    [check] = machine.following()
    assert check.outcome is Outcome.WARN
    assert "no CAP_SYS_PTRACE (to look into it)" in check.found
    assert "CAP_PERFMON" not in check.found + check.remedy
    needed = {Capability.PERFMON, Capability.SYS_PTRACE, Capability.DAC_READ_SEARCH}
    monkeypatch.setattr("sidecar.privileges.held", lambda: frozenset(needed))
    [check] = machine.following()
    assert check.outcome is Outcome.PASS


def test_every_line_that_is_not_a_pass_says_cost_and_remedy() -> None:
    """On this machine, whatever it is, no check leaves the reader without a next step."""
    for check in doctor.examine(Settings()):
        if check.outcome is not Outcome.PASS:
            assert check.costs or check.outcome is Outcome.UNKNOWN, check.name
            assert check.remedy or check.outcome is Outcome.UNKNOWN, check.name


def test_exit_status_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    """A warning exits 0, a failure 1, and both are one JSON object with --json."""
    warn = Check("a", Outcome.WARN, "x", "costs", "remedy")
    fail = Check("b", Outcome.FAIL, "y", "costs", "remedy")
    assert doctor.report([warn], as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True
    assert doctor.report([warn, fail], as_json=True) == 1
    found = json.loads(capsys.readouterr().out)
    assert [check["outcome"] for check in found["checks"]] == ["warn", "fail"]


def test_foreign_text_cannot_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences and markup in what a check found are shown, not obeyed."""
    doctor.report([Check("a", Outcome.PASS, "\x1b[31mred [bold]x[/bold]\r\n")], as_json=False)
    out = capsys.readouterr().out
    assert "\x1b[31mred" not in out
    assert "[bold]x[/bold]" in out
