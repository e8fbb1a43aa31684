"""Docs and code agree: generated pages are current, examples run, named things exist."""

import importlib.util
import re
import types
from pathlib import Path

import pytest
from typer.main import get_command

from sidecar import cli, pipeline
from sidecar.config import Settings
from sidecar.signals import ABSENCE_MEANINGS, Absence, Sample
from sidecar.state import State
from sidecar.testing import wait_for

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def generator() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_current() -> None:
    """docs/metrics.md and docs/configuration.md say what the code declares."""
    assert generator().stale() == []


def test_every_absence_has_a_meaning() -> None:
    """No state can be shown that the docs do not explain."""
    assert set(ABSENCE_MEANINGS) == set(Absence)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of every page is a file of this project."""
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_readme_names_only_commands_that_exist() -> None:
    """Each `model-probe X` of the docs is a command, each `./run X` a sub-command."""
    commands = set(get_command(cli.cli).commands)  # type: ignore[attr-defined]
    script = (ROOT / "run").read_text()
    for page in PAGES:
        text = page.read_text()
        for name in re.findall(r"model-probe ([a-z]+)\b", text):
            assert name in commands | {"runs", "is"}, f"{page.name}: {name}"
        for name in re.findall(r"\./run ([a-z]+)", text):
            assert re.search(rf"^\s*{name}\b.*\)", script, re.M), f"{page.name}: ./run {name}"


def test_the_example_collector_works() -> None:
    """The collector of docs/adding-a-collector.md runs as written."""
    text = (ROOT / "docs/adding-a-collector.md").read_text()
    source = re.findall(r"```python\n(.*?)```", text, re.S)[0]
    module = types.ModuleType("load")
    exec(compile(source, "adding-a-collector.md", "exec"), module.__dict__)  # noqa: S102 - our own
    running = pipeline.Pipeline(module.from_settings(Settings()), State(0), publish_seconds=0.02)
    running.start()
    try:
        wait_for(lambda: running.snapshot().samples)
    finally:
        running.stop(1)
    [sample] = running.snapshot().samples
    assert isinstance(sample, Sample)
    assert sample.metric == module.LOAD.name
