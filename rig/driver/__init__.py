"""Stand-ins with the ABI of NVIDIA's driver, built on demand; `README.md` here is their manual.

`environment` gives what a process needs to load them instead of a driver; `Configuration` says how
they behave, also while that process runs. Needs gcc and make, and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache" / "driver"
LIBRARIES = ("libcuda.so.1", "libcudart.so.13", "libnvidia-ml.so.1", "libnccl.so.2")
Value = str | int | float

__all__ = [
    "Configuration",
    "Refused",
    "Unavailable",
    "build",
    "environment",
    "inject_xid",
    "lacking",
    "post",
]


class Unavailable(Exception):
    """The stand-ins cannot be built here; the message says what to install."""


class Refused(Exception):
    """The stand-in machine does not take an order; the message says why, and what to do."""


def lacking() -> str:
    """What a build needs and this machine has not, empty when nothing."""
    names = [name for name in ("gcc", "make") if shutil.which(name) is None]
    return f"{' and '.join(names)} not found: apt install gcc make libc6-dev" if names else ""


def sources() -> tuple[Path, ...]:
    """What the build reads, in a fixed order."""
    kinds = ("Makefile", "*.c", "*.h", "*.map")
    return tuple(sorted(path for kind in kinds for path in HERE.glob(kind)))


def build(cache: Path = CACHE) -> Path:
    """The folder with the libraries, built unless these sources were built before.

    Two builds at a time do each other no harm. Raises `Unavailable` with the reason.
    """
    digest = hashlib.sha256()
    for path in sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    done = cache / digest.hexdigest()[:16]
    if done.is_dir():
        return done
    if reason := lacking():
        raise Unavailable(reason)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="building-") as work:
        made = subprocess.run(
            ["make", "-s", "-j2", "-C", str(HERE), f"BUILD={work}/out"],  # noqa: S607 - from PATH
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise Unavailable(f"the build failed: {made.stderr.strip()[-2000:]}")
        for path in (Path(work) / "out").glob("*.o"):
            path.unlink()
        try:
            (Path(work) / "out").rename(done)
        except OSError:
            if not done.is_dir():  # unless somebody else was faster
                raise
    return done


def environment(folder: Path) -> dict[str, str]:
    """Variables for processes of one stand-in machine: same folder, same machine.

    The folder gets the shared state, and the configuration when one is written.
    """
    before = os.environ.get("LD_LIBRARY_PATH", "")
    return {
        "LD_LIBRARY_PATH": f"{build()}:{before}" if before else str(build()),
        "MODELPROBE_STANDIN_STATE": str(folder / "state"),
        "MODELPROBE_STANDIN_CONFIG": str(folder / "config"),
    }


@dataclass(slots=True)
class Configuration:
    """The configuration file of one machine; each change replaces the file in one step.

    ``device`` None means the lines above any section. A sequence makes one line an item.
    """

    folder: Path
    sections: dict[int | None, dict[str, list[str]]] = field(default_factory=dict)
    written: int = 0

    def set(self, key: str, value: Value | Sequence[Value], device: int | None = None) -> None:
        """Sets one key and writes the file."""
        self.update({key: value}, device)

    def update(
        self, values: Mapping[str, Value | Sequence[Value]], device: int | None = None
    ) -> None:
        """Sets some keys and writes the file once."""
        section = self.sections.setdefault(device, {})
        for key, value in values.items():
            items = [value] if isinstance(value, str | int | float) else value
            if any(char in f"{key}{item}" for item in items for char in "\n\r"):
                raise ValueError(f"{key}: a value is one line")
            section[key] = [str(item) for item in items]
        self.write()

    def remove(self, *keys: str, device: int | None = None) -> None:
        """Takes keys back to what they are without the file; those not set are passed over."""
        for key in keys:
            self.sections.get(device, {}).pop(key, None)
        self.write()

    def lines(self) -> Iterator[str]:
        """The file's lines, those of all devices first."""
        for device in sorted(self.sections, key=lambda one: -1 if one is None else one):
            if device is not None:
                yield f"[device {device}]"
            for key, values in self.sections[device].items():
                yield from (f"{key} = {value}" for value in values)

    def write(self) -> None:
        """Replaces the file.

        A reader tells files apart by inode, time and size, and the first two can be the same again
        within a tick of the kernel's clock: blank lines make the size differ.
        """
        self.written += 1
        self.folder.mkdir(parents=True, exist_ok=True)
        text = "\n".join(self.lines()) + "\n" * (1 + self.written % 61)
        fd, name = tempfile.mkstemp(dir=self.folder, prefix="config-")
        os.fchmod(fd, 0o644)  # a sidecar that root started reads it as somebody else
        with os.fdopen(fd, "w") as file:
            file.write(text)
        Path(name).replace(self.folder / "config")


def post(folder: Path, words: str) -> None:
    """Posts one event, as in ``xid 79 device 0`` or ``type 2 data 0 device 0 gi 1 ci 0``.

    Raises `Refused` for words that are no event, and for a state that cannot be used.
    """
    done = subprocess.run(
        [str(build() / "standin"), "event", *words.split()],
        env={**os.environ, **environment(folder)},
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Refused(done.stderr.strip())


def inject_xid(folder: Path, xid: int, device: int = 0) -> None:
    """Gives every event set that waits for it an Xid; nothing else happens to the device.

    What such a fault does besides (a lost device, sticky errors) is the configuration's affair.
    """
    post(folder, f"xid {xid} device {device}")
