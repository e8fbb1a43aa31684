"""Maps and rings by file descriptor: the few bpf(2) commands that probes need, and a ring reader.

They work the same whichever loader made the descriptors, and need no library. Layouts are those
of ``union bpf_attr`` in the kernel's ``include/uapi/linux/bpf.h``.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import socket
import struct
from collections.abc import Iterator

_SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
_LOOKUP, _UPDATE, _DELETE, _INFO, _LOOKUP_BATCH = 1, 2, 3, 15, 24
_PER_CPU_TYPES = (5, 6, 10)
_BUSY, _DISCARD = 1 << 31, 1 << 30
_PAGE = mmap.PAGESIZE

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_view = ctypes.pythonapi.PyMemoryView_FromMemory
_view.restype, _view.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]
_WRITABLE = 0x200  # PyBUF_WRITE


def _bpf(command: int, attr: bytes) -> None:
    """bpf(2); raises OSError. ``attr`` holds addresses of buffers that the caller keeps alive."""
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"bpf(2) has no known number on {platform.machine()}")
    buffer = ctypes.create_string_buffer(attr, len(attr))
    if _libc.syscall(number, command, buffer, len(attr)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"bpf({command}): {os.strerror(code)}")


def possible_cpus(text: str) -> int:
    """How many values a per-CPU map holds, from the text of ``cpu/possible`` (``0-3,8``)."""
    return int(text.strip().split(",")[-1].split("-")[-1]) + 1


def bind_device(packet_socket: int, protocol: int, index: int) -> None:
    """bind(2) of an AF_PACKET socket to a device by its index, or with 0 to all of them, which
    Python's own bind cannot: it looks a name up. See packet(7), ``struct sockaddr_ll``. Raises
    OSError.
    """
    address = struct.pack("=HHiHBB8x", socket.AF_PACKET, socket.htons(protocol), index, 0, 0, 0)
    if _libc.bind(packet_socket, address, len(address)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def bind_all_devices(packet_socket: int, protocol: int) -> None:
    """The same to no single device. Raises OSError."""
    bind_device(packet_socket, protocol, 0)


class Map:
    """One map; its sizes come from the kernel. For a per-CPU map ``value_bytes`` counts the
    values of all ``cpus``. Raises OSError when ``fd`` is no map.
    """

    def __init__(self, fd: int, cpus: int = 1) -> None:
        info = ctypes.create_string_buffer(32)
        _bpf(_INFO, struct.pack("=IIQ", fd, len(info), ctypes.addressof(info)))
        kind, _id, self.key_bytes, value, self.max_entries = struct.unpack_from("=5I", info.raw)
        self.fd = fd
        self.value_bytes = (value + 7 & ~7) * cpus if kind in _PER_CPU_TYPES else value
        self._key = ctypes.create_string_buffer(max(self.key_bytes, 1))
        self._value = ctypes.create_string_buffer(max(self.value_bytes, 1))

    def _element(self, command: int, key: bytes) -> None:
        self._key.raw = key
        value = 0 if command == _DELETE else ctypes.addressof(self._value)  # unused must be 0
        _bpf(command, struct.pack("=I4xQQQ", self.fd, ctypes.addressof(self._key), value, 0))

    def lookup(self, key: bytes) -> bytes | None:
        """The value, or None when the key is not there."""
        try:
            self._element(_LOOKUP, key)
        except FileNotFoundError:
            return None
        return self._value.raw

    def update(self, key: bytes, value: bytes) -> None:
        """Sets a value; raises OSError when the map is full."""
        self._value.raw = value
        self._element(_UPDATE, key)

    def delete(self, key: bytes) -> None:
        """Removes a key; one that is not there is no error."""
        try:
            self._element(_DELETE, key)
        except FileNotFoundError:
            return

    def batches(self, size: int) -> Iterator[tuple[bytes, memoryview, int]]:
        """All elements as ``(keys, values, count)`` a batch. The view is reused by the next one.
        Elements that change meanwhile may be missed or seen twice. Needs Linux 5.6.
        """
        keys = ctypes.create_string_buffer(self.key_bytes * size)
        values = ctypes.create_string_buffer(self.value_bytes * size)
        cursor = ctypes.create_string_buffer(max(self.key_bytes, 8))
        first, more = True, True
        while more:
            head = (0 if first else ctypes.addressof(cursor), ctypes.addressof(cursor))
            buffers = (ctypes.addressof(keys), ctypes.addressof(values))
            attr = struct.pack("=QQQQIIQQ", *head, *buffers, size, self.fd, 0, 0)
            count, more = self._batch(attr)
            first = False
            if count:
                yield keys.raw[: count * self.key_bytes], memoryview(values), count

    def _batch(self, attr: bytes) -> tuple[int, bool]:
        buffer = ctypes.create_string_buffer(attr, len(attr))
        number = _SYSCALL[platform.machine()]
        failed = _libc.syscall(number, _LOOKUP_BATCH, buffer, len(attr)) < 0
        code = ctypes.get_errno() if failed else 0
        if code not in (0, errno.ENOENT):
            raise OSError(code, f"bpf lookup batch: {os.strerror(code)}")
        return struct.unpack_from("=I", buffer.raw, 32)[0], not failed


class _Pages:
    """A shared mapping. Python's own keeps a copy of the descriptor open; this one does not."""

    def __init__(self, fd: int, size: int, prot: int, offset: int) -> None:
        self._address = _libc.mmap(None, size, prot, mmap.MAP_SHARED, fd, offset)
        if self._address == ctypes.c_void_p(-1).value:
            code = ctypes.get_errno()
            raise OSError(code, f"mmap: {os.strerror(code)}")
        self._size = size
        self.bytes: memoryview = _view(self._address, size, _WRITABLE)

    def close(self) -> None:
        """Unmaps; views of it must be released before."""
        self.bytes.release()
        _libc.munmap(self._address, self._size)


class Ring:
    """The consumer of a BPF ring buffer (``kernel/bpf/ringbuf.c``): one page with our position,
    one with the producer's, then the data, mapped twice so that no record is ever split.

    Records are read on a timer, without wake-ups: these cost more than the records themselves.
    """

    def __init__(self, fd: int, size: int) -> None:
        self._mask = size - 1
        self._ours = _Pages(fd, _PAGE, mmap.PROT_READ | mmap.PROT_WRITE, 0)
        self._theirs = _Pages(fd, _PAGE + 2 * size, mmap.PROT_READ, _PAGE)
        self._data = self._theirs.bytes
        # 8-byte loads and stores through a view are single machine accesses. The kernel orders its
        # side; between our accesses lie thousands of instructions of the interpreter.
        self._consumed = self._ours.bytes.cast("Q")
        self._produced = self._data[:_PAGE].cast("Q")

    def drain(self) -> Iterator[bytes]:
        """The records that are complete. A record is freed once the next one is asked for."""
        position = self._consumed[0]
        while position < self._produced[0]:
            at = _PAGE + (position & self._mask)
            (length,) = struct.unpack_from("=I", self._data, at)
            if length & _BUSY:
                return
            size = length & ~_DISCARD
            if not length & _DISCARD:
                yield self._data[at + 8 : at + 8 + size].tobytes()
            position += (size + 8 + 7) & ~7
            self._consumed[0] = position

    def close(self) -> None:
        """Unmaps; the descriptor stays the caller's."""
        self._consumed.release()
        self._produced.release()
        self._ours.close()
        self._theirs.close()
