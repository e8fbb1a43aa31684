"""Who holds memory: host pids, container pids, MPS, and lists that are scrambled."""

from tests.nvml.conftest import Machine

HELD = 64_392_000_000


def test_a_host_pid_in_a_container_is_not_attributable(machine: Machine) -> None:
    """Our namespace has another pid 546113, or none: its bytes stay, nobody is named."""
    machine.set("process", f"546113 memory {HELD} name python3")
    proc = machine.proc(_546113__status="NSpid:\t546113\n")
    (machine.folder / "proc" / "self" / "ns" / "pid").unlink()
    (machine.folder / "proc" / "self" / "ns" / "pid").symlink_to("pid:[4026532999]")
    view = machine.view(proc=proc).wait(lambda v: v.all("process_memory_bytes"))
    assert view.get("process_memory_bytes", pid="546113", container_pid="") == HELD
    assert view.get("processes_unattributed") == 1


def test_a_visible_host_pid_gives_the_containers(machine: Machine) -> None:
    """With the host's pids in sight, NSpid names the process as its container does."""
    machine.set("process", f"546113 memory {HELD} name python3")
    proc = machine.proc(_546113__status="Name:\tpython3\nNSpid:\t546113\t77\n")
    view = machine.view(proc=proc).wait(lambda v: v.all("process_memory_bytes"))
    assert view.get("process_memory_bytes", pid="546113", container_pid="77") == HELD
    assert view.get("processes_unattributed") == 0


def test_memory_that_is_not_available_is_absent(machine: Machine) -> None:
    """All bits set is no amount; the process still counts."""
    machine.set("process", "4242 memory unavailable name python3")
    view = machine.view().wait(lambda v: v.get("processes", kind="compute") == 1)
    assert view.all("process_memory_bytes") == []


def test_mps_clients_are_listed_once(machine: Machine) -> None:
    """A client in two lists is one process; the lists are counted apart."""
    machine.set(
        "process",
        [
            "11 memory 1GiB name nvidia-cuda-mps-server",
            "4241 memory 2GiB name python3 type mps",
            "4242 memory 3GiB name python3 type mps",
            "4242 memory 3GiB name python3",
        ],
    )
    view = machine.view().wait(lambda v: v.get("processes", kind="mps") == 2)
    assert view.get("processes", kind="compute") == 2
    assert {dict(s.labels)["pid"] for s in view.all("process_memory_bytes")} == {
        "11",
        "4241",
        "4242",
    }


def test_a_list_in_another_struct_falls_back(machine: Machine) -> None:
    """Rows of 32 bytes read as 24 scramble pids: the older call is used, nothing wrong leaves."""
    machine.update(
        {
            "process": [f"{pid} memory 1GiB name python3" for pid in (4001, 4003, 4007)],
            "process.layout.v3": 32,
        }
    )
    view = machine.view().wait(lambda v: len(v.all("process_memory_bytes")) == 3)
    assert {dict(s.labels)["pid"] for s in view.all("process_memory_bytes")} == {
        "4001",
        "4003",
        "4007",
    }
    assert view.get("rejected_values_total", field="processes") == 1


def test_scrambled_lists_of_both_versions_give_nothing(machine: Machine) -> None:
    """Better no processes than wrong ones."""
    machine.update(
        {
            "process": [f"{pid} memory 1GiB name python3" for pid in (4001, 4003, 4007)],
            "process.layout.v3": 32,
            "process.layout.v2": 32,
        }
    )
    view = machine.view().wait(
        lambda v: (v.get("rejected_values_total", field="processes") or 0) >= 2
    )
    assert view.all("process_memory_bytes") == []


def test_a_shared_card_is_counted_once(machine: Machine) -> None:
    """Time slicing: one utilisation and one memory figure, however many processes share them."""
    machine.update(
        {
            "utilization.gpu": 99,
            "process": [f"{pid} memory 3966MiB name python3" for pid in (4001, 4003, 4007, 4013)],
        }
    )
    view = machine.view().wait(lambda v: v.get("processes", kind="compute") == 4)
    assert [s.value for s in view.all("utilization_ratio", kind="gpu")] == [0.99]
    assert [s.value for s in view.all("memory_used_bytes")] == [4 * 3966 * 2**20]
