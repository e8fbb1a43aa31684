"""An engine is one file and one line in the table of engines."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from sidecar.engines import ENGINES, canonical, tables
from tests.engines.reading import translated, value

EMBER = '''
"""Ember, an engine that there is not."""

from sidecar.engines import canonical
from sidecar.engines.table import Clock, Name, NameTable

TABLE = NameTable(
    engine="ember",
    title="Ember",
    prefixes=("ember_",),
    names=(
        Name("active", canonical.RUNNING),
        Name("tokens_total", canonical.GENERATED_TOKENS, clock=Clock.PER_STEP),
        Name("first_token_ms", canonical.TTFT, scale=1e-3, definition="from_arrival"),
    ),
    source="made up",
)
'''


def test_a_new_engine_is_one_file_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module with a table, its name in the list, and its numbers have their canonical names."""
    (tmp_path / "made_up_ember.py").write_text(dedent(EMBER))
    monkeypatch.syspath_prepend(tmp_path)
    known = tables({**ENGINES, "ember": "made_up_ember:TABLE"})
    found = translated(
        "ember_active 3\nember_tokens_total 1009\nember_first_token_ms_sum 70\n"
        "ember_first_token_ms_count 7\n",
        known,
    )
    assert found.engines == ("ember",)
    assert (value(found, canonical.RUNNING), value(found, canonical.GENERATED_TOKENS)) == (3, 1009)
    assert not found.missing
    assert "ember" not in {table.engine for table in tables()}
