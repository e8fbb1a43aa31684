"""What a demo calls well, and what it does not."""

from dataclasses import replace
from typing import Any

import pytest

from rig.report import Figures, trouble
from rig.truth import Spread, Summary

TRUTH = Summary(
    requests=17,
    failed=0,
    unfinished=0,
    failures={},
    statuses={"200": 17},
    ttft_seconds=Spread(0.05, 0.1),
    itl_seconds=Spread(0.005, 0.01),
    tokens=1_000,
    seconds=10.0,
    idle_ratio=0.98,
    rate=2.0,
    seed=1,
)


def state(requests: int = 17, failed: int = 0, absence: str | None = None) -> dict[str, Any]:
    probes = {"name": "probes", "state": "blind" if absence else "firing", "absence": absence}
    others = [{"name": name, "state": "firing", "absence": None} for name in ("engine:0", "nvml")]
    return {
        "collectors": [probes, *others],
        "gpus": [{"gpu": "0", "state": "ok"}],
        "totals": {"downstream": {"requests": requests, "failed": failed}},
        "engines": [
            {
                "generated_tokens_total": 500.0,
                "prompt_tokens_computed_total": 25.0,
                "prompt_tokens_cached_total": 75.0,
            }
        ],
    }


GOOD = Figures(state(), TRUTH, "envoy", "llama.cpp (tiny)", gpu=True)


def without(*names: str) -> dict[str, Any]:
    """A state in which nobody reads some sources."""
    found = state()
    found["collectors"] = [one for one in found["collectors"] if one["name"] not in names]
    return found


def test_a_good_run_has_no_trouble() -> None:
    """When wire and client agree and all is attached, nothing is said."""
    assert trouble(GOOD) == []


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        (replace(GOOD, state=None), "did not answer"),
        (replace(GOOD, state=state(requests=0)), "saw no request"),
        (replace(GOOD, state=state(requests=16)), "client made 17 requests, the wire saw 16"),
        (replace(GOOD, state=state(failed=1)), "1 requests failed on the wire"),
        (replace(GOOD, state=state(absence="refused")), "probes is blind: refused"),
        (replace(GOOD, truth=None), "no summary"),
        (replace(GOOD, state=without("probes")), "no collector reads the wire"),
        (replace(GOOD, state=without("engine:0")), "no collector reads the engines"),
        (replace(GOOD, state=without("nvml")), "no collector reads the GPUs"),
        (replace(GOOD, state={**state(), "gpus": []}), "no GPU was seen"),
        (
            replace(GOOD, state={**state(), "gpus": [{"gpu": "3", "state": "lost"}]}),
            "GPU 3 is lost",
        ),
        (replace(GOOD, truth=replace(TRUTH, failed=1, failures={"reset": 1})), "reset"),
    ],
)
def test_each_trouble_is_named(figures: Figures, words: str) -> None:
    """Whatever was not well is a line, and so an exit status of 1."""
    assert any(words in line for line in trouble(figures))


def test_rates_come_from_the_engines_counters() -> None:
    """Tokens over the client's time, and the share of prompt tokens that the cache held."""
    assert GOOD.tokens_per_second() == 50
    assert GOOD.kv_cache_hit_ratio() == 0.75
    assert replace(GOOD, state={**state(), "engines": []}).kv_cache_hit_ratio() is None
