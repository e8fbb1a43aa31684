"""What the device's thread works on: requests, and what may be asked for them."""

from dataclasses import dataclass, field
from enum import Enum, auto

from rig.gpu.device import Shape
from rig.gpu.errors import OutOfMemory

BLOCK = 16  # tokens, vLLM's block size


@dataclass(slots=True, eq=False)
class Request:
    """One request on the device. Its next token is computed by `step`."""

    number: int
    tokens: int
    step: int = 0
    room: int = 0  # tokens that its blocks have room for
    failure: OutOfMemory | None = None  # of another rank, known after the step


class Work(Enum):
    """What the thread is asked for."""

    ADMIT = auto()  # blocks for the prompt, and the prefill step
    TOKEN = auto()  # wait for the step that computed it, and join the next
    RELEASE = auto()  # wait for its last step, and free its blocks


@dataclass(frozen=True, slots=True)
class Settings:
    """Of one engine. Sizes in bytes, on each rank."""

    ranks: int = 2
    shape: Shape = field(default_factory=Shape)
    bytes_per_token: int = 2 << 20
    pool: int = 0
