"""Tests of sidecar.attach: with which probes the privileged process is started."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from sidecar import attach
from sidecar.config import ConfigError, Settings
from sidecar.probed.probe import PROBES


class Started:
    """Stands for the process, and keeps how it was started."""

    command: tuple[str, ...] = ()

    def __init__(self, command: list[str], **_options: Any) -> None:
        Started.command = tuple(command)

    def wait(self) -> int:
        """It ends at once."""
        return 0


def test_each_probe_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """`probed` is started with a --probe for each that is enabled, and none twice."""
    monkeypatch.setattr(subprocess, "Popen", Started)
    path = attach.start_probed("prebuilt", 7, ("one", "two"))
    words = " ".join(Started.command)
    assert "--probe one --probe two" in words
    assert f"--socket {path}" in words
    assert words.count("--probe") == 2


def test_processes_without_a_probe_are_nothing() -> None:
    """Processes that no enabled probe follows are nothing to watch."""
    settings = Settings.model_validate({"probes": {"processes": [{"pid": 23}]}})
    with pytest.raises(ConfigError, match="nothing to watch"):
        attach.require_something(settings)


def test_probes_of_the_command_line() -> None:
    """What --probe names is enabled in place of the default."""
    settings = attach.settings_for([80], [], ["http://127.0.0.1:1"], None, probes=tuple(PROBES))
    assert settings.probes.enabled == tuple(PROBES)


def test_unknown_probes_are_refused() -> None:
    """A misspelt one is an error that names those there are, before anything is started."""
    settings = Settings.model_validate({"probes": {"enabled": ["wirre"]}})
    with pytest.raises(ConfigError, match=r"probes\.enabled: no such probe: 'wirre'; .*wire"):
        attach.require_something(settings)
