"""What a card does not have, what a driver gets wrong, and what is not believed."""

import pytest

from tests.nvml.conftest import Machine


def test_not_supported_is_no_sample_and_no_zero(machine: Machine) -> None:
    """Fields refused with NOT_SUPPORTED are absent and named; the rest of the card goes on."""
    machine.update(
        {
            "power": "unsupported",
            "fan": "unsupported",
            "gpm": 0,
            "ecc.mode": 0,
            **{f"field.{number}": "unsupported" for number in (3, 4, 5, 6)},
        }
    )
    view = machine.view().wait(lambda v: v.get("mig_mode") is not None)
    for name in ("power_watts", "fan_speed_ratio", "sm_active_ratio", "ecc_errors_total"):
        assert view.all(name) == []
    for field in ("power", "fan", "gpm", "ecc", "retired_pages"):
        assert view.get("collector_field_supported", field=field) == 0, field
    assert view.get("collector_field_supported", field="temperature") == 1
    assert view.get("temperature_celsius", sensor="gpu") is not None


def test_an_unsupported_field_is_asked_again_rarely(machine: Machine) -> None:
    """A driver update may bring a field: after its time it is asked again, not each poll."""
    machine.set("power", "unsupported")
    view = machine.view(unsupported=1.0)
    machine.set("power", 77_000)
    view.refresh()
    assert view.get("power_watts") is None
    view.wait(lambda v: v.get("power_watts") == 77)
    view.wait(lambda v: v.get("collector_field_supported", field="power") == 1)


def test_a_field_that_the_batch_refuses_has_its_own_call(machine: Machine) -> None:
    """Where field values lack the energy, the getter of old still gives it."""
    machine.update({"field.83": "unsupported", "energy": 7_000})
    machine.view().wait(lambda v: v.get("energy_joules_total") == 7)


def test_a_driver_without_field_values(machine: Machine) -> None:
    """FUNCTION_NOT_FOUND for the whole batch: counters come from their getters."""
    machine.update({"fail.nvmlDeviceGetFieldValues": 13, "pcie.replay": 5})
    machine.view().wait(lambda v: v.get("pcie_replays_total") == 5)


def test_a_driver_that_knows_throttle_reasons_only(machine: Machine) -> None:
    """Before R535 the call has its old name."""
    machine.update({"fail.nvmlDeviceGetCurrentClocksEventReasons": 13, "throttle.reasons": 8})
    view = machine.view()
    assert view.get("throttle_active", reason="hw_slowdown") == 1


@pytest.mark.parametrize(
    ("key", "value", "name", "field"),
    [
        ("power", 4294967295, "power_watts", "power"),
        ("utilization.gpu", 101, "utilization_ratio", "utilization"),
        ("temperature", 4294967295, "temperature_celsius", "temperature"),
        ("energy", 18446744073709551615, "energy_joules_total", "energy"),
        ("energy", 9223372036854775792, "energy_joules_total", "energy"),
        ("pcie.tx_bytes", 9223372036854775794, "pcie_bytes_total", "pcie_bytes"),
        ("gpm.2", 140737488355328.0, "sm_active_ratio", "gpm"),
        ("clock.sm", 99_999, "clock_hertz", "clocks"),
    ],
)
def test_sentinels_never_leave(
    machine: Machine, key: str, value: float, name: str, field: str
) -> None:
    """A blank or impossible value is counted and not exported."""
    machine.set(key, value)
    view = machine.view().wait(lambda v: v.get("rejected_values_total", field=field))
    kinds = {"utilization_ratio": {"kind": "gpu"}, "clock_hertz": {"clock": "sm"}}
    labels = kinds.get(name, {"sensor": "gpu"} if name.startswith("temp") else {})
    labels = {"direction": "tx"} if name == "pcie_bytes_total" else labels
    assert view.get(name, **labels) is None


def test_a_failing_field_is_counted_and_comes_back(machine: Machine) -> None:
    """One call that fails is not the card's failure: an error is counted, the state stays ok."""
    machine.set("fail.nvmlDeviceGetPowerUsage", "999 times 1")
    view = machine.view().wait(lambda v: v.get("call_errors_total", field="power") == 1)
    assert view.state(0) == "ok"
    view.wait(lambda v: v.get("power_watts") is not None)


def test_a_zero_beside_a_sibling_that_moves_is_withheld(machine: Machine) -> None:
    """GPM all 0 while utilisation is high: flagged by name, not believed."""
    machine.update({"utilization.gpu": 97, **{f"gpm.{n}": 0 for n in (2, 3, 5, 10)}})
    view = machine.view(middle=0.5)
    view.wait(lambda v: v.get("suspect_field", field="sm_active") == 1)
    assert view.get("sm_active_ratio") is None
    assert view.get("utilization_ratio", kind="gpu") == 0.97


def test_an_idle_card_is_not_suspect(machine: Machine) -> None:
    """All at 0 together is idleness, and zeros are exported."""
    machine.update({"utilization.gpu": 0, **{f"gpm.{n}": 0 for n in (2, 3, 5, 10)}})
    view = machine.view().wait(lambda v: v.get("sm_active_ratio") == 0)
    assert view.all("suspect_field") == []


def test_utilisation_of_zero_while_the_sms_are_busy_is_withheld(machine: Machine) -> None:
    """The other way round the utilisation is the suspect."""
    machine.update({"utilization.gpu": 0, "gpm.2": 80.0})
    view = machine.view().wait(lambda v: v.get("suspect_field", field="utilization") == 1)
    assert view.get("utilization_ratio", kind="gpu") is None
