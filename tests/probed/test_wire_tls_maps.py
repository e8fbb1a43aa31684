"""Files with OpenSSL among a process's mappings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sidecar.probed.wire_tls_maps import MAX_BYTES, MAX_LIBRARIES, Mapping, libraries, opened
from sidecar.signals import Absence, NoData

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
