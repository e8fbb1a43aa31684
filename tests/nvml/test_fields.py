"""Every field of a healthy card, from the driver's library to the sample, in base units."""

import pytest

from tests.nvml.conftest import Machine, View

CARD = {
    "name": "NVIDIA H100 80GB HBM3",
    "uuid": "GPU-11111111-2222-3333-4444-555555555555",
    "pci": "0000:3b:00",
    "memory.total": 85_899_345_920,
    "memory.reserved": 540_868_608,
    "memory.used_base": 1_048_576,
    "utilization.gpu": 37,
    "utilization.memory": 13,
    "utilization.encoder": 3,
    "utilization.decoder": 7,
    "temperature": 61,
    "temperature.memory": 67,
    "power": 311_500,
    "power.limit": 650_000,
    "energy": 123_457,
    "clock.sm": 1755,
    "clock.memory": 2619,
    "fan": 41,
    "throttle.reasons": 0x24,
    "violation.0": 5_000_000_000,
    "throttle.sw_thermal": 903_158_000,
    "pcie.replay": 11,
    "pcie.tx": 17,
    "pcie.rx": 19,
    "pcie.tx_bytes": 1_009,
    "nvlink.tx": 23,
    "nvlink.replay": 29,
    "ecc.corrected.volatile": 31,
    "ecc.uncorrected.aggregate": 2,
    "remapped.corrected": 1,
    "remapped.uncorrected": 3,
    "remapped.pending": 1,
    "remapped.failed": 0,
    "retired.pending": 0,
    "gpm.2": 35.5,
    "gpm.3": 21.0,
    "gpm.5": 12.5,
    "gpm.10": 8.0,
}
FIELDS = [
    ("memory_total_bytes", {}, 85_899_345_920),
    ("memory_used_bytes", {"api": "v2"}, 1_048_576),
    ("memory_reserved_bytes", {}, 540_868_608),
    ("memory_free_bytes", {}, 85_899_345_920 - 540_868_608 - 1_048_576),
    ("memory_state", {"state": "ok"}, 1),
    ("memory_state", {"state": "unified"}, 0),
    ("memory_api", {"api": "v2"}, 1),
    ("utilization_ratio", {"kind": "gpu"}, 0.37),
    ("utilization_ratio", {"kind": "memory"}, 0.13),
    ("utilization_ratio", {"kind": "encoder"}, 0.03),
    ("utilization_ratio", {"kind": "decoder"}, 0.07),
    ("temperature_celsius", {"sensor": "gpu"}, 61),
    ("temperature_celsius", {"sensor": "memory"}, 67),
    ("power_watts", {}, 311.5),
    ("power_limit_watts", {}, 650),
    ("energy_joules_total", {}, 123.457),
    ("clock_hertz", {"clock": "sm"}, 1.755e9),
    ("clock_hertz", {"clock": "memory"}, 2.619e9),
    ("fan_speed_ratio", {}, 0.41),
    ("throttle_active", {"reason": "sw_power_cap"}, 1),
    ("throttle_active", {"reason": "sw_thermal"}, 1),
    ("throttle_active", {"reason": "hw_thermal"}, 0),
    ("throttle_seconds_total", {"reason": "power"}, 5),
    ("throttle_seconds_total", {"reason": "sw_thermal"}, 0.903158),
    ("pcie_replays_total", {}, 11),
    ("pcie_bytes_per_second", {"direction": "tx"}, 17_000),
    ("pcie_bytes_per_second", {"direction": "rx"}, 19_000),
    ("pcie_bytes_total", {"direction": "tx"}, 1_009),
    ("nvlink_bytes_total", {"direction": "tx"}, 23 * 1024),
    ("nvlink_errors_total", {"kind": "replay"}, 29),
    ("ecc_errors_total", {"kind": "corrected", "lifetime": "volatile"}, 31),
    ("ecc_errors_total", {"kind": "uncorrected", "lifetime": "aggregate"}, 2),
    ("remapped_rows", {"kind": "corrected"}, 1),
    ("remapped_rows", {"kind": "uncorrected"}, 3),
    ("row_remap_pending", {}, 1),
    ("row_remap_failure", {}, 0),
    ("retired_pages_pending", {}, 0),
    ("mig_mode", {}, 0),
    ("sm_active_ratio", {}, 0.355),
    ("sm_occupancy_ratio", {}, 0.21),
    ("tensor_active_ratio", {}, 0.125),
    ("dram_active_ratio", {}, 0.08),
    ("processes", {"kind": "compute"}, 0),
    ("processes", {"kind": "mps"}, 0),
    ("up", {}, 1),
    ("state", {"state": "ok"}, 1),
    ("state", {"state": "lost"}, 0),
    ("xid_errors_total", {"xid": "79"}, 0),
    ("gpus_present", {}, 1),
    ("gpus_expected", {}, 1),
]


@pytest.fixture(scope="module")
def card(shared: Machine) -> View:
    shared.update(CARD)
    return shared.view().wait(lambda v: v.get("sm_active_ratio") is not None, "GPM")


@pytest.mark.parametrize(("name", "labels", "expected"), FIELDS, ids=lambda x: str(x)[:60])
def test_field(card: View, name: str, labels: dict[str, str], expected: float) -> None:
    """The figure of the driver arrives in base units under its name."""
    assert card.get(name, **labels) == pytest.approx(expected)


def test_labels_name_the_card(card: View) -> None:
    """Index and UUID on every sample of a card; name, address and driver once."""
    (info,) = card.all("info")
    assert dict(info.labels) == {
        "gpu": "0",
        "uuid": CARD["uuid"],
        "name": CARD["name"],
        "pci": "0000:3b:00.0",
        "driver": "580.95.05",
        "vbios": "96.00.00.00.01",
    }
    counts = ("modelprobe_gpus_expected", "modelprobe_gpus_present")
    rest = [s for s in card.signals if s.metric not in counts]  # type: ignore[union-attr]
    assert all(s.labels[:2] == info.labels[:2] for s in rest)  # type: ignore[union-attr]


def test_every_sample_is_declared(card: View) -> None:
    """Names and labels are those of METRICS."""
    declared = {metric.name: set(metric.labels) for metric in card.collector.metrics}
    for sample in card.signals:
        assert {name for name, _ in sample.labels} <= declared[sample.metric]  # type: ignore[union-attr]


def test_the_stand_in_is_called_one(card: View) -> None:
    """The mark of the library reaches the collector, so that the page can say it."""
    assert card.collector.stand_in is True


def test_age_is_that_of_the_last_answer(card: View) -> None:
    """A card that answers is no older than a few intervals."""
    card.wait(lambda v: 0 <= (v.get("age_seconds") or 9) < 2.0)
