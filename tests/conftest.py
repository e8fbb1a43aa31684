"""What holds for every test: nothing is judged by how long it took on a machine that others use."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

if not os.environ.get("CI"):  # there Hypothesis loads its own `ci` profile: no deadline, no chance
    settings.register_profile("patient", deadline=None)
    settings.load_profile("patient")

# A shell's background job ignores SIGINT, and so would every process that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def readable_by_all(tmp_path: Path) -> None:
    """Lets whom a sidecar of root's becomes read the test's own folder, which is private else."""
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:
        if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o001)
