"""GPUs on the page and in the state: what each holds and does, or why it does not say."""

from __future__ import annotations

import pytest

from sidecar.collectors.nvml import metrics
from sidecar.export.page.cards import cards
from sidecar.readings import gpus
from sidecar.signals import Leg, Metric, Sample
from sidecar.snapshot import Snapshot
from tests.export import made
from tests.export.test_page import show

GIB = 2.0**30


def sample(metric: Metric, value: float, gpu: int = 0, **labels: str) -> Sample:
    who = (("gpu", str(gpu)), ("uuid", f"GPU-{gpu}"))
    return Sample(metric.name, value, (*who, *labels.items()))


def keyed(key: str) -> Metric:
    return metrics.TABLE[key][0]


def healthy(gpu: int = 0) -> list[Sample]:
    return [
        sample(metrics.INFO, 1, gpu, name="H100", pci="0000:3b:00.0"),
        sample(metrics.STATE, 1, gpu, state="ok"),
        sample(metrics.STATE, 0, gpu, state="lost"),
        sample(metrics.MEMORY_STATE, 1, gpu, state="ok"),
        sample(keyed("memory_total"), 80 * GIB, gpu),
        sample(keyed("memory_used"), 20 * GIB, gpu, api="v2"),
        sample(keyed("memory_used"), 5 * GIB, gpu, api="v2", mig="1"),
        sample(keyed("utilization"), 0.42, gpu, kind="gpu"),
        sample(keyed("utilization"), 0.99, gpu, kind="encoder"),
        sample(keyed("temperature"), 61, gpu, sensor="gpu"),
        sample(keyed("power"), 312.4, gpu),
    ]


def snapshot(*samples: Sample) -> Snapshot:
    return made.snapshot(samples=samples)


def test_a_card_at_work() -> None:
    """Memory, its share, utilisation of the chip, temperature and power; MIG is not the card."""
    [card] = cards(snapshot(*healthy()))
    assert card.ok
    assert card.memory.replace("\N{NO-BREAK SPACE}", " ") == "20.0 GiB of 80.0 GiB"
    assert card.share == 25
    plain = card.facts.replace("\N{NO-BREAK SPACE}", " ")
    assert plain == "H100 · 42 % busy · 61 °C · 312 W"


def test_a_card_that_does_not_answer_has_its_state_alone() -> None:
    """No figure of before is shown; the state is a word."""
    states = [
        sample(metrics.STATE, 1, state="not_answering"),
        sample(metrics.UP, 0),
    ]
    [card] = cards(snapshot(*states))
    assert (card.ok, card.state, card.share) == (False, "not answering", None)
    assert card.memory == "\N{EN DASH}"


@pytest.mark.parametrize(
    ("state", "words"), [("unified", "host's memory"), ("inconsistent", "do not add up")]
)
def test_memory_that_cannot_be_believed_is_words(state: str, words: str) -> None:
    """FC-11: no percentage of a total that is the host's, or that does not add up."""
    found = [sample(metrics.STATE, 1, state="ok"), sample(metrics.MEMORY_STATE, 1, state=state)]
    [card] = cards(snapshot(*found))
    assert words in card.memory
    assert card.share is None


def test_what_a_card_needs_is_said() -> None:
    """A card that asks for a reset is not well although it answers."""
    [card] = cards(snapshot(*healthy(), sample(metrics.NEED, 1, need="drain_and_reset")))
    assert not card.ok
    assert card.needs == "needs drain and reset"


def test_cards_are_in_the_order_of_their_index() -> None:
    """Card 10 comes behind card 9."""
    many = [s for gpu in (10, 9, 0) for s in healthy(gpu)]
    assert [reading.gpu for reading in gpus.read(snapshot(*many))] == ["0", "9", "10"]


def test_the_page_shows_cards_only_where_there_are_any() -> None:
    """A machine without GPUs has no empty box."""
    document = show(snapshot(*healthy()))
    assert "GPU 0" in document.words("gpus")
    assert show(made.snapshot()).words("gpus").strip() == ""


def test_a_service_without_a_gateway_has_one_leg() -> None:
    """Nothing of a gateway is said where only one port is watched."""
    document = show(made.snapshot(legs=(Leg.DOWNSTREAM,)))
    words = document.words("figures")
    assert "Client → service" in words
    assert "Gateway" not in words
