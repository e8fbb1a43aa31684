"""A card cut into instances, and cut anew while we read it."""

from tests.nvml.conftest import Machine, View

GIB = 1 << 30
TWO = ["1 memory 20GiB slices 2 sm 32 profile 14", "2 memory 10GiB slices 1 sm 16 profile 19"]


def migs(view: View, name: str) -> dict[str, float]:
    return {dict(s.labels)["mig"]: s.value for s in view.all(name) if "mig" in dict(s.labels)}


def test_instances_have_figures_of_their_own(machine: Machine) -> None:
    """Memory and GPM by GPU instance; whole-card utilisation is not supported, not 0."""
    machine.update({"mig": 1, "mig.instance": TWO, "gpm.2.1": 80.0, "gpm.2.2": 5.0})
    view = machine.view().wait(lambda v: len(migs(v, "sm_active_ratio")) == 2)
    assert migs(view, "mig_memory_total_bytes") == {"1": 20 * GIB, "2": 10 * GIB}
    assert migs(view, "sm_active_ratio") == {"1": 0.8, "2": 0.05}
    assert view.all("utilization_ratio", kind="gpu") == []
    assert view.get("collector_field_supported", field="utilization") == 0
    assert view.get("mig_mode") == 1
    info = {dict(s.labels)["mig"]: dict(s.labels) for s in view.all("mig_info")}
    assert info["1"]["profile"] == "2g.20gb"
    assert info["1"]["mig_uuid"].startswith("MIG-")
    # A sum over cards must not count an instance's memory again.
    assert len(view.all("memory_total_bytes")) == 1


def test_processes_belong_to_their_instance(machine: Machine) -> None:
    """A process is listed under the instance it runs in."""
    machine.update(
        {"mig": 1, "mig.instance": TWO, "process": "4242 memory 3GiB name python3 gi 2 ci 0"}
    )
    view = machine.view().wait(lambda v: v.all("process_memory_bytes"))
    assert view.get("process_memory_bytes", pid="4242", mig="2") == 3 * GIB


def test_a_new_layout_while_running(machine: Machine) -> None:
    """Handles turn stale: no crash, the old instances go, the new ones come."""
    machine.update({"mig": 1, "mig.instance": TWO})
    view = machine.view().wait(lambda v: len(migs(v, "mig_memory_total_bytes")) == 2)
    child = view.collector._child
    machine.set("mig.instance", "5 memory 40GiB slices 4 sm 64 profile 5")
    view.wait(lambda v: migs(v, "mig_memory_total_bytes") == {"5": 40 * GIB})
    machine.update({"mig": 0})
    view.wait(lambda v: v.get("mig_mode") == 0 and migs(v, "mig_memory_total_bytes") == {})
    view.wait(lambda v: v.all("utilization_ratio", kind="gpu"), "no longer unsupported")
    assert view.collector._child is child
    assert view.state(0) == "ok"


def test_a_stale_handle_that_says_lost_is_not_a_lost_card(machine: Machine) -> None:
    """What an instance's handle answers says nothing of the card."""
    machine.update({"mig": 1, "mig.instance": TWO, "mig.stale": 15})
    view = machine.view().wait(lambda v: len(migs(v, "mig_memory_total_bytes")) == 2)
    machine.set("mig.instance", TWO[:1])
    view.wait(lambda v: migs(v, "mig_memory_total_bytes") == {"1": 20 * GIB})
    assert view.state(0) == "ok"
