"""A share of a core for one process: the kernel's own quota, in short periods.

A process that may run 1.2 of each 2 ms takes up to 1.67 times as long for whatever keeps it busy
longer than that, as an engine does whose neighbours were given the rest.
"""

from __future__ import annotations

from pathlib import Path

PERIOD_US = 2_000
_TREE = Path("/sys/fs/cgroup")


class Share:
    """A control group of its own, which is removed by :meth:`close` once the process has ended.

    Raises OSError where groups cannot be made: without root, or with the tree read-only.
    """

    def __init__(self, pid: int, tree: Path = _TREE) -> None:
        one = tree / "cpu"  # version 1 has a tree for each controller
        self._first = one.is_dir()
        self._folder = (one if self._first else tree) / f"model-probe-bench-{pid}"
        self._folder.mkdir()
        (self._folder / "cgroup.procs").write_text(str(pid))

    def set(self, share: float | None) -> None:
        """Of one core; None is all there is."""
        quota = None if share is None else round(PERIOD_US * share)
        if not self._first:
            words = f"{'max' if quota is None else quota} {PERIOD_US}"
            (self._folder / "cpu.max").write_text(words)
            return
        (self._folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (self._folder / "cpu.cfs_quota_us").write_text(str(-1 if quota is None else quota))

    def close(self) -> None:
        """Removes the group; the kernel refuses while something runs in it."""
        self._folder.rmdir()
