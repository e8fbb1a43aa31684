"""The colours of the page, measured as WCAG 2.2 measures contrast."""

from __future__ import annotations

import re

import pytest

from sidecar.export.page.render import FOLDER


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_colours_meet_aa(theme: int) -> None:
    """Every colour of text has at least 4.5:1 on each ground it is used on."""
    css = (FOLDER / "page.css").read_text()
    block = re.findall(r":root \{(.*?)\}", css, re.DOTALL)[theme]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    pairs = [(ink, g) for ink in ("ink", "soft", "downstream") for g in ("ground", "panel")]
    pairs += [(ink, "panel") for ink in ("upstream", "engine", "good", "bad", "warn")]
    pairs += [("good", "ground"), ("bad", "ground"), ("bad", "bad-ground")]
    pairs += [("warn", "warn-ground"), ("ink", "warn-ground")]
    for ink, ground in pairs:
        low, high = sorted((_luminance(colours[ink]), _luminance(colours[ground])))
        assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, ground)
