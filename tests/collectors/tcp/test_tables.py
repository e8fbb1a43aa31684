"""Tests of sidecar.collectors.tcp.tables on recorded and on broken tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.collectors.tcp.tables import COUNTERS, pairs, sockstat, whole
from sidecar.signals import Absence, NoData
from tests.collectors.tcp.made import RECORDED


def table(folder: Path, text: str) -> Path:
    path = folder / "snmp"
    path.write_text(text)
    return path


def test_recorded_tables_are_read_by_name() -> None:
    """Names and values pair up, whatever their columns."""
    snmp, netstat = pairs(RECORDED / "snmp", "Tcp"), pairs(RECORDED / "netstat", "TcpExt")
    assert (snmp["ActiveOpens"], snmp["RetransSegs"]) == (1_187_892, 4_722)
    assert (netstat["ListenOverflows"], netstat["TCPSynRetrans"]) == (62, 26)


def test_this_kernel_has_every_counter() -> None:
    """No name of ours is misspelt: the recorded kernel, 6.18, knows each."""
    known = {f"Tcp{name}" for name in pairs(RECORDED / "snmp", "Tcp")}
    known |= set(pairs(RECORDED / "netstat", "TcpExt"))
    assert set(COUNTERS) <= known


def test_sockstat_is_read_by_name() -> None:
    """Sockets in use and in TIME_WAIT, of IPv6 in a file of its own."""
    assert sockstat(RECORDED / "sockstat", "TCP")["tw"] == 1915
    assert sockstat(RECORDED / "sockstat6", "TCP6") == {"inuse": 0}


def test_a_negative_value_is_left_out(tmp_path: Path) -> None:
    """MaxConn of snmp is -1, for none: it has no value, its neighbours keep theirs."""
    assert pairs(table(tmp_path, "Tcp: MaxConn InSegs\nTcp: -1 7\n"), "Tcp") == {"InSegs": 7}


def test_other_columns_shift_nothing(tmp_path: Path) -> None:
    """An older kernel's fewer columns, in another order, are read by their names."""
    path = table(tmp_path, "Tcp: OutRsts ActiveOpens\nTcp: 3 11\n")
    assert pairs(path, "Tcp") == {"OutRsts": 3, "ActiveOpens": 11}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Tcp: InSegs\n",
        "Tcp: InSegs\nUdp: 7\n",
        "Tcp: InSegs OutSegs\nTcp: 7\n",
        "Tcp: InSegs\nTcp: 7 11\n",
        "Tcp: InSegs InSegs\nTcp: 7 11\n",
        "Udp: InDatagrams\nUdp: 7\n",
    ],
    ids=[
        "empty",
        "no values",
        "another's values",
        "fewer values",
        "more values",
        "a name twice",
        "no such group",
    ],
)
def test_names_without_their_values_are_no_table(tmp_path: Path, text: str) -> None:
    """Where it is not certain which value is whose, none is given, and the file is named."""
    with pytest.raises(NoData, match="snmp has another layout") as caught:
        pairs(table(tmp_path, text), "Tcp")
    assert caught.value.absence is Absence.UNSUPPORTED


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A missing table is not_found, with its path."""
    with pytest.raises(NoData, match="sockstat6 is absent") as caught:
        sockstat(tmp_path / "sockstat6", "TCP6")
    assert caught.value.absence is Absence.NOT_FOUND


@pytest.mark.parametrize("text", ["TCP: inuse\n", "TCP:\n", "UDP: inuse 7\n", "\xff\x00\n"])
def test_a_foreign_sockstat_is_refused(tmp_path: Path, text: str) -> None:
    """Names without values, and no line of TCP, are another layout."""
    with pytest.raises(NoData) as caught:
        sockstat(table(tmp_path, text), "TCP")
    assert caught.value.absence is Absence.UNSUPPORTED


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("0", 0),
        (str(2**64 - 1), 2**64 - 1),
        (str(2**64), None),
        ("9" * 5_000, None),
        ("-1", None),
        ("+7", None),
        ("1_000", None),
        ("\N{SUPERSCRIPT TWO}", None),
        ("", None),
        ("nan", None),
    ],
)
def test_only_a_count_of_64_bits_is_a_value(text: str, value: int | None) -> None:
    """Nothing else becomes a number, and none becomes another."""
    assert whole(text) == value


@given(st.text(st.sampled_from("Tcp: -17InSegs\n\t"), max_size=200))
def test_any_text_is_a_table_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    """Whatever a file holds: counts that are in it, or NoData."""
    path = table(tmp_path_factory.mktemp("net"), text)
    try:
        found = pairs(path, "Tcp")
    except NoData:
        return
    assert all(name in text and str(value) in text for name, value in found.items())
