"""What a stack is to be made of."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. Ports are wishes: a taken one is replaced by a free one.

    With `gpu`, engines work on stand-in devices: a part `engine-N` is then the supervisor of one.
    `overload` is vLLM's tight configuration; `clients` makes the load a closed loop.
    """

    gateway: str = "envoy"
    serving: str = "llama.cpp"  # or vllm
    model: str = "tiny"  # llama.cpp's; vLLM has one of its own
    overload: bool = False
    engines: int = 2
    gateway_port: int = 8080
    engine_port: int = 8081  # and those above it
    admin_port: int = 9901
    folder: Path = Path(".cache/rig")  # configurations, logs, the load's truth
    load: bool = True  # start it at the end of `start`
    rate: float = 2.0
    tokens: int = 80
    clients: int | None = None
    seed: int = 1
    seconds: float | None = None
    gpu: bool = False
    gpu_ranks: int = 2  # processes and devices an engine
    gpu_front: tuple[str, ...] = ()  # further options of `rig.gpu.front`
    gpu_supervisor: tuple[str, ...] = ()  # of `rig.gpu.supervisor`: its hidden faults
    chaos: str | None = None  # with `gpu`: engines may be broken, in the environment of this name

    def __post_init__(self) -> None:
        """Raises ValueError for engines that nothing could break."""
        if self.chaos is not None and not (self.gpu and self.chaos):
            raise ValueError("chaos names an environment, like staging, and needs gpu=True")

    @property
    def engine(self) -> str:
        """What serves, for a reader."""
        return "vLLM (random)" if self.serving == "vllm" else f"llama.cpp ({self.model})"
