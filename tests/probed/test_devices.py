"""Which devices get a packet socket, by what is listed; with real ones: test_devices_real.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.probed import devices
from sidecar.probed.devices import Devices
from sidecar.probed.wire import WireProbe

LO = 1
HEADS = b"Inter-|   Receive  |  Transmit\n face |bytes    packets|bytes    packets\n"


def test_names() -> None:
    """A name is what stands before the colon, also where no space follows it."""
    text = HEADS + b"    lo: 1 2\n eth0:17167567442  453602\nveth1234567890a: 0 0\n"
    assert list(devices.names(text)) == [b"lo", b"eth0", b"veth1234567890a"]
    assert list(devices.names(HEADS)) == []


def _listing(proc: Path, *lines: str) -> None:
    folder = proc / "thread-self" / "net"
    folder.mkdir(parents=True, exist_ok=True)
    rows = "".join(f"{line}:       0       0\n" for line in lines)
    (folder / "dev").write_bytes(HEADS + rows.encode())


@pytest.mark.ebpf
def test_a_device_that_cannot_be_had(prebuilt: WireProbe, tmp_path: Path) -> None:
    """One that cannot be bound at one look may have just gone; at two in a row, one socket takes
    all: it is not left out.
    """
    _listing(tmp_path, "    lo")
    found = Devices(prebuilt.program, tmp_path)
    for lines in (["lo", "gone0"], ["lo"], ["lo", "gone0"], ["lo", "gone1"]):
        _listing(tmp_path, *lines)
        found.follow()
        assert (found.reason, found.indexes) == ("", {LO})
    found.follow()
    found.close()
    assert found.reason == "one socket for all devices: gone1 cannot have one: No such device"


@pytest.mark.ebpf
def test_no_list_of_devices(prebuilt: WireProbe, tmp_path: Path) -> None:
    """Without a list of devices one socket takes all, from the start or from then on."""
    found = Devices(prebuilt.program, tmp_path)
    found.close()
    reason = "one socket for all devices: devices cannot be listed: "
    assert found.reason == f"{reason}No such file or directory"
