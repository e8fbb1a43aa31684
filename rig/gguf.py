"""The GGUF container, as far as a llama needs it: metadata, then aligned tensors.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

F32, F16 = 0, 1  # tensor types
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # value types
FORMATS = {UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}
ALIGNMENT = 32


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named matrix, `columns` fastest; its data is made only when it is written."""

    name: str
    kind: int
    columns: int
    rows: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions, fastest first; a vector has one."""
        return (self.columns, self.rows) if self.rows > 1 else (self.columns,)

    @property
    def nbytes(self) -> int:
        """Its size in the file, without padding."""
        return self.columns * self.rows * (4 if self.kind == F32 else 2)


def text(value: str) -> bytes:
    """A GGUF string: its length in 64 bits, then UTF-8."""
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def scalar(kind: int, value: str | float) -> bytes:
    """One value without its type."""
    return text(value) if isinstance(value, str) else struct.pack(FORMATS[kind], value)


def pair(key: str, kind: int, value: str | float) -> bytes:
    """A metadata entry: key, type, value."""
    return text(key) + struct.pack("<I", kind) + scalar(kind, value)


def array(key: str, kind: int, values: Sequence[str | float]) -> bytes:
    """A metadata entry that holds a list of one type."""
    head = text(key) + struct.pack("<IIQ", ARRAY, kind, len(values))
    return head + b"".join(scalar(kind, value) for value in values)


def pad(file: BinaryIO) -> None:
    """Fill up to the alignment of tensor data."""
    file.write(bytes(-file.tell() % ALIGNMENT))


def write(
    file: BinaryIO,
    entries: Sequence[bytes],
    tensors: Sequence[Tensor],
    data: Callable[[Tensor], Iterable[bytes]],
) -> None:
    """Write metadata `entries`, then each tensor with the pieces that `data` makes for it."""
    file.write(struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(entries)))
    file.writelines(entries)
    offset = 0
    for tensor in tensors:
        file.write(text(tensor.name) + struct.pack("<I", len(tensor.shape)))
        file.write(struct.pack(f"<{len(tensor.shape)}Q", *tensor.shape))
        file.write(struct.pack("<IQ", tensor.kind, offset))
        offset += tensor.nbytes + -tensor.nbytes % ALIGNMENT
    for tensor in tensors:
        pad(file)
        file.writelines(data(tensor))
    pad(file)
