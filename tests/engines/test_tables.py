"""What every name table promises, whatever it names: checked of all that are registered."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from sidecar.engines import ENGINES, canonical, parser, tables, translation
from sidecar.engines.table import Combine, Name, NameTable, Role, normal
from sidecar.engines.wanted import wanted
from sidecar.signals import Kind

KNOWN = tables()
# Names that count different things of one kind, and are one number only together.
ADD_UP = {
    ("trtllm", canonical.PREFIX_QUERIES.name),
    ("llamacpp", canonical.PREFIX_QUERIES.name),
    ("envoy", canonical.GATEWAY_ABORTS.name),
    ("haproxy", canonical.GATEWAY_RETRIES.name),
    ("haproxy", canonical.GATEWAY_QUEUED.name),
}

each_table = pytest.mark.parametrize("table", KNOWN, ids=lambda table: table.engine)
each_name = pytest.mark.parametrize(
    ("table", "name"),
    [
        pytest.param(table, name, id=f"{table.engine}-{number}-{name.raw}")
        for table in KNOWN
        for number, name in enumerate(table.names)
    ],
)


def given(name: Name) -> set[str]:
    """The labels of ours that a name's series get, besides those that every series has."""
    states = name.how is Combine.NEWEST  # its `by` are states of one label
    return {label for label, _ in name.labels} | (
        set() if states else {ours for _, ours in name.by}
    )


def feeds(name: Name) -> tuple[object, ...]:
    """Which canonical series."""
    return (name.metric.name, name.definition, name.labels, tuple(ours for _, ours in name.by))


def apart(one: Name, other: Name) -> bool:
    """Whether no exposition has series for both: other labels, or the one gives way."""
    if one.raw == other.raw:
        wanted_of = dict(one.where)
        return any(wanted_of.get(label, value) != value for label, value in other.where)
    return one.unless in (other.raw, f"{other.raw}_count")


def test_every_table_is_registered_by_its_own_word() -> None:
    """The word in the list is the one that becomes the label."""
    assert [table.engine for table in KNOWN] == list(ENGINES)


@each_table
def test_a_table_says_where_it_was_read(table: NameTable) -> None:
    """And has a title and a path for people and for the scraper."""
    assert len(table.source) > 20
    assert table.title
    assert table.metrics_path.startswith("/")


@each_table
def test_how_ranks_combine_is_written_down(table: NameTable) -> None:
    """The rule for parts and copies names the labels it is about."""
    notes = " ".join(table.notes)
    for label in (*table.parts, *table.copies[:1]):
        assert f"`{label}`" in notes
    assert not set(table.parts) & set(table.copies)
    assert table.role is Role.ENGINE or not table.parts


@each_table
def test_two_names_never_count_the_same_twice(table: NameTable) -> None:
    """Names that feed one series are alternatives, or parts that are meant to add up."""
    for one, other in combinations(table.names, 2):
        if feeds(one) == feeds(other) and (table.engine, one.metric.name) not in ADD_UP:
            assert apart(one, other) or apart(other, one), (one.raw, other.raw)


@each_name
def test_a_name_is_of_a_canonical_metric(table: NameTable, name: Name) -> None:
    """An engine's of an engine metric, a gateway's of a gateway metric."""
    assert name.metric in canonical.CANONICAL
    assert name.metric.name.startswith(f"modelprobe_{table.role}_")


@each_name
def test_its_labels_are_declared(table: NameTable, name: Name) -> None:
    """What a name gives its series is what the metric says it has."""
    assert given(name) <= set(name.metric.labels)
    assert bool(name.definition) == (canonical.DEFINITION in name.metric.labels)


@each_name
def test_an_engine_s_counter_has_a_clock(table: NameTable, name: Name) -> None:
    """Nobody may take the bursts of an at-finish counter for speed."""
    counter = name.metric.kind is Kind.COUNTER and table.role is Role.ENGINE
    assert (name.clock is not None) == counter


@each_name
def test_its_unit_is_scaled(table: NameTable, name: Name) -> None:
    """A name that ends in its unit is brought to seconds; a histogram goes by its bare name."""
    for ending, scale in (("_us", 1e-6), ("_ms", 1e-3)):
        assert not name.raw.endswith(ending) or name.scale == scale
    if name.metric.kind is Kind.HISTOGRAM:
        assert not name.raw.endswith(("_bucket", "_sum", "_count"))
    assert bool(name.count) <= (name.metric.kind is Kind.HISTOGRAM)


@each_name
def test_what_it_refers_to_is_in_the_table(table: NameTable, name: Name) -> None:
    """An alternative is one the table knows; a former name differs and has a version."""
    raws = {other.raw for other in table.names}
    assert not name.unless or name.unless in raws | {f"{raw}_count" for raw in raws}
    assert not name.count or name.count in raws
    for was in name.was:
        assert was.raw != name.raw
        assert re.fullmatch(r"\d+(\.\d+)+", was.until)


def test_prefixes_tell_tables_apart() -> None:
    """No two tables share one, and where one begins another the longer one owns the name."""
    owners = {normal(prefix): table for table in KNOWN for prefix in table.prefixes}
    assert len(owners) == sum(len(table.prefixes) for table in KNOWN)
    keep = wanted(KNOWN)
    for prefix, table in owners.items():
        exposition = parser.parse(f"{prefix}x 1\n".encode(), keep)
        assert translation.recognise(exposition, KNOWN) == (table,)
