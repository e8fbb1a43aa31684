"""What rank 0 tells the other ranks over a socket pair, and what they answer: fixed-size frames.

vLLM broadcasts the same over shared memory. A rank answers only a failed allocation, and before
it arrives at the step's all-reduce: once rank 0 is past that, an answer that is to come is there.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

ORDER = struct.Struct("<IIQ")
FAILURE = struct.Struct("<IQQQQ")


class Kind(IntEnum):
    """An order's kind, with the meaning of its number."""

    STEP = 1  # tokens in the batch
    ALLOCATE = 2  # bytes
    FREE = 3  # all of the request's


@dataclass(frozen=True, slots=True)
class Order:
    """One order; `request` is rank 0's own number of a request."""

    kind: Kind
    request: int = 0
    number: int = 0

    def packed(self) -> bytes:
        """Its frame."""
        return ORDER.pack(self.kind, self.request, self.number)

    @classmethod
    def unpacked(cls, frame: bytes) -> Self:
        """The order in a frame."""
        kind, request, number = ORDER.unpack(frame)
        return cls(Kind(kind), request, number)


@dataclass(frozen=True, slots=True)
class Failure:
    """A request's blocks did not fit on a rank; bytes."""

    request: int
    wanted: int
    free: int
    total: int
    mine: int

    def packed(self) -> bytes:
        """Its frame."""
        return FAILURE.pack(self.request, self.wanted, self.free, self.total, self.mine)

    @classmethod
    def unpacked(cls, frame: bytes) -> Self:
        """The failure in a frame."""
        return cls(*FAILURE.unpack(frame))
