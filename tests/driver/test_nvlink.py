"""NVLink: a card without links refuses what it has no figure for, one with links has figures."""

from __future__ import annotations

from .conftest import Machine, Process

# Errors, speed, number of links, traffic: the fields of all links together.
FIELDS = [38, 45, 52, 59, 90, 91, 138, 139, 161, 162, 163, 202, 204]


def fields(process: Process, *ids: int) -> list[tuple[int, int]]:
    """Code and value of some fields of device 0."""
    answers = process.nvml("nvmlDeviceGetFieldValues", 0, list(ids))
    return [(one["nvmlReturn"], one["value"]["ullVal"]) for one in answers]


def test_links_are_absent_until_configured(machine: Machine) -> None:
    """NOT_SUPPORTED without links; with them each has its own state and errors."""
    process = machine.process()
    assert process.nvml("nvmlDeviceGetNvLinkState", 0, 0)["error"] == 3
    machine.configuration.update({"nvlinks": 4, "nvlink.2.state": 0, "nvlink.1.crc_flit": 9})
    states = [process.nvml("nvmlDeviceGetNvLinkState", 0, link) for link in range(4)]
    assert states == [1, 1, 0, 1]
    assert process.nvml("nvmlDeviceGetNvLinkErrorCounter", 0, 1, 2) == 9


def test_fields_of_links_are_refused_without_links(machine: Machine) -> None:
    """NOT_SUPPORTED, and no 0 that looks like a link at rest; the rest of the batch answers."""
    process = machine.process()
    refused = [(3, 0)] * len(FIELDS)
    assert fields(process, *FIELDS, 142) == [*refused, (0, 0)]
    machine.configuration.set("nvlinks", 0)
    assert fields(process, *FIELDS, 142) == [*refused, (0, 0)]


def test_fields_of_links_are_there_with_links(machine: Machine) -> None:
    """Counters at 0, their number and their speed; a card can still refuse one field."""
    machine.configuration.update({"nvlinks": 18, "field.38": "unsupported"})
    process = machine.process()
    assert fields(process, *FIELDS) == [
        (3, 0), *[(0, 0)] * 3, (0, 26562), (0, 18), *[(0, 0)] * 7,
    ]  # fmt: skip


def test_a_figure_in_the_file_needs_no_links(machine: Machine) -> None:
    """What is set is answered, and the others are refused as before."""
    machine.configuration.set("nvlink.tx", 2**35)
    assert fields(machine.process(), 138, 139) == [(0, 2**35), (3, 0)]
