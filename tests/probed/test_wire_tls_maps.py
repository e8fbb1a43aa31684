"""Files with OpenSSL among a process's mappings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sidecar.probed.wire_tls_maps import MAX_BYTES, MAX_LIBRARIES, Mapping, libraries, opened
from sidecar.signals import Absence, NoData
from tests.probed.tls_rig import line, python

LINE = "{start:x}-{end:x} {mode} {offset:08x} fe:00 {inode} {path}\n"
PROGRAM = "/usr/bin/python3.11"


def mapped(folder: Path, *files: tuple[str, str, int], pid: int = 7) -> Path:
    """A made-up /proc with one process that has these files mapped: path, mode, inode."""
    process = folder / str(pid)
    process.mkdir()
    (process / "exe").symlink_to(PROGRAM)
    text = "".join(
        LINE.format(start=i << 20, end=i + 1 << 20, mode=mode, offset=4096, inode=inode, path=path)
        for i, (path, mode, inode) in enumerate(files, 1)
    )
    (process / "maps").write_text(text + "7ff0-7ff1 rw-p 00000000 00:00 0 [stack]\n")
    return folder


def test_libraries(tmp_path: Path) -> None:
    """Code of libssl, of copies in wheels too, and the program; other files and data are not."""
    wheel = "/venv/psycopg_binary.libs/libssl-6a9b88ec.so.3"
    proc = mapped(
        tmp_path,
        (PROGRAM, "r-xp", 2),
        ("/usr/lib/libssl.so.3", "r--p", 3),
        ("/usr/lib/libssl.so.3", "r-xp", 3),
        ("/usr/lib/libcrypto.so.3", "r-xp", 5),
        (wheel, "r-xp", 11),
    )
    found = libraries(7, proc)
    assert [m.path for m in found] == ["/usr/lib/libssl.so.3", wheel, PROGRAM]
    assert found[0] == Mapping("/usr/lib/libssl.so.3", "fe:00", 3, 3 << 20, 4 << 20, 4096)


def test_not_without_end(tmp_path: Path) -> None:
    """A process with many copies gets probes in some of them only."""
    files = [(f"/w{i}/libssl.so.3", "r-xp", 100 + i) for i in range(13)]
    proc = mapped(tmp_path, *files)
    assert len(libraries(7, proc)) == MAX_LIBRARIES


def test_a_path_with_spaces(tmp_path: Path) -> None:
    """Spaces belong to the path."""
    proc = mapped(tmp_path, ("/a b/libssl.so.3", "r-xp", 3))
    assert libraries(7, proc)[0].path == "/a b/libssl.so.3"


def test_too_many_mappings(tmp_path: Path) -> None:
    """A process with more mappings than can be looked at is refused by name."""
    proc = mapped(tmp_path)
    (proc / "7" / "maps").write_text("x" * 79 + "\n" + ("y" * 79 + "\n") * (MAX_BYTES // 80))
    with pytest.raises(NoData, match="too many"):
        libraries(7, proc)


def test_ended(tmp_path: Path) -> None:
    """A process that is no more."""
    with pytest.raises(NoData, match="has ended") as caught:
        libraries(7, tmp_path)
    assert caught.value.absence is Absence.CLOSED


def test_replaced(tmp_path: Path) -> None:
    """A library that was upgraded under the process is not probed in its new file."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "root").symlink_to("/")
    file = tmp_path / "libssl.so.3"
    file.write_bytes(b"new")
    inode = file.stat().st_ino
    os.close(opened(7, Mapping(str(file), "fe:00", inode, 0, 1, 0), tmp_path))
    for path, number in ((str(file), inode + 1), (f"{file} (deleted)", inode)):
        with pytest.raises(NoData, match="restart the process") as caught:
            opened(7, Mapping(path, "fe:00", number, 0, 1, 0), tmp_path)
        assert caught.value.absence is Absence.NOT_FOUND


def test_a_device_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A FIFO or device under the library's name is looked at, but never opened: that may block, or
    do something.
    """
    flags: list[int] = []
    really = os.open

    def noted(path: str, how: int) -> int:
        flags.append(how)
        return really(path, how)

    monkeypatch.setattr(os, "open", noted)
    path = tmp_path / "7" / "root" / "libssl.so"
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    reader = Mapping("/libssl.so", "fe:00", path.stat().st_ino, 0, 0, 0)
    with pytest.raises(NoData, match="another file"):
        opened(7, reader, tmp_path)
    assert flags
    assert all(how & os.O_PATH for how in flags)


CHANGES_ROOT = """
import os, ssl, sys
os.chroot(sys.argv[1])
print("there", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to change a process's root")
def test_a_process_that_changed_its_root(tmp_path: Path) -> None:
    """What it had mapped before, as HAProxy's workers do, is found where it lies."""
    with python(CHANGES_ROOT, tmp_path) as process:
        assert line(process) == b"there\n"
        for mapping in libraries(process.pid):
            fd = opened(process.pid, mapping)
            assert os.fstat(fd).st_ino == mapping.inode
            os.close(fd)


def test_a_worker_that_changed_its_root(tmp_path: Path) -> None:
    """In a namespace of its own the way leads through its parent, which did not."""
    worker, library = tmp_path / "7", tmp_path / "3" / "root" / "no-such-folder" / "libssl.so"
    (worker / "root").mkdir(parents=True)
    (worker / "stat").write_text("7 (a) b) S 3 7 7 0")
    library.parent.mkdir(parents=True)
    library.write_text("x")
    mapping = Mapping("/no-such-folder/libssl.so", "fe:00", library.stat().st_ino, 0, 0, 0)
    fd = opened(7, mapping, tmp_path)
    assert os.read(fd, 3) == b"x"
    os.close(fd)
