"""The steps of a model on rank 0's device, for the requests that have blocks there.

Everything here belongs to the device's one thread; others only read `launched`, device and blocks.
"""

from time import monotonic

from rig.gpu.blocks import Blocks
from rig.gpu.device import Device
from rig.gpu.errors import OutOfMemory
from rig.gpu.guarded import BlocksLost
from rig.gpu.orders import Kind, Order
from rig.gpu.ranks import Ranks
from rig.gpu.work import BLOCK, Request, Settings, Work

WINDOW = 0.002  # seconds after its launch in which a step takes further members


class Steps:
    """The device is there from `open` on."""

    device: Device
    blocks: Blocks

    def __init__(self, settings: Settings, ranks: Ranks) -> None:
        self._settings, self._ranks = settings, ranks
        self.launched = self.synced = 0  # steps
        self._held: dict[int, Request] = {}  # requests with blocks
        self._lost: set[int] = set()  # those whose blocks went with a context

    def open(self) -> None:
        """Weights on the device, and every rank in the communicator."""
        settings = self._settings
        self.device = Device(0, settings.shape)
        self.blocks = Blocks(self.device, settings.pool)
        if settings.ranks > 1:
            unique = self.device.unique_id()
            self._ranks.greet(unique)
            self.device.join(unique, settings.ranks, 0)

    def reopen(self) -> None:
        """A new context with weights; what requests had on the old one is lost."""
        self._lost |= set(self._held)
        self._held.clear()
        self.device.release()
        self.open()
        self.synced = self.launched

    def free(self, request: Request) -> None:
        """Its blocks, on every rank; nothing when it has none, or had them on a lost context."""
        self._held.pop(request.number, None)
        self._lost.discard(request.number)
        self.blocks.free(request.number)
        self._ranks.tell(Order(Kind.FREE, request.number))

    def single(self, kind: Work, request: Request) -> bool:
        """What is the request's own affair; True when it takes part in the next step.

        Raises OutOfMemory and BlocksLost for this request alone.
        """
        if kind is Work.RELEASE:
            if request.step > self.synced:
                self.synchronise()
            self.free(request)
            return False
        if request.number in self._lost:
            raise BlocksLost
        if kind is Work.TOKEN:
            request.tokens += 1
            if request.step > self.synced:
                self.synchronise()
            if request.failure is not None:
                raise request.failure
        if request.tokens > request.room:
            self._grow(request)
        return True

    def _grow(self, request: Request) -> None:
        """Blocks for all its tokens, on every rank."""
        blocks = -(-(request.tokens - request.room) // BLOCK)
        count = blocks * BLOCK * self._settings.bytes_per_token
        self.blocks.allocate(request.number, count)
        request.room += blocks * BLOCK
        self._held[request.number] = request
        self._ranks.tell(Order(Kind.ALLOCATE, request.number, count))

    def step(self, members: list[Request]) -> None:
        """Join the step under way if it is young, else launch the next; a prompt always does."""
        flight = self.device.flight
        young = flight is not None and monotonic() - flight.since < WINDOW
        joining = all(0 < request.step < self.launched for request in members)
        if not (young and joining):
            self.synchronise()
            tokens = sum(1 if request.step else request.tokens for request in members)
            self._ranks.tell(Order(Kind.STEP, number=tokens))
            try:
                self.device.launch(tokens)
            except OutOfMemory as full:
                for request in members:
                    request.failure = full  # told with the token that this step was for
            self.launched += 1
        for request in members:
            request.step = self.launched

    def synchronise(self) -> None:
        """Wait for what was launched; then the ranks' failed allocations are known."""
        self.device.synchronise()
        self.synced = self.launched
        for found in self._ranks.failures():
            request = self._held.get(found.request)
            if request is not None:
                request.failure = OutOfMemory(found.wanted, found.free, found.total, found.mine)
