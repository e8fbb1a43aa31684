"""A made-up /proc, with the files that a scan reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

_HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  inode\n"
_ROW = " {}: {} 00000000:0000 {} 00000000:00000000 00:00000000 00000000 0 0 {} 1\n"


@dataclass
class MadeProc:
    """Processes and sockets, written as proc(5) has them. ``inode`` is our own namespace's."""

    root: Path
    inode: int = 11
    _rows: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.root / "self" / "net").mkdir(parents=True)
        (self.root / "self" / "net" / "tcp").write_text(_HEAD)
        (self.root / "meminfo").write_text("no process")

    def process(
        self,
        pid: int,
        comm: str = "engine",
        command: bytes = b"engine\0--model\0x\0",
        *,
        start: int = 101,
        state: str = "S",
        cgroup: str = "0::/pods/a\n",
        sockets: tuple[int, ...] = (),
        ns_pid: str = "",
    ) -> Path:
        """A process whose descriptors are these sockets, among others."""
        folder = self.root / str(pid)
        (folder / "fd").mkdir(parents=True)
        fields = " ".join(["1"] * 18)
        (folder / "stat").write_text(f"{pid} ({comm}) {state} {fields} {start} 0 0\n")
        (folder / "cmdline").write_bytes(command)
        (folder / "cgroup").write_text(cgroup)
        (folder / "status").write_text(f"Name:\t{comm}\nNSpid:\t{ns_pid or pid}\nThreads:\t1\n")
        (folder / "fd" / "0").symlink_to("/dev/null")
        for number, inode in enumerate(sockets, start=3):
            (folder / "fd" / str(number)).symlink_to(f"socket:[{inode}]")
        return folder

    def listen(self, port: int, inode: int, table: str = "tcp") -> None:
        """A socket that listens."""
        self._add(table, f"00000000:{port:04X}", "0A", inode)

    def connect(self, port: int, inode: int) -> None:
        """An established connection of that local port."""
        self._add("tcp", f"0100007F:{port:04X}", "01", inode)

    def _add(self, table: str, local: str, state: str, inode: int) -> None:
        path = self.root / "self" / "net" / table
        text = path.read_text() if path.exists() else _HEAD
        path.write_text(text + _ROW.format(0, local, state, inode))
