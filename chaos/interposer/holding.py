"""Holds a lock word that the kernel takes back when the holder ends, SIGKILL included.

This is what a robust mutex is made of (set_robust_list(2), the kernel's robust-futexes.rst),
without its pointers: a pthread mutex keeps those beside the word, in the page, where a target could
make an injector with more rights than its own write to any address. Here the list is private.
"""

from __future__ import annotations

import ctypes
import platform
import threading

from chaos.interposer.rules import Refused

_NUMBERS = {"x86_64": (273, 274, 324), "aarch64": (99, 100, 283)}  # asm/unistd.h
_EXPEDITED = 2  # MEMBARRIER_CMD_GLOBAL_EXPEDITED: milliseconds less than MEMBARRIER_CMD_GLOBAL


class _Node(ctypes.Structure):
    next: int
    _fields_ = (("next", ctypes.c_void_p),)


class _Head(ctypes.Structure):
    next: int
    offset: int
    pending: int
    _fields_ = (
        ("next", ctypes.c_void_p),
        ("offset", ctypes.c_long),
        ("pending", ctypes.c_void_p),
    )


def _numbers() -> tuple[int, int, int]:
    machine = platform.machine()
    if machine not in _NUMBERS:
        raise Refused(
            f"{machine} is not supported", "injector", f"run it on {' or '.join(_NUMBERS)}"
        )
    return _NUMBERS[machine]


def _call(*arguments: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(*arguments))


def barrier() -> None:
    """What this thread wrote is seen before what it reads next, which Python does not promise.

    The library's side of it are its sequentially consistent counters. Linux has it from 4.16 on.
    """
    _call(_numbers()[2], _EXPEDITED, 0, 0)


class _List(ctypes.Structure):
    """A robust list of one."""

    head: _Head
    node: _Node
    _fields_ = (("head", _Head), ("node", _Node))


def _everlasting() -> _List:
    """In memory that is never given back: the kernel reads it when Python is long over."""
    allocate = ctypes.CDLL(None).calloc
    allocate.restype, allocate.argtypes = ctypes.c_void_p, (ctypes.c_size_t, ctypes.c_size_t)
    place = allocate(1, ctypes.sizeof(_List))
    if not place:
        raise MemoryError
    return _List.from_address(place)


class Holding:
    """The main thread's hold on one lock word; the word is at ``address`` as long as it is held."""

    def __init__(self) -> None:
        self.thread = 0
        self._before: int = 0
        self._list: _List | None = None

    def take(self, address: int) -> int:
        """Tells the kernel of the word; the thread id that must be written there then.

        Replaces the robust list of this thread, which libc's own robust mutexes would be in: Python
        takes none. Raises `Refused` outside of the main thread, whose end is that of the process.
        """
        if threading.current_thread() is not threading.main_thread():
            raise Refused("is not the main thread", "thread that arms", "arm from the main thread")
        put, get, _ = _numbers()
        before, size = ctypes.c_void_p(), ctypes.c_size_t()
        if _call(get, 0, ctypes.byref(before), ctypes.byref(size)):
            raise OSError(ctypes.get_errno(), "get_robust_list")
        self._list = self._list or _everlasting()
        head, node = self._list.head, self._list.node
        head.next, node.next = ctypes.addressof(node), ctypes.addressof(head)
        head.offset = address - ctypes.addressof(node)
        if _call(put, ctypes.byref(head), ctypes.sizeof(head)):
            raise OSError(ctypes.get_errno(), "set_robust_list")
        self._before, self.thread = before.value or 0, threading.get_native_id()
        return self.thread

    def mine(self) -> bool:
        """Whether this thread holds; never in the child of a fork."""
        return self.thread != 0 and self.thread == threading.get_native_id()

    def give(self) -> None:
        """Takes the word off the list again; from the thread that took it."""
        if self.mine():
            size = ctypes.c_size_t(ctypes.sizeof(_Head))
            _call(_numbers()[0], ctypes.c_void_p(self._before or None), size)
        self.thread = 0
