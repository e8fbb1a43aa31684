"""Device memory: the two calls, and devices that have none of their own."""

import pytest

from sidecar.observe.rules import complete
from sidecar.state import State
from tests.nvml.conftest import Machine, View

TOTAL, FREE, RESERVED = 24_146_608_128, 23_604_690_944, 540_868_608
MEMINFO = "MemTotal:       127600748 kB\nMemFree:  90000000 kB\nMemAvailable:   118566368 kB\n"


def state(view: View) -> str:
    found = [dict(s.labels)["state"] for s in view.all("memory_state") if s.value]
    return found[0] if found else ""


def test_v2_shows_what_the_driver_keeps_apart(machine: Machine) -> None:
    """An idle card uses 1 MiB, not 517: reserved memory is not somebody's use."""
    machine.update(
        {"memory.total": TOTAL, "memory.reserved": RESERVED, "memory.used_base": 1 << 20}
    )
    view = machine.view()
    assert view.get("memory_used_bytes", api="v2") == 1 << 20
    assert view.get("memory_free_bytes") == FREE


@pytest.mark.parametrize("code", [13, 3, 25, 999])
def test_v1_where_v2_fails(machine: Machine, code: int) -> None:
    """An old driver, or a v2 that exists and fails: v1's figures, and they say so."""
    machine.update(
        {"memory.total": TOTAL, "memory.reserved": RESERVED, "memory.used_base": 1 << 20}
    )
    machine.set("fail.nvmlDeviceGetMemoryInfo_v2", code)
    view = machine.view().wait(lambda v: v.get("memory_api", api="v1") == 1)
    assert view.get("memory_used_bytes", api="v1") == TOTAL - FREE
    assert view.all("memory_used_bytes", api="v2") == []
    assert view.all("memory_reserved_bytes") == []
    assert state(view) == "ok"


def test_the_choice_of_the_call_is_made_once(machine: Machine) -> None:
    """After a fallback v2 is not tried on each poll: used must not change its meaning."""
    machine.set("fail.nvmlDeviceGetMemoryInfo_v2", "999 times 1")
    view = machine.view().wait(lambda v: v.get("memory_api", api="v1") == 1)
    good = view.get("age_seconds")
    view.wait(lambda v: (v.get("age_seconds") or 0) != good)
    assert view.all("memory_api", api="v2") == []


def test_a_driver_that_learns_v2_is_news_to_nobody(machine: Machine) -> None:
    """FC-10: used falls by 516 MiB at a restart under a new driver, without a process. The two
    figures are series of their own, and nothing is said of a leak or a drop.
    """
    machine.update(
        {"memory.total": TOTAL, "memory.reserved": RESERVED, "memory.used_base": 1 << 20}
    )
    machine.set("fail.nvmlDeviceGetMemoryInfo_v2", 13)
    old = machine.view().wait(lambda v: v.get("memory_api", api="v1") == 1)
    machine.set("fail.nvmlDeviceGetMemoryInfo_v2", 0)
    new = machine.view().wait(lambda v: v.get("memory_api", api="v2") == 1)
    state = State(started=0.0)
    for at, view in ((1.0, old), (2.0, new)):
        state.apply("nvml", view.signals, at)
        snapshot = complete(state.snapshot((), at))
        assert snapshot.observations == ()
        assert snapshot.events == ()
    (used,) = new.all("memory_used_bytes")
    assert dict(used.labels)["api"] == "v2"
    assert old.get("memory_used_bytes", api="v1") == TOTAL - FREE


def test_unified_memory_that_is_not_supported(machine: Machine) -> None:
    """Both calls refuse: no total and no 0/0, but the card and its processes stay."""
    machine.update(
        {
            "memory.v1.total": "unsupported",
            "memory.v2.total": "unsupported",
            "process": "4242 memory 89.276GiB name python3",
            "power": 11_170,
            "temperature": 35,
        }
    )
    view = machine.view().wait(lambda v: v.all("process_memory_bytes"))
    assert state(view) == "unified"
    for name in ("memory_total_bytes", "memory_used_bytes", "memory_free_bytes"):
        assert view.all(name) == []
    assert view.get("process_memory_bytes", pid="4242") == pytest.approx(89.276 * 2**30)
    assert view.get("power_watts") == pytest.approx(11.17)


def test_unified_memory_that_shows_the_hosts(machine: Machine) -> None:
    """A total like MemTotal and the host's use as its own: recognised, no ratio possible."""
    total, used = 127_600_748 * 1024, (127_600_748 - 118_566_368) * 1024
    machine.update({"memory.total": total, "memory.used_base": used})
    view = machine.view(proc=machine.proc(meminfo=MEMINFO))
    assert state(view) == "unified"
    assert view.all("memory_total_bytes") == []


def test_a_card_as_large_as_the_host_is_not_unified(machine: Machine) -> None:
    """The total alone is a coincidence."""
    machine.update({"memory.total": 127_600_748 * 1024, "memory.used_base": 60 << 30})
    assert state(machine.view(proc=machine.proc(meminfo=MEMINFO))) == "ok"


def test_a_known_integrated_device_is_unified(machine: Machine) -> None:
    """The name decides where the figures look plausible."""
    machine.set("name", "NVIDIA GB10")
    assert state(machine.view()) == "unified"


def test_figures_that_do_not_add_up_are_not_shown(machine: Machine) -> None:
    """Used and free are 12 % of the total: neither 94 % free nor 5 % used."""
    for version in (1, 2):
        machine.update(
            {
                f"memory.v{version}.total": 128_501_256_192,
                f"memory.v{version}.used": 6_910_320_640,
                f"memory.v{version}.free": 7_976_902_656,
            }
        )
    view = machine.view()
    assert state(view) == "inconsistent"
    assert view.all("memory_used_bytes") == view.all("memory_free_bytes") == []
    assert view.state(0) == "ok"
