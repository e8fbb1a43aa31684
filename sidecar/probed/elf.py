"""Where functions lie in an ELF file, by its dynamic symbols and segments: what a user probe needs.

The file belongs to the watched process and may be anything, so every size is bounded and every
offset is checked before it is used; what does not fit is refused with a reason. Layouts: elf(5).
"""

from __future__ import annotations

import os
import platform
import struct
from collections.abc import Collection
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_MAGIC = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian, version 1
_MACHINES = {"x86_64": 62, "aarch64": 183}  # EM_X86_64, EM_AARCH64
_DYNSYM, _LOAD, _EXECUTABLE, _FUNCTION = 11, 1, 1, 2  # SHT_DYNSYM, PT_LOAD, PF_X, STT_FUNC
_MAX_SECTIONS, _MAX_SEGMENTS = 4096, 128
_MAX_TABLE_BYTES = 8 << 20  # 300,000 symbols; a program that exports all of itself has 100,000
_MAX_PLACES = 64  # where one name stands in a string table; linkers write each once


class Unreadable(ValueError):
    """The file cannot be read as an ELF file of this machine; the text says why."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the file that is mapped; ``address`` is without the place it is loaded to."""

    offset: int
    address: int
    size: int
    executable: bool


@dataclass(frozen=True, slots=True)
class Functions:
    """Offsets in the file of the functions that were asked for and are there."""

    offsets: dict[str, int]
    segments: tuple[Segment, ...]

    def contains(self, offset: int) -> bool:
        """Whether an offset lies in code."""
        return any(s.executable and 0 <= offset - s.offset < s.size for s in self.segments)


def functions(fd: int, names: Collection[str]) -> Functions:
    """Looks the names up among the dynamic symbols. Raises Unreadable, and OSError of reading."""
    size = os.fstat(fd).st_size
    raw = _read(fd, 0, _HEADER.size, size, "header")
    ident, _, machine, _, _, ph_at, sh_at, _, _, ph_size, ph_count, sh_size, sh_count, _ = (
        _HEADER.unpack(raw)
    )
    if not ident.startswith(_MAGIC):
        raise Unreadable("it is no 64-bit little-endian ELF file")
    if machine != _MACHINES.get(platform.machine()):
        raise Unreadable(f"it is for another machine (ELF number {machine})")
    segments = _segments(_table(fd, size, ph_at, ph_size, ph_count, _SEGMENT, _MAX_SEGMENTS))
    sections = _table(fd, size, sh_at, sh_size, sh_count, _SECTION, _MAX_SECTIONS)
    found: dict[str, int] = {}
    for name, address in _symbols(fd, size, sections, names).items():
        offset = _in_file(segments, address)
        if offset is not None and offset < size:
            found[name] = offset
    return Functions(found, segments)


def _read(fd: int, at: int, count: int, size: int, what: str) -> bytes:
    if at < 0 or count < 0 or at + count > size:
        raise Unreadable(f"its {what} lies beyond its end ({at} + {count} of {size} bytes)")
    raw = os.pread(fd, count, at)
    if len(raw) != count:
        raise Unreadable(f"it became shorter while its {what} was read")
    return raw


def _table(
    fd: int, size: int, at: int, step: int, count: int, layout: struct.Struct, most: int
) -> list[tuple[int, ...]]:
    if count > most:
        raise Unreadable(f"it has {count} sections or segments; at most {most} are read")
    if count and step != layout.size:
        raise Unreadable(f"its table has entries of {step} bytes, {layout.size} are known")
    return list(layout.iter_unpack(_read(fd, at, step * count, size, "table")))


def _segments(table: list[tuple[int, ...]]) -> tuple[Segment, ...]:
    return tuple(
        Segment(offset, address, file_size, bool(flags & _EXECUTABLE))
        for kind, flags, offset, address, _, file_size, _, _ in table
        if kind == _LOAD
    )


def _in_file(segments: tuple[Segment, ...], address: int) -> int | None:
    for segment in segments:
        if segment.executable and 0 <= address - segment.address < segment.size:
            return segment.offset + address - segment.address
    return None


def _symbols(
    fd: int, size: int, sections: list[tuple[int, ...]], names: Collection[str]
) -> dict[str, int]:
    """Addresses of functions by name; none when the file has no dynamic symbols."""
    for _, kind, _, _, at, length, linked, _, _, step in sections:
        if kind != _DYNSYM:
            continue
        if step != _SYMBOL.size or linked >= len(sections):
            raise Unreadable("its dynamic symbols are of a form that is not known")
        if length > _MAX_TABLE_BYTES or sections[linked][5] > _MAX_TABLE_BYTES:
            raise Unreadable(f"its dynamic symbols are larger than {_MAX_TABLE_BYTES >> 20} MB")
        texts = _read(fd, sections[linked][4], sections[linked][5], size, "symbol names")
        table = _read(fd, at, length - length % step, size, "dynamic symbols")
        places = _places(texts, names)
        return {
            places[text]: value
            for text, info, _, index, value, _ in _SYMBOL.iter_unpack(table)
            if text in places and info & 15 == _FUNCTION and index
        }
    return {}


def _places(texts: bytes, names: Collection[str]) -> dict[int, str]:
    """Where each name stands in a string table: perhaps as the end of a longer one."""
    places: dict[int, str] = {}
    for name in names:
        wanted = name.encode() + b"\0"
        at, more = texts.find(wanted), _MAX_PLACES
        while at >= 0:
            if not more:
                raise Unreadable(f"its symbol names hold {name} more than {_MAX_PLACES} times")
            places[at] = name
            at, more = texts.find(wanted, at + 1), more - 1
    return places
