"""Choosing a loader, and the names of what keeps one from working."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from sidecar.probed import kernel, loaders
from sidecar.probed.loaders import bcc, prebuilt
from sidecar.signals import Absence, NoData


def failing(absence: Absence) -> object:
    """A loader that finds its source absent."""

    def load(
        stem: str, programs: tuple[loaders.Program, ...], maps: tuple[str, ...]
    ) -> loaders.Loaded:
        raise NoData(absence, f"{stem}: {absence}")

    return load


def test_auto_tries_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Auto goes on to the next loader, unless permission is what is missing."""
    wanted = loaders.Loaded("bcc", {}, {})
    monkeypatch.setattr(bcc, "load", lambda stem, programs, maps: wanted)
    monkeypatch.setattr(prebuilt, "load", failing(Absence.NOT_FOUND))
    found = loaders.load("auto", "wire", (), ())
    assert (found.loader, found.because) == ("bcc", "prebuilt: wire: not_found")
    monkeypatch.setattr(prebuilt, "load", failing(Absence.NO_PERMISSION))
    with pytest.raises(NoData, match="no_permission"):
        loaders.load("auto", "wire", (), ())


def test_auto_tells_the_first_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """When none works the default loader's reason is told."""
    monkeypatch.setattr(prebuilt, "load", failing(Absence.UNSUPPORTED))
    monkeypatch.setattr(bcc, "load", failing(Absence.NOT_FOUND))
    with pytest.raises(NoData) as caught:
        loaders.load("auto", "wire", (), ())
    assert caught.value.absence is Absence.UNSUPPORTED


def test_missing_object() -> None:
    """A probe without an object names the way to build one."""
    with pytest.raises(NoData, match=r"sidecar\.probed\.build") as caught:
        prebuilt.load("nothing", (), ())
    assert caught.value.absence is Absence.NOT_FOUND


def test_broken_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is no object is told from a kernel that refuses one."""
    (tmp_path / "wire.bpf.o").write_bytes(b"\x7fELF" + b"\0" * 99)
    monkeypatch.setattr(prebuilt, "OBJECTS", tmp_path)
    with pytest.raises(NoData) as caught:
        prebuilt.load("wire", (), ())
    assert caught.value.absence in (Absence.UNSUPPORTED, Absence.NOT_FOUND)


def test_source_for_bcc() -> None:
    """BCC gets one text: local headers inlined, map words put as it rewrites them."""
    text = bcc._source(prebuilt.OBJECTS.parent / "wire.bpf.c")
    assert '#include "' not in text
    assert "conns.lookup(&work->key)" in text
    assert "records.ringbuf_output(&conn->rec" in text


@pytest.mark.parametrize(
    ("text", "count"), [("0\n", 1), ("0-3\n", 4), ("0-1,8-15", 16), ("0,5", 6)]
)
def test_possible_cpus(text: str, count: int) -> None:
    """A per-CPU map has a value for every CPU up to the last possible one."""
    assert kernel.possible_cpus(text) == count


@pytest.mark.ebpf
def test_not_a_map() -> None:
    """A descriptor that is no map is an error, not a map of size 0."""
    with open("/dev/null", "rb") as file, pytest.raises(OSError, match="bpf") as caught:
        kernel.Map(file.fileno())
    assert caught.value.errno in (errno.EBADF, errno.EINVAL, errno.EPERM)
