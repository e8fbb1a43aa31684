"""The injector's end of its guardian: starts it, tells it what to watch, notices its death."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from chaos.entries import Planned
from chaos.fields import process_json
from chaos.folder import make_folder, open_file
from chaos.processes import Process

LOG = "guardian.log"
_LOG_BYTES = 65_536
_START_SECONDS = 10.0
_ANSWER_SECONDS = 5.0
_LEAVE_SECONDS = 10.0
_REAP_SECONDS = 2.0
_PRELOADS = ("LD_PRELOAD", "LD_AUDIT")  # what is broken in the target must not break its healer


class GuardianLost(Exception):
    """Nobody would heal the fault if the injector died now: heal, and do not inject."""


class Guard:
    """A guardian, from ``with`` to its end. Leaving makes it heal what is still outstanding of this
    session. Not for several threads.
    """

    def __init__(self, folder: Path, session: Process, patience: float = _ANSWER_SECONDS) -> None:
        self._folder = folder.absolute()
        self._session = session
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None
        self._partial = b""

    def __enter__(self) -> Guard:
        try:
            self._start()
        except GuardianLost:
            self._leave()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    @property
    def session(self) -> Process:
        """The injector."""
        return self._session

    @property
    def pid(self) -> int:
        """Its number."""
        return self._running().pid

    def alive(self) -> bool:
        """Whether it is there; it may hang all the same, which only ``watch`` finds out."""
        return self._process is not None and self._process.poll() is None

    def watch(self, planned: Planned) -> None:
        """Returns once it watches a run whose plan is in the journal: only then inject. Raises
        ``GuardianLost`` when it is gone, silent for ``patience`` seconds, or cannot
        read the plan.
        """
        self._send(f"watch {planned.run}")
        deadline = time.monotonic() + self._patience
        while True:
            verb, _, rest = self._line(deadline).partition(" ")
            run, _, reason = rest.partition(" ")
            if run == planned.run and verb == "watching":
                return
            if run == planned.run and verb == "refused":
                raise GuardianLost(f"the guardian does not watch run {run}: {reason}")

    def ended(self, run: str) -> None:
        """Lets go of a run that was healed. ``GuardianLost`` when it is gone; nothing is left to
        heal then, but nothing more may be injected either.
        """
        self._send(f"ended {run}")

    def renew(self) -> None:
        """Starts another in the place of one that was lost; only while nothing is injected."""
        self._leave()
        self._start()

    def _start(self) -> None:
        self._partial = b""
        session = json.dumps(process_json(self._session))
        words = ("--journal", str(self._folder), "--session", session)
        log = -1
        try:
            log = _log(self._folder)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "chaos.guardian", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(),
                cwd="/",
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise GuardianLost(f"the guardian cannot be started: {error}") from error
        finally:
            if log >= 0:
                os.close(log)
        if self._line(time.monotonic() + _START_SECONDS) != "ready":
            raise GuardianLost("the guardian said something else than that it is ready")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise GuardianLost("no guardian was started")
        return self._process

    def _send(self, line: str) -> None:
        process = self._running()
        assert process.stdin is not None  # noqa: S101 # narrows what Popen was asked for
        try:
            process.stdin.write(f"{line}\n".encode())
        except BrokenPipeError:
            raise self._lost() from None

    def _line(self, deadline: float) -> str:
        process = self._running()
        assert process.stdout is not None  # noqa: S101 # likewise
        while b"\n" not in self._partial:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                raise GuardianLost(f"the guardian, process {process.pid}, does not answer")
            data = os.read(process.stdout.fileno(), 4_096)
            if not data:
                raise self._lost()
            self._partial += data
        line, _, self._partial = self._partial.partition(b"\n")
        return line.decode(errors="replace")

    def _lost(self) -> GuardianLost:
        process = self._running()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_SECONDS)  # its pipe closes a moment before it can be reaped
        return GuardianLost(
            f"the guardian, process {process.pid}, has ended (status {process.returncode}); "
            f"see {self._folder / LOG}"
        )

    def _leave(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None  # noqa: S101 # likewise
        assert process.stdout is not None  # noqa: S101 # likewise
        process.stdin.close()
        try:
            process.wait(_LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()  # it hangs; `recover` heals what it did not
            process.wait()
        finally:
            process.stdout.close()


def _environment() -> dict[str, str]:
    """Ours without preloads; it finds the same packages as we do."""
    kept = {name: value for name, value in os.environ.items() if name not in _PRELOADS}
    paths = [str(Path(path).absolute()) for path in sys.path]
    return kept | {"PYTHONPATH": os.pathsep.join(paths)}


def _log(path: Path) -> int:
    folder = make_folder(path)
    try:
        log = open_file(folder, LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    finally:
        os.close(folder)
    if os.fstat(log).st_size > _LOG_BYTES:
        os.ftruncate(log, 0)
    return log
