"""Tests of sidecar.config: what is refused, and in which words."""

from pathlib import Path

import pytest

from sidecar.addresses import split_address
from sidecar.collectors import wire
from sidecar.config import ConfigError, load
from sidecar.probed import frames, targets
from sidecar.signals import Leg


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.upper().startswith("MODELPROBE_"):
            monkeypatch.delenv(name)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "probe.yaml"
    path.write_text(text)
    return path


def test_a_file_sets_everything(tmp_path: Path) -> None:
    """Engines, ports and listener come from the file."""
    settings = load(
        written(
            tmp_path,
            "engines: [{name: r0, url: 'http://127.0.0.1:8081/'}]\n"
            "wire: {ports: [{port: 8080}, {port: 8081, leg: upstream}]}\n"
            "export: {listen: '[::1]:9000'}\n",
        )
    )
    assert settings.engines[0].url == "http://127.0.0.1:8081"
    assert [p.leg for p in settings.wire.ports] == [Leg.DOWNSTREAM, Leg.UPSTREAM]
    assert split_address(settings.export.listen) == ("::1", 9000)


def test_processes_by_each_way(tmp_path: Path) -> None:
    """A process is chosen by a part of its command line or control group, its pid or its port; the
    wire alone is enabled if nothing else is said.
    """
    text = "probes: {processes: [{command: vllm serve}, {cgroup: pod7f}, {pid: 23}, {port: 80}]}"
    found = load(written(tmp_path, text)).probes
    chosen = [entry.model_dump(exclude_unset=True) for entry in found.processes]
    assert chosen == [{"command": "vllm serve"}, {"cgroup": "pod7f"}, {"pid": 23}, {"port": 80}]
    assert found.enabled == ("wire",)


def test_the_longest_part_fits_its_frame(tmp_path: Path) -> None:
    """What the settings take at most, in number and length, one frame to `probed` holds."""
    part = "x" * 62
    assert len(part) == targets.VALUE_BYTES
    entries = f"{{command: {part}}}, " * targets.MAX_SELECTORS
    ports = ", ".join(f"{{port: {port}}}" for port in range(1, frames.MAX_PORTS + 1))
    text = f"probes: {{processes: [{entries}]}}\nwire: {{ports: [{ports}]}}\n"
    (collector,) = wire.from_settings(load(written(tmp_path, text)))
    watch = collector.watch()
    assert frames.unpack_watch(frames.pack_watch(watch)) == watch
    assert len(watch.selectors) == targets.MAX_SELECTORS


def test_the_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable stands above the file, key by key."""
    monkeypatch.setenv("MODELPROBE_EXPORT__LISTEN", "127.0.0.1:9111")
    path = written(tmp_path, "export: {listen: '127.0.0.1:9000', max_label_sets: 77}\n")
    settings = load(path)
    assert settings.export.listen == "127.0.0.1:9111"
    assert settings.export.max_label_sets == 77


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("engine: []", ["engine: unknown key", "engines", "wire", "export"]),
        ("wire: {porst: []}", ["wire.porst: unknown key", "ports", "socket"]),
        (
            "engines: [{name: a, url: 'http://h', intervall: 1}]",
            ["engines.0.intervall: unknown key", "interval_seconds"],
        ),
        ("engines: [{name: a, url: 'ftp://h'}]", ["engines.0.url", "http://"]),
        ("engines: [{name: a, url: 'http://u:p@h'}]", ["engines.0.url", "credentials"]),
        ("engines: [{name: a}]", ["engines.0.url", "required"]),
        ("engines: [{name: 'a b', url: 'http://h'}]", ["engines.0.name", "'a b'"]),
        (
            "engines: [{name: a, url: 'http://h'}, {name: a, url: 'http://i'}]",
            ["engines.name, gateways.name: a is given twice"],
        ),
        ("wire: {ports: [{port: 0}]}", ["wire.ports.0.port", "'0'"]),
        ("wire: {ports: [{port: 80}, {port: 80}]}", ["wire.ports.port: 80 is given twice"]),
        ("wire: {ports: [{port: 80, leg: sideways}]}", ["wire.ports.0.leg", "upstream"]),
        ("engines: [{name: a, url: 'http://h', interval_seconds: .nan}]", ["interval_seconds"]),
        ("engines: [{name: a, url: 'http://h', interval_seconds: -1}]", ["interval_seconds"]),
        ("export: {listen: 9838}", ["export.listen"]),
        ("export: {listen: 'localhost:9838'}", ["export.listen", "localhost"]),
        ("export: {listen: '127.0.0.1:70000'}", ["export.listen", "70000"]),
        ("wire: {ports: [{port: 80}", ["line 1", "YAML"]),
        ("probes: {enabled: []}", ["probes.enabled", "at least 1"]),
        ("probes: {enabled: [wire, wire]}", ["probes.enabled: wire is given twice"]),
        ("probes: {enabled: ['Wire!']}", ["probes.enabled.0", "'Wire!'"]),
        ("probes: {processes: [{}]}", ["probes.processes.0", "exactly one", "none is given"]),
        (
            "probes: {processes: [{pid: 7, command: x}]}",
            ["probes.processes.0", "exactly one", "command and pid are given"],
        ),
        ("probes: {processes: [{pid: 0}]}", ["probes.processes.0", "none is given"]),
        ("probes: {processes: [{pid: -1}]}", ["probes.processes.0.pid", "'-1'"]),
        ("probes: {processes: [{pid: 4194305}]}", ["probes.processes.0.pid"]),
        ("probes: {processes: [{port: 65536}]}", ["probes.processes.0.port", "65535"]),
        ("probes: {processes: [{name: x}]}", ["probes.processes.0.name: unknown key", "cgroup"]),
        (
            f"probes: {{processes: [{{command: '{'ä' * 32}'}}]}}",
            ["probes.processes.0.command", "64 bytes, at most 62"],
        ),
        ('probes: {processes: [{command: "a\\0b"}]}', ["probes.processes.0.command", "pattern"]),
        ("probes: {processes: [" + "{pid: 7}, " * 13 + "]}", ["probes.processes", "12 items"]),
        ("- a\n- b", ["top level"]),
        ("log_level: loud", ["log_level", "debug"]),
    ],
)
def test_bad_settings_are_one_line_with_file_key_and_remedy(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    """What cannot be used is refused in one line that names the file, the key and the choice."""
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    for word in words:
        assert word in message


@pytest.mark.parametrize("text", ["log_level: 2024-99-99", "a: !!int abc", "[" * 3_000])
def test_what_the_yaml_library_stumbles_over_is_refused_too(tmp_path: Path, text: str) -> None:
    """Bad dates, tags and nestings are one line, not a traceback."""
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match="YAML") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_a_password_is_not_repeated(tmp_path: Path) -> None:
    """The refusal of an address with credentials does not print them."""
    path = written(tmp_path, "engines: [{name: a, url: 'http://user:hunter2@h:80'}]")
    with pytest.raises(ConfigError, match="credentials") as caught:
        load(path)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999", "http://[::1", "http://a..b", "http://"])
def test_addresses_that_cannot_be_reached_are_refused(tmp_path: Path, url: str) -> None:
    """A port out of range, an open bracket and an empty label are refused at the start."""
    with pytest.raises(ConfigError, match=r"engines\.0\.url"):
        load(written(tmp_path, f"engines: [{{name: a, url: '{url}'}}]"))


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    """No key is required."""
    assert load(written(tmp_path, "")).export.listen == "127.0.0.1:9838"


def test_unreadable_files_say_why(tmp_path: Path) -> None:
    """A missing file, a folder and a file that is no text are three named troubles."""
    with pytest.raises(ConfigError, match="No such file"):
        load(tmp_path / "absent.yaml")
    with pytest.raises(ConfigError, match="directory"):
        load(tmp_path)
    (tmp_path / "noise.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="UTF-8"):
        load(tmp_path / "noise.yaml")


def test_unknown_variables_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt variable is an error that lists the known ones, not silence."""
    monkeypatch.setenv("MODELPROBE_EXPROT__LISTEN", "x")
    with pytest.raises(ConfigError, match=r"MODELPROBE_EXPROT__LISTEN.*MODELPROBE_EXPORT"):
        load(None)


def test_bad_values_of_variables_name_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a variable does not blame the file."""
    monkeypatch.setenv("MODELPROBE_EXPORT__LISTEN", "nowhere")
    with pytest.raises(ConfigError, match=r"^environment \(MODELPROBE_EXPORT.*nowhere"):
        load(None)
    monkeypatch.setenv("MODELPROBE_EXPORT__LISTEN", "127.0.0.1:1")
    monkeypatch.setenv("MODELPROBE_ENGINES", "[{")
    with pytest.raises(ConfigError, match=r"^environment.*engines.*JSON"):
        load(None)
