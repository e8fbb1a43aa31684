"""Tests of sidecar.engines.placing; what the tables make of it is in test_translation."""

from __future__ import annotations

import pytest

from sidecar.engines import canonical
from sidecar.engines.placing import Places
from sidecar.engines.table import Name, NameTable, Role
from sidecar.signals import Labels

RUNNING = Name("running", canonical.RUNNING)
OWN = (("engine", "ember"), ("replica", "r0"))


def places(role: Role = Role.ENGINE) -> Places:
    table = NameTable(
        engine="ember",
        title="Ember",
        prefixes=("ember:",),
        names=(),
        source="made up",
        role=role,
        parts=("shard", "group"),
        copies=("rank", "stage"),
        models=("served", "model"),
    )
    return Places(table, "r0")


def telling(name: Name, *series: tuple[str, str]) -> Labels | None:
    """Its labels without those of all series; None where it is not meant."""
    found = places().of(name, series)
    return None if found is None else found[0][len(OWN) :]


def test_who_says_it_comes_first() -> None:
    """An engine or a gateway, and the replica."""
    assert places().of(RUNNING, ()) == (OWN, ("", ""))
    assert places(Role.GATEWAY).of(RUNNING, ()) == ((("gateway", "ember"), OWN[1]), ("", ""))


def test_labels_that_nobody_asked_for_are_left_out() -> None:
    """Whatever the engine adds."""
    assert telling(RUNNING, ("pod", "p-1"), ("user", "u")) == ()


def test_the_first_label_that_names_a_model_counts() -> None:
    """What clients ask for before what the engine calls it."""
    assert telling(RUNNING, ("model", "b"), ("served", "a")) == (("model", "a"),)


def test_copies_are_told_by_their_ranks() -> None:
    """In the order of the table, an absent one as an empty one."""
    found = places().of(RUNNING, (("stage", "3"), ("shard", "7")))
    assert found == ((*OWN, ("dp_rank", "7")), ("", "3"))


@pytest.mark.parametrize(
    ("status", "word"),
    [("200", "2xx"), ("503", "5xx"), ("2xx", "2xx"), ("all", "all"), ("0", "0"), ("²²²", "²²²")],
)
def test_a_code_is_a_class(status: str, word: str) -> None:
    """The finest that every gateway can tell; of an engine's errors the kind stays."""
    requests = Name("requests", canonical.GATEWAY_REQUESTS, by=(("status", "code"),))
    assert telling(requests, ("status", status)) == (("code", word),)
    errors = Name("errors", canonical.ERRORS, by=(("status", "kind"),))
    assert telling(errors, ("status", status)) == (("kind", status),)


def test_a_value_beyond_the_cap_stays_other() -> None:
    """Those that were met first keep their place, however often others come."""
    made = places()
    for _ in range(2):
        found = [made.of(RUNNING, (("model", str(i)),)) for i in range(53)]
        assert [place[0][2][1] for place in found if place] == [
            *map(str, range(50)),
            *["other"] * 3,
        ]
    assert made.folded == 6
