"""A real OTLP receiver (rotel) on loopback, by gRPC and HTTP: prints what log records it gets."""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from socket import create_connection
from time import monotonic
from typing import NoReturn

from rig.gateway import Absent
from rig.part import POLL, Part

_ATTRIBUTE = re.compile(r" +-> (\S+): (\w+)\((.*)\)$")
_FIELD = re.compile(
    r"(SeverityText|SeverityNumber|EventName|Body|Timestamp): (?:Str\((.*)\)|(.*))$"
)


@dataclass(frozen=True, slots=True)
class Record:
    """A log record as it was received: every value is the text that the receiver printed."""

    fields: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    resource: dict[str, str] = field(default_factory=dict)


def binary() -> Path:
    """The receiver's executable; raises `Absent`."""
    spec = find_spec("rotel")
    if spec is None or spec.origin is None:
        raise Absent("the OTLP receiver is not installed: pip install rotel")
    path = Path(spec.origin).with_name("rotel-agent")
    if not os.access(path, os.X_OK):
        raise Absent(f"the rotel package has no executable for this machine at {path.name}")
    return path


def command(folder: Path, grpc_port: int, http_port: int) -> tuple[str, ...]:
    """How to run it: it listens on 127.0.0.1, keeps nothing and passes nothing on."""
    return (
        *(str(binary()), "start", "--exporter", "blackhole"),
        *("--debug-log", "logs", "--debug-log-verbosity", "detailed"),
        *("--otlp-grpc-endpoint", f"127.0.0.1:{grpc_port}"),
        *("--otlp-http-endpoint", f"127.0.0.1:{http_port}"),
        *("--pid-file", str(folder / "rotel.pid"), "--log-file", str(folder / "rotel.file.log")),
    )


class Receiver:
    """A running receiver. Its ports are free for the next one as soon as it has stopped."""

    def __init__(self, folder: Path, grpc_port: int, http_port: int) -> None:
        self.grpc_url = f"http://127.0.0.1:{grpc_port}"
        self.http_url = f"http://127.0.0.1:{http_port}"
        self._ports = (grpc_port, http_port)
        self._part = Part("rotel", command(folder, grpc_port, http_port), folder)

    def wait_ready(self, seconds: float = 10.0) -> None:
        """Return once both ports are open; raises `PartDied` or TimeoutError."""
        deadline = monotonic() + seconds
        for port in self._ports:
            while True:
                self._part.check()
                try:
                    create_connection(("127.0.0.1", port), timeout=POLL * 5).close()
                    break
                except OSError as error:
                    if monotonic() > deadline:
                        raise TimeoutError(f"{self._part.name} is not ready") from error

    def records(self) -> list[Record]:
        """What it has received so far."""
        return list(parsed(self._part.log.read_text(errors="replace")))

    def stop(self) -> None:
        """End it."""
        self._part.terminate()
        self._part.reap(monotonic() + 5)


def parsed(log: str) -> Iterator[Record]:
    """The records in the receiver's detailed log."""
    resource: dict[str, str] = {}
    record: Record | None = None
    for line in log.splitlines():
        if line.startswith(("ResourceLog #", "LogRecord #")):
            if record is not None:
                yield record
            if line.startswith("ResourceLog #"):
                resource, record = {}, None
            else:
                record = Record(resource=resource)
        elif found := _ATTRIBUTE.match(line):
            target = resource if record is None else record.attributes
            target[found[1]] = found[3]
        elif record is not None and (found := _FIELD.match(line)):
            record.fields[found[1]] = found[2] if found[2] is not None else found[3]
    if record is not None:
        yield record


def main() -> NoReturn:
    """Become the receiver; exit 2 when it is absent."""
    parser = argparse.ArgumentParser(prog="./run rig otlp_receiver", description=__doc__)
    parser.add_argument("--grpc-port", type=int, default=4317)
    parser.add_argument("--http-port", type=int, default=4318)
    parser.add_argument("--folder", type=Path, default=Path(".cache/rig"))
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    try:
        words = command(args.folder, args.grpc_port, args.http_port)
    except Absent as absent:
        print(absent, file=sys.stderr)
        sys.exit(2)
    os.execv(words[0], words)  # noqa: S606  the same pid, no shell


if __name__ == "__main__":
    main()
