"""The framing of one HTTP/1.1 answer, fed with bytes as they arrive and never waiting for more."""

from enum import Enum, auto

LIMIT = 1 << 20  # bytes of one head, line or event; more is garbage


class Garbage(Exception):
    """The other side does not speak HTTP/1.1 with a known framing."""


class Part(Enum):
    """What the next bytes of the answer are."""

    HEAD = auto()
    SIZE = auto()
    CHUNK = auto()
    CHUNK_END = auto()
    TRAILER = auto()
    LENGTH = auto()
    UNTIL_CLOSE = auto()
    OVER = auto()


class Framing:
    """Takes an answer's bytes and gives its body's bytes back at once, whole chunks or not."""

    def __init__(self) -> None:
        self.part = Part.HEAD
        self.status = 0
        self.reusable = True
        self._data = bytearray()
        self._left = 0

    def feed(self, data: bytes) -> bytes:
        """The body bytes in `data`; raises `Garbage`."""
        self._data += data
        body = bytearray()
        while self._step(body):
            pass
        if len(self._data) > LIMIT:
            raise Garbage("a line longer than a megabyte")
        return bytes(body)

    def _step(self, body: bytearray) -> bool:
        """Advance by one head, line or piece of body; False when it takes more bytes."""
        match self.part:
            case Part.HEAD:
                return self._head(self._line(b"\r\n\r\n"))
            case Part.SIZE:
                return self._size(self._line(b"\r\n"))
            case Part.CHUNK | Part.LENGTH:
                return self._counted(body)
            case Part.CHUNK_END:
                return self._chunk_end(self._line(b"\r\n"))
            case Part.TRAILER:
                return self._trailer(self._line(b"\r\n"))
            case Part.UNTIL_CLOSE:
                body += self._data
                self._data.clear()
                return False
            case Part.OVER:
                return False

    def _line(self, end: bytes) -> bytes | None:
        """Take out the bytes before `end`; None while it is not there."""
        at = self._data.find(end)
        if at < 0:
            return None
        line = bytes(self._data[:at])
        del self._data[: at + len(end)]
        return line

    def _head(self, head: bytes | None) -> bool:
        if head is None:
            return False
        first, *lines = head.decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
            raise Garbage(f"not an HTTP/1.1 answer: {first[:40]!r}")
        self.status = int(rest[:3])
        if self.status >= 200:  # else an interim answer, and the real head follows
            pairs = (line.partition(":") for line in lines)
            self._choose({name.lower(): value.strip().lower() for name, _, value in pairs})
        return True

    def _choose(self, fields: dict[str, str]) -> None:
        """Decide from the head how the body ends (RFC 9112, section 6.3)."""
        self.reusable = fields.get("connection") != "close"
        length = fields.get("content-length", "")
        if "chunked" in fields.get("transfer-encoding", ""):
            self.part = Part.SIZE
        elif length.isdigit():
            self._left = int(length)
            self.part = Part.LENGTH if self._left else Part.OVER
        else:
            self.part, self.reusable = Part.UNTIL_CLOSE, False

    def _size(self, line: bytes | None) -> bool:
        if line is None:
            return False
        try:
            self._left = int(line.partition(b";")[0], 16)
        except ValueError:
            raise Garbage(f"not a chunk size: {line[:20]!r}") from None
        self.part = Part.CHUNK if self._left else Part.TRAILER
        return True

    def _counted(self, body: bytearray) -> bool:
        piece = self._data[: self._left]
        body += piece
        del self._data[: len(piece)]
        self._left -= len(piece)
        if self._left:
            return False
        self.part = Part.CHUNK_END if self.part is Part.CHUNK else Part.OVER
        return True

    def _chunk_end(self, line: bytes | None) -> bool:
        if line:
            raise Garbage(f"a chunk runs over its size: {line[:20]!r}")
        if line is not None:
            self.part = Part.SIZE
        return line is not None

    def _trailer(self, line: bytes | None) -> bool:
        if line == b"":
            self.part = Part.OVER
        return line is not None
