"""The filters of system calls: what they decide on each machine, and what a process under them can
and cannot do.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.privileges import Capability
from sidecar.probed import seccomp
from sidecar.probed.kernel import Map
from sidecar.probed.wire import WireProbe
from tests.probed.children import in_child, refusal
from tests.probed.filters import decide

NONE: frozenset[Capability] = frozenset()
FOLLOWS = frozenset({Capability.PERFMON, Capability.SYS_PTRACE})
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
MACHINES = sorted(ARCH)
# By machine: asm/unistd_64.h and asm-generic/unistd.h.
CALLS = {
    "socket": (41, 198), "connect": (42, 203), "execve": (59, 221), "ptrace": (101, 117),
    "clone": (56, 220), "clone3": (435, 435), "openat": (257, 56), "openat2": (437, 437),
    "bpf": (321, 280), "ioctl": (16, 29), "perf_event_open": (298, 241), "setns": (308, 268),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "kill": (62, 129),
    "process_vm_readv": (310, 270), "pidfd_getfd": (438, 438), "sendto": (44, 206),
    "mount": (165, 40), "init_module": (175, 105), "capset": (126, 91), "read": (0, 63),
    "bind": (49, 200),
}  # fmt: skip
supported = pytest.mark.skipif(
    platform.machine() not in ARCH, reason=f"{platform.machine()} has no filter"
)


def allowed(machine: str, code: list[tuple[int, int, int, int]], call: str, *values: int) -> bool:
    """Whether a filter of that machine lets a call pass."""
    return decide(code, ARCH[machine], CALLS[call][sorted(ARCH)[::-1].index(machine)], *values)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("family", "passes"),
    [(socket.AF_UNIX, True), (socket.AF_PACKET, True), (socket.AF_INET, False),
     (socket.AF_INET6, False), (socket.AF_NETLINK, False), (40, False)],
)  # fmt: skip
def test_first_filter_by_family(machine: str, family: int, passes: bool) -> None:
    """From the start only Unix and packet sockets can be made."""
    code = seccomp.no_network(machine)
    assert allowed(machine, code, "socket", family) is passes
    assert allowed(machine, code, "socket", family | 1 << 32) is passes  # the kernel cuts it too


@pytest.mark.parametrize("machine", MACHINES)
def test_first_filter_and_rings(machine: str) -> None:
    """No ring of io_uring is had, since it makes sockets past the filter; all else goes on."""
    code = seccomp.no_network(machine)
    assert not allowed(machine, code, "io_uring_setup")
    assert all(allowed(machine, code, call) for call in ("bpf", "execve", "clone", "openat"))


@pytest.mark.parametrize("machine", MACHINES)
def test_second_filter_refuses_by_default(machine: str) -> None:
    """Once loaded, nothing new is made, nobody else is touched, nothing is written."""
    code = seccomp.loop_only(machine, NONE)
    for call in CALLS:
        values = (os.O_RDONLY, 5, os.O_WRONLY) if call in ("openat", "bpf", "ioctl") else ()
        assert allowed(machine, code, call, *values) is (call in ("sendto", "read")), call


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "flags",
    [os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_APPEND, os.O_TMPFILE | os.O_WRONLY],
)
def test_files_are_only_read(machine: str, flags: int) -> None:
    """A file is opened for reading and in no other way."""
    code = seccomp.loop_only(machine, FOLLOWS)
    assert allowed(machine, code, "openat", 0, 0, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    assert not allowed(machine, code, "openat", 0, 0, flags | os.O_CLOEXEC)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("keeps", [NONE, FOLLOWS])
def test_bpf_by_command(machine: str, keeps: frozenset[Capability]) -> None:
    """Maps are read and written; a program is attached where one follows; none is ever loaded."""
    code = seccomp.loop_only(machine, keeps)
    passing = {command for command in range(40) if allowed(machine, code, "bpf", command)}
    assert passing == {1, 2, 3, 15, 24} | ({17, 28} if keeps else set())


@pytest.mark.parametrize("machine", MACHINES)
def test_devices_are_followed(machine: str) -> None:
    """A socket that is there can be bound to a device, with an address of a packet socket's length,
    and a device's index can be asked; nothing of it is changed.
    """
    code = seccomp.loop_only(machine, NONE)
    assert [n for n in range(129) if allowed(machine, code, "bind", 0, 0, n)] == [20]
    asked = {what for what in range(0x8900, 0x8A00) if allowed(machine, code, "ioctl", 0, what)}
    assert asked == {0x8933}  # SIOCGIFINDEX


@pytest.mark.parametrize("machine", MACHINES)
def test_attaching_needs_the_capability(machine: str) -> None:
    """Perf events are for those who kept CAP_PERFMON, namespaces for CAP_SYS_ADMIN."""
    for keeps in (NONE, FOLLOWS, frozenset({Capability.SYS_ADMIN})):
        code = seccomp.loop_only(machine, keeps)
        perf = allowed(machine, code, "perf_event_open")
        assert (perf, allowed(machine, code, "ioctl", 0, 0x2401)) == (keeps == FOLLOWS,) * 2
        assert allowed(machine, code, "setns") is (Capability.SYS_ADMIN in keeps)


@pytest.mark.parametrize("machine", MACHINES)
def test_other_numbers_of_the_same_calls(machine: str) -> None:
    """32-bit numbers, and x32 ones on x86-64, are another way to the same calls: refused."""
    for code in (seccomp.no_network(machine), seccomp.loop_only(machine, NONE)):
        assert not decide(code, 0x40000003, 3)  # i386
        number = CALLS["read"][sorted(ARCH)[::-1].index(machine)]
        assert decide(code, ARCH[machine], number)
        assert not decide(code, ARCH[machine], number | 0x40000000)


def test_unknown_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose numbers are not known is left unconfined, and that is said."""
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    for confine in (seccomp.leave_network, lambda: seccomp.keep_to_loop(NONE)):
        with pytest.raises(seccomp.Unconfined, match="riscv64 is not a machine"):
            confine()


@supported
def test_kernel_that_refuses() -> None:
    """What the kernel does not take is Unconfined with its word, and the process goes on."""

    def refused() -> str:
        try:
            seccomp.install([(0xFFFF, 0, 0, 0)])
        except seccomp.Unconfined as error:
            return str(error)
        return "taken"

    assert in_child(refused) == "prctl(22): Invalid argument"


def _confined(
    act: Callable[[], object], keeps: frozenset[Capability] = NONE
) -> Callable[[], object]:
    def run() -> object:
        seccomp.leave_network()
        seccomp.keep_to_loop(keeps)
        return act()

    return run


def _call(name: str, *values: int) -> Callable[[], object]:
    """A bare system call."""
    column = 0 if platform.machine() == "x86_64" else 1

    def call() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syscall(CALLS[name][column], *(ctypes.c_long(value) for value in values)) < 0:
            raise OSError(ctypes.get_errno(), name)

    return call


REFUSED: dict[str, Callable[[], object]] = {
    "inet": lambda: socket.socket(socket.AF_INET),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "packet": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM),
    "unix": lambda: socket.socket(socket.AF_UNIX),
    "exec": lambda: os.execv("/bin/true", ["/bin/true"]),  # noqa: S606
    "fork": os.fork,
    "spawn": lambda: subprocess.run(["/bin/true"], check=True),
    "write": lambda: open("/dev/null", "w"),  # noqa: SIM115
    "create": lambda: os.open("/tmp/x", os.O_CREAT),  # noqa: S108  # it must not come to be
    "link": lambda: os.symlink("/dev/null", "/proc/self/x"),
    "kill": lambda: os.kill(os.getppid(), 0),
    "chmod": lambda: os.chmod("/dev/null", 0o666),  # noqa: S103
    "program": _call("bpf", 5, 0, 0),
    "map": _call("bpf", 0, 0, 0),
    "ptrace": _call("ptrace", 16, 1, 0, 0),
    "memory": _call("process_vm_readv", 1, 0, 0, 0, 0, 0),
    "perf": _call("perf_event_open", 0, 0, -1, -1, 0),
    "namespace": _call("setns", -1, 0),
    "ring": _call("io_uring_setup", 1, 0),
    "capset": _call("capset", 0, 0),
}


@supported
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_inside(name: str) -> None:
    """What a taken-over process would want fails with EPERM, which Python raises on the spot."""
    assert in_child(_confined(lambda: refusal(REFUSED[name]))) == "Operation not permitted"


def _reads_proc() -> object:
    return [
        Path("/proc/self/stat").read_text().split()[0] == str(os.getpid()),
        bool(os.listdir("/proc/self/fd")),
        os.readlink("/proc/self/exe").startswith("/"),
        Path("/proc/self/ns/net").stat().st_ino > 0,
        Path("/proc/self/status").read_text().split("Seccomp:\t")[1][0],
    ]


@supported
def test_proc_is_read() -> None:
    """Scanning /proc goes on, and says that a filter is in force."""
    assert in_child(_confined(_reads_proc)) == [True, True, True, True, "2"]


@supported
def test_memory_still_grows() -> None:
    """Some 100 MB come and go, by the heap and by mappings, with collections in between."""

    def grow() -> int:
        import gc

        held = [bytes(bytearray(size)) for size in (1 << 27, 1 << 20, 100, 70_000)]
        small = [[number] for number in range(300_011)]
        small.append(small)  # type: ignore[arg-type]  # a cycle
        with mmap.mmap(-1, 1 << 22) as page:
            page.resize(1 << 23)
            total = sum(len(one) for one in held) + len(page)
        del small, held
        gc.collect()
        return total

    assert in_child(_confined(grow)) == (1 << 27) + (1 << 20) + 70_100 + (1 << 23)


@supported
def test_clients_are_served(tmp_path: Path) -> None:
    """Connections are taken, told apart, read, written to until they are full, and let go."""

    def serve() -> object:
        from sidecar.probed.server import Server

        server = Server(tmp_path / "s", ())
        link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        link.connect(str(tmp_path / "s"))

        def act() -> object:
            waiting = select.poll()
            waiting.register(server.listener, select.POLLIN)
            ready = waiting.poll(1000)
            client = server.accept()
            assert client is not None
            waiting.register(client.connection, select.POLLOUT)
            while not client.flush():
                client.send(bytes(960))
            full = waiting.poll(0)
            link.recv(960)
            server.close()
            return [len(ready), len(full), (tmp_path / "s").exists()]

        return _confined(act)()

    assert in_child(serve) == [1, 0, False]


@supported
@pytest.mark.ebpf
def test_maps_are_read(prebuilt: WireProbe) -> None:
    """The maps and the ring of a loaded probe are read as before."""

    def read() -> object:
        port = struct.pack("=H", 7919)
        ports = Map(prebuilt._loaded.maps["ports"])
        ports.update(port, b"\1")
        found = ports.lookup(port)
        ports.delete(port)
        counted = [len(prebuilt.counters()) > 5, len(list(prebuilt.drain())) >= 0]
        prebuilt.sweep(0, 1, 1)
        return [found is not None and found[0], *counted]

    assert in_child(_confined(read)) == [1, True, True]


@supported
def test_a_traceback_comes_out() -> None:
    """Modules are imported late, and a bug ends the process with a traceback and status 1."""
    source = (
        "from sidecar.probed import seccomp\n"
        "seccomp.leave_network()\n"
        "seccomp.keep_to_loop(frozenset())\n"
        "import tokenize\n"
        "1 / 0\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
