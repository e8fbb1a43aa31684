"""Functions of an ELF file: found where the linker puts them, and hostile files refused."""

from __future__ import annotations

import ctypes
import os
import random
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.probed import elf
from sidecar.probed.wire_tls_maps import libraries, opened

NAMES = ("SSL_read", "SSL_write", "SSL_free", "SSL_no_such_function")


@pytest.fixture
def library() -> Iterator[int]:
    """The libssl that this very process has mapped."""
    assert ssl.OPENSSL_VERSION
    found = libraries(os.getpid())[0]
    if "libssl" not in found.path:
        pytest.skip("this Python has OpenSSL built in")
    fd = opened(os.getpid(), found)
    yield fd
    os.close(fd)


@pytest.fixture
def copy(tmp_path: Path, library: int) -> Path:
    """A copy of it, to be damaged."""
    path = tmp_path / "libssl.so"
    path.write_bytes(os.pread(library, os.fstat(library).st_size, 0))
    return path


def read(path: Path) -> elf.Functions:
    """The functions of a file."""
    with open(path, "rb") as file:
        return elf.functions(file.fileno(), NAMES)


def test_as_the_linker_finds_them(library: int) -> None:
    """The bytes at each offset are those at the address that the dynamic linker gives."""
    mapping = libraries(os.getpid())[0]
    linked = ctypes.CDLL(mapping.path)
    found = elf.functions(library, NAMES)
    assert set(found.offsets) == set(NAMES[:3])
    for name, offset in found.offsets.items():
        address = ctypes.cast(getattr(linked, name), ctypes.c_void_p).value
        assert address == mapping.start + offset - mapping.offset
        assert found.contains(offset)


def test_nothing_executable_elsewhere(library: int) -> None:
    """An offset in the file's header lies in no code."""
    assert not elf.functions(library, NAMES).contains(0)


@pytest.mark.parametrize("size", [0, 63, 64, 101, 5003])
def test_cut_short(copy: Path, size: int) -> None:
    """A file that ends too early is refused."""
    os.truncate(copy, size)
    with pytest.raises(elf.Unreadable):
        read(copy)


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (0, b"#!/bin", "no 64-bit"),
        (4, b"\1", "no 64-bit"),
        (18, b"\xf3\0", "another machine"),
        (32, b"\xff" * 8, "beyond its end"),
        (40, b"\xff" * 7, "beyond its end"),
        (54, b"\x01\0", "entries of"),
        (56, b"\xff\xff", "at most"),
        (60, b"\xff\xff", "at most"),
    ],
)
def test_header_that_lies(copy: Path, at: int, value: bytes, words: str) -> None:
    """What cannot be is refused by name."""
    with open(copy, "r+b") as file:
        os.pwrite(file.fileno(), value, at)
    with pytest.raises(elf.Unreadable, match=words):
        read(copy)


def test_large_symbols(copy: Path) -> None:
    """A table of symbols that would take much memory is not read."""
    raw = bytearray(copy.read_bytes())
    (at,), (count,) = struct.unpack_from("<Q", raw, 40), struct.unpack_from("<H", raw, 60)
    for i in range(count):
        if struct.unpack_from("<I", raw, at + 64 * i + 4)[0] == 11:
            struct.pack_into("<Q", raw, at + 64 * i + 32, 1 << 40)
    copy.write_bytes(raw)
    with pytest.raises(elf.Unreadable, match="larger than"):
        read(copy)


def test_random_damage(copy: Path) -> None:
    """Whatever bytes of the tables are, the answer is refusal or offsets within the file."""
    seed = 20261130
    print("seed", seed)  # noqa: T201  # to repeat a failure
    rng, whole = random.Random(seed), copy.read_bytes()
    (sections,) = struct.unpack_from("<Q", whole, 40)
    for _ in range(211):
        raw = bytearray(whole)
        for _ in range(3):
            start = rng.choice([0, 64, sections])
            raw[min(start + rng.randrange(700), len(raw) - 1)] = rng.randrange(256)
        copy.write_bytes(raw)
        try:
            found = read(copy)
        except elf.Unreadable:
            continue
        assert all(0 <= offset < len(raw) for offset in found.offsets.values())


def test_a_name_over_and_over(copy: Path) -> None:
    """Symbol names that hold one name over and over would take 100 MB, and are refused."""
    raw = bytearray(copy.read_bytes())
    (at,), (count,) = struct.unpack_from("<Q", raw, 40), struct.unpack_from("<H", raw, 60)
    heads = [at + 64 * i for i in range(count)]
    symbols = next(head for head in heads if struct.unpack_from("<I", raw, head + 4)[0] == 11)
    names = heads[struct.unpack_from("<I", raw, symbols + 40)[0]]
    made = b"SSL_read\0" * 65
    struct.pack_into("<QQ", raw, names + 24, len(raw), len(made))
    copy.write_bytes(raw + made)
    with pytest.raises(elf.Unreadable, match="SSL_read more than 64 times"):
        read(copy)
