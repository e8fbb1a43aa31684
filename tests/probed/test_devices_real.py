"""The packet sockets of real devices: what they see, and what becomes of them as devices come and
go.
"""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest

from sidecar.probed.devices import MOST, SPARES, Devices
from sidecar.probed.wire import WireProbe
from sidecar.probed.wire_table import port_of
from sidecar.signals import Absence, End, NoData
from tests.probed import links
from tests.probed.links import across, alone, devices_of, ip, link_to, packet_sockets, sent
from tests.probed.segments import ACK, DONE, HEAD, LAST, POST, Tap, chunk, token
from tests.probed.sockets import Pair, connected, listening
from tests.probed.test_daemon import Sidecar, running, until
from tests.probed.test_life import told
from tests.probed.test_namespaces import _IP, elsewhere, needs_namespaces

pytestmark = [
    pytest.mark.ebpf,
    needs_namespaces,
    pytest.mark.skipif(not Path(_IP).exists(), reason="ip is not installed: apt install iproute2"),
    pytest.mark.skipif(not shutil.which("nsenter"), reason="nsenter is missing: util-linux"),
]
LO = 1


def asked(pair: Pair, tokens: int = 7) -> None:
    """One request with a stream of so many token events."""
    pair.ask(POST)
    pair.answer(HEAD)
    for _ in range(tokens):
        pair.answer(chunk(token()))
    pair.answer(chunk(DONE) + LAST)


def over_lo(probe: WireProbe, count: int = 13) -> list[int]:
    """Requests on lo, each of 7 events, and their records: how many packets were read, were sent,
    how many requests and events were counted.
    """
    before, sent_before = probe.counters(), sent("lo")
    with listening() as listener:
        probe.watch([listener.getsockname()[1]])
        with connected(listener) as pair:
            for _ in range(count):
                asked(pair)
    ended: list[int] = []

    def all_ended() -> bool:
        ended.extend(port_of(record) for record in probe.drain())
        return len(ended) == count

    until(all_ended)
    counted = [b - a for a, b in zip(before, probe.counters(), strict=True)]
    return [*counted[:3], sent("lo") - sent_before]


def test_lo_is_read_once() -> None:
    """On lo, where each packet passes twice, the program reads each once: as many as lo has sent,
    and a request counts once.
    """

    def act() -> object:
        probe = WireProbe("prebuilt")
        assert packet_sockets().count(LO) == 1
        packets, requests, events, all_sent = over_lo(probe)
        return [packets - all_sent, requests, events, probe.because]

    packets, requests, events, because = alone(act)
    assert (packets, requests, events, because) == (0, 13, 13 * 7, "")


def test_second_pass(tap: Tap) -> None:
    """A packet on its way in on lo, to lo's address, is not read: it was read on its way out."""
    client, _ = tap.connect(opened=False)
    frame = client.segment(POST, ACK)
    tap.run(bytes(6) + frame[6:])
    assert tap.counted().packets == 0
    tap.run(frame)
    assert tap.counted().packets == 1


def test_many_devices() -> None:
    """Where there are too many devices one socket takes all, which is said, and counts the same."""

    def act() -> object:
        ip(*(f"link add a{i} type veth peer name b{i}" for i in range(MOST // 2)))
        probe = WireProbe("prebuilt")
        sockets = packet_sockets()
        packets, requests, events, all_sent = over_lo(probe)
        return [sockets, packets - all_sent, requests, events, probe.because]

    sockets, packets, requests, events, because = alone(act)
    assert (sockets, packets, requests, events) == ([0], 0, 13, 13 * 7)
    assert because == "one socket for all devices: 65 devices, 64 can have one each"


def test_veth_and_bridge() -> None:
    """A request from another namespace counts once, also where each packet is seen at a bridge and
    at a device in it, and nothing counts as sent again.
    """

    def act() -> object:
        with elsewhere() as pid:
            index = link_to(pid)
            ip(
                f"addr del {links.HERE}/24 dev side",
                "link add over type bridge",
                "link set side master over",
                f"addr add {links.HERE}/24 dev over",
                "link set over up",
            )
            probe = WireProbe("prebuilt")
            assert {index, socket.if_nametoindex("over")} <= set(packet_sockets())
            with across(pid) as pair:
                probe.watch([pair.port])
                for _ in range(11):
                    asked(pair)
                until(lambda: len(list(probe.drain())) > 0)
                counts = probe.tcp()[pair.port]
                seen = dict(zip(("packets", "requests", "events"), probe.counters(), strict=False))
            again = counts.retransmits_sent, counts.retransmits_received, counts.reordered
            return [seen["requests"], seen["events"], seen["packets"] > 2 * 11 * 8, sum(again)]

    assert alone(act) == [11, 11 * 7, True, 0]


def test_devices_of_a_confined_probed(tmp_path: Path) -> None:
    """A veth that comes after probed has given up its rights is watched, also after it was down,
    and one of the same name that comes after that one has gone.
    """

    def act() -> object:
        path, found = tmp_path / "s", []
        with elsewhere() as pid, running(path) as probed:
            client = Sidecar(path)
            client.watch(8009)
            client.loaded()
            until(lambda: told(probed.pid, "Seccomp_filters") == "2")
            assert told(probed.pid, "CapPrm") == "0" * 16
            for _ in range(2):
                index = link_to(pid)
                until(lambda index=index: index in packet_sockets())  # type: ignore[misc]
                for state in ("up", "down"):
                    with across(pid, 8009) as pair:
                        asked(pair)
                    request = client.request()
                    found.append([request.end.value, request.token_events])
                    ip(f"link set side {state}", "link set side up")
                ip("link del side")
                until(lambda index=index: index not in packet_sockets())  # type: ignore[misc]
            status = client.status()
            found.append([status.absence, "one socket" in status.reason])
        return found

    assert alone(act) == [[End.COMPLETE.value, 7]] * 4 + [["", False]]


def test_another_of_the_same_index() -> None:
    """A device that has gone and one with its index and name that has come between two looks are
    told apart: the new one is watched.
    """

    def act() -> object:
        probe = WireProbe("prebuilt")
        made = "link add one index 89 type veth peer name two index 97"
        seen = []
        up = ("link set one up", "link set two up")
        for commands in ((made,), up, ("link del one", made, *up)):
            ip(*commands)
            devices_of(probe).follow()
            seen.append([packet_sockets().count(index) for index in (89, 97)])
        return [seen, probe.because]

    assert alone(act) == [[[0, 0], [1, 1], [1, 1]], ""]


def test_sockets_are_used_anew() -> None:
    """Devices that come and go for long take no more than the spare sockets: each is used again."""

    def act() -> object:
        probe = WireProbe("prebuilt")
        for _ in range(SPARES + 3):
            ip("link add one type veth peer name two")
            devices_of(probe).follow()
            here = {LO, *(socket.if_nametoindex(name) for name in ("one", "two"))}
            assert here <= devices_of(probe).indexes
            ip("link del one")
            devices_of(probe).follow()
        return [probe.because, len(devices_of(probe).sockets)]

    because, sockets = alone(act)
    assert because == ""
    assert sockets <= 1 + SPARES + 1 + 4  # tunnels' own devices of some kernels


def test_more_devices_than_spares() -> None:
    """When no spare socket is left one takes all, which is said, and nothing is missed; the others
    are closed one by one.
    """

    def act() -> object:
        probe = WireProbe("prebuilt")
        ip(*(f"link add a{i} type veth peer name b{i}" for i in range(SPARES // 2 + 1)))
        devices_of(probe).follow()
        reason, before = probe.because, len(devices_of(probe).sockets)
        requests = over_lo(probe)[1:3]
        for _ in range(before):
            devices_of(probe).follow()
        return [reason, *requests, packet_sockets(), *over_lo(probe)[1:3]]

    reason, *rest = alone(act)
    assert reason.startswith("one socket for all devices: no spare one is left for ")
    assert rest == [13, 13 * 7, [0], 13, 13 * 7]


def test_sweep_looks_for_devices() -> None:
    """A sweep takes up what came since the last one."""

    def act() -> object:
        probe = WireProbe("prebuilt")
        ip("link add one type veth peer name two")
        probe.sweep(1, 1, 1)
        return socket.if_nametoindex("two") in devices_of(probe).indexes

    assert alone(act) is True


def test_nothing_is_left(tmp_path: Path) -> None:
    """Closing ends every socket, spare ones too, and leaves no descriptor."""

    def act() -> object:
        descriptors = Path("/proc/self/fd")
        before = len(list(descriptors.iterdir()))
        probe = WireProbe("prebuilt")
        during = len(packet_sockets())
        probe.close()
        return [during > SPARES, packet_sockets(), len(list(descriptors.iterdir())) - before]

    assert alone(act) == [True, [], 0]


def test_a_program_that_is_none() -> None:
    """What the kernel does not take as a filter is said, and no socket is left."""

    def act() -> object:
        with open("/dev/null") as null, pytest.raises(NoData) as caught:
            Devices(null.fileno())
        return [caught.value.absence.value, caught.value.reason, packet_sockets()]

    absence, reason, left = alone(act)
    assert (absence, left) == (Absence.UNSUPPORTED.value, [])
    assert reason.startswith("the tap cannot be attached: ")


def test_killed_in_a_namespace_of_its_own(tmp_path: Path) -> None:
    """A probed that is killed leaves no packet socket, bound or spare."""

    def act() -> object:
        path = tmp_path / "s"
        with running(path) as probed:
            client = Sidecar(path)
            client.watch(9)
            client.loaded()
            during = packet_sockets()
            probed.kill()
            until(lambda: packet_sockets() == [])
            return [during.count(LO), during.count(0), len(during) > SPARES]

    assert alone(act) == [1, 0, True]
