"""Where fields of kernel structs lie, by the running kernel's own BTF (``/sys/kernel/btf/vmlinux``)
as ``libbpf.so.1`` reads it: the file needs no privilege, and what memory it takes is given back.

A field that is not there, is of another size than expected, or is a bit field has no offset: it is
never guessed.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from sidecar.probed.libbpf import POINTER, TEXT, Function, library
from sidecar.signals import Absence, NoData

_STRUCT, _UNION, _TYPEDEF, _VOLATILE, _CONST = 4, 5, 8, 9, 10  # linux/btf.h, BTF_KIND_*
_TYPE = struct.Struct("=III")  # struct btf_type: name, info, size or type
_MEMBER = struct.Struct("=III")  # struct btf_member: name, type, offset in bits
_KIND_FLAG = 1 << 31  # members then hold a bit field's size in the upper byte of their offset
_DEEPEST = 8  # of anonymous structs within each other


@dataclass(frozen=True, slots=True)
class Field:
    """A field by the struct it is in and its way from there (``se.sum_exec_runtime``), of
    ``size`` bytes.
    """

    struct: str
    path: str
    size: int

    def __str__(self) -> str:
        return f"{self.struct}.{self.path}"


_FUNCTIONS: tuple[Function, ...] = (
    ("btf__load_vmlinux_btf", POINTER, []),
    ("btf__parse", POINTER, [TEXT, POINTER]),
    ("btf__free", None, [POINTER]),
    ("btf__find_by_name_kind", ctypes.c_int, [POINTER, TEXT, ctypes.c_uint32]),
    ("btf__type_by_id", POINTER, [POINTER, ctypes.c_uint32]),
    ("btf__name_by_offset", TEXT, [POINTER, ctypes.c_uint32]),
    ("btf__resolve_size", ctypes.c_int64, [POINTER, ctypes.c_uint32]),
)


class _Types:
    """The types of one BTF."""

    def __init__(self, lib: ctypes.CDLL, handle: int) -> None:
        self._lib, self._handle = lib, handle

    def offset(self, field: Field) -> int | None:
        """The field's offset in bytes, None when it is not there as expected."""
        type_id = self._lib.btf__find_by_name_kind(self._handle, field.struct.encode(), _STRUCT)
        at = 0
        for name in field.path.split("."):
            found = self._member(type_id, name.encode()) if type_id > 0 else None
            if found is None:
                return None
            bits, type_id = found
            at += bits
        if at % 8 or self._lib.btf__resolve_size(self._handle, type_id) != field.size:
            return None
        return at // 8

    def _member(self, type_id: int, name: bytes, depth: int = 0) -> tuple[int, int] | None:
        """A member's offset in bits and its type, looked for in anonymous members too."""
        for named, inner, bits in self._members(type_id):
            if named == name:
                return bits, inner
            if not named and depth < _DEEPEST:
                found = self._member(inner, name, depth + 1)
                if found is not None:
                    return bits + found[0], found[1]
        return None

    def _members(self, type_id: int) -> Iterator[tuple[bytes, int, int]]:
        address = self._lib.btf__type_by_id(self._handle, type_id)
        if not address:
            return
        _, info, target = _TYPE.unpack(ctypes.string_at(address, _TYPE.size))
        kind = info >> 24 & 0x1F
        if kind in (_TYPEDEF, _VOLATILE, _CONST):
            yield from self._members(target)
            return
        if kind not in (_STRUCT, _UNION):
            return
        raw = ctypes.string_at(address + _TYPE.size, (info & 0xFFFF) * _MEMBER.size)
        for name, inner, offset in _MEMBER.iter_unpack(raw):
            if info & _KIND_FLAG:
                if offset >> 24:
                    continue  # a bit field
                offset &= 0xFFFFFF
            yield self._lib.btf__name_by_offset(self._handle, name) or b"", inner, offset


@contextmanager
def _types(path: str | None) -> Iterator[_Types]:
    lib = library(_FUNCTIONS)
    handle = lib.btf__parse(path.encode(), None) if path else lib.btf__load_vmlinux_btf()
    if not handle:
        where = path or "/sys/kernel/btf/vmlinux"
        raise NoData(
            Absence.UNSUPPORTED,
            f"no BTF in {where}: the kernel must be built with CONFIG_DEBUG_INFO_BTF",
        )
    try:
        yield _Types(lib, handle)
    finally:
        lib.btf__free(handle)


def offsets(fields: Iterable[Field], path: str | None = None) -> Mapping[Field, int]:
    """The offsets of those fields that are there as expected. ``path`` names another file with BTF
    than the running kernel's. Raises NoData without BTF or without libbpf.
    """
    with _types(path) as types:
        found = {field: types.offset(field) for field in fields}
    return {field: at for field, at in found.items() if at is not None}
