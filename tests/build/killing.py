"""Starting the project's work in processes that may be killed, and looking at what is left of it."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.build.commands import environment

#: Seconds in which what a killed process had started ends too.
PATIENCE = 30


@dataclass(frozen=True)
class Ended:
    """How a piece of work ended.

    Attributes:
        code: its exit code, minus the signal's number where one ended it.
        said: what it wrote.
        seconds: how long it ran.
    """

    code: int
    said: str
    seconds: float


class Forks:
    """A process that has imported the project of one folder and forks for each piece of work."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def run(self, *work: str, kill_after: float | None = None, sent: signal.Signals = signal.SIGKILL) -> Ended:
        """Do one piece of work, or stop it after ``kill_after`` seconds; then wait for all that it has started.

        Returns:
            How it ended, which may be before it was stopped.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(self._log, *work, file=self._process.stdin, flush=True)
        child = int(self._process.stdout.readline())
        start = time.monotonic()
        if kill_after is not None:
            time.sleep(kill_after)
            # It may have ended by itself.
            with suppress(ProcessLookupError):
                os.kill(child, sent)
        code = int(self._process.stdout.readline())
        seconds = time.monotonic() - start
        wait_for_end(child)
        return Ended(code, self._log.read_text(encoding="utf-8"), seconds)


@contextmanager
def forks(project: Path, log: Path) -> Iterator[Forks]:
    """A :class:`Forks` for the copy ``project``."""
    script = project / "tests" / "build" / "forking.py"
    with subprocess.Popen([sys.executable, str(script)], cwd=project, env=environment(project), text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Forks(process, log)
        assert process.stdin is not None
        process.stdin.close()


def wait_for_end(session: int) -> None:
    """Wait until no process of a session is left."""
    until = time.monotonic() + PATIENCE
    while left := [process for process in _processes() if _session(process) == session]:
        assert time.monotonic() < until, f"still running: {left}"
        time.sleep(0.02)


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _session(process: int) -> int | None:
    try:
        # The name of the program, in parentheses, may hold blanks; the session is the sixth field.
        state, _, _, session, *_ = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state == "Z" else int(session)


def digest(folder: Path) -> str:
    """What a folder holds: every path with its content."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(path.relative_to(folder).as_posix().encode())
        found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder by their paths in it, without what is half written."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and path.suffix != ".part"}


def scraps(project: Path) -> list[Path]:
    """What a build leaves that was killed, and the next takes away."""
    return [*project.glob("site.new-*"), *project.glob("site.previous"),
            *(path for folder in ("site_src", ".cache") for path in (project / folder).rglob(".*.part"))]
