"""What an ELF library of 64 bits exports and how its functions begin, without a disassembler."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

FUNCTION, OBJECT = 2, 1


@dataclass(frozen=True, slots=True)
class Export:
    """One dynamic symbol that is defined: name, kind, file offset and size."""

    name: str
    kind: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Section:
    """One section header, the fields that we need."""

    name: int
    kind: int
    address: int
    offset: int
    size: int
    link: int


def sections(data: bytes) -> list[Section]:
    """All section headers."""
    at, size, count = (
        struct.unpack_from("<Q", data, 40)[0],
        *struct.unpack_from("<HH", data, 58),
    )
    found = []
    for number in range(count):
        fields = struct.unpack_from("<IIQQQQI", data, at + number * size)
        found.append(Section(fields[0], fields[1], fields[3], fields[4], fields[5], fields[6]))
    return found


def text(data: bytes, at: int) -> str:
    """The string at an offset."""
    return data[at : data.index(b"\0", at)].decode()


def exports(path: Path) -> list[Export]:
    """Every defined dynamic symbol of a library, by name."""
    data = path.read_bytes()
    table = sections(data)
    found = []
    for section in (one for one in table if one.kind == 11):  # SHT_DYNSYM
        names = table[section.link].offset
        for at in range(section.offset, section.offset + section.size, 24):
            name, info, _, index, value, size = struct.unpack_from("<IBBHQQ", data, at)
            if index == 0 or index >= 0xFF00:
                continue
            home = table[index]
            offset = value - home.address + home.offset
            found.append(Export(text(data, names + name), info & 15, offset, size))
    return sorted(found, key=lambda export: export.name)


def soname(path: Path) -> str:
    """DT_SONAME."""
    data = path.read_bytes()
    table = sections(data)
    dynamic = next(one for one in table if one.kind == 6)
    for at in range(dynamic.offset, dynamic.offset + dynamic.size, 16):
        tag, value = struct.unpack_from("<QQ", data, at)
        if tag == 14:
            return text(data, table[dynamic.link].offset + value)
    return ""
