"""How the tests call the command line of a copy of the project."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "encyclopedia", *arguments]


def environment(project: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(project), "NO_COLOR": "1", "COLUMNS": "100"}


def run_in(
    project: Path, *arguments: str, timeout: float = 300, inside: Sequence[str] = (), **options: Any
) -> subprocess.CompletedProcess[str]:
    """The command line of the copy ``project``.

    Args:
        project: the copy.
        arguments: the command's.
        timeout: seconds.
        inside: a command that runs the one it is given.
        options: as :func:`subprocess.run` takes them.
    """
    return subprocess.run([*inside, *command(*arguments)], capture_output=True, text=True, timeout=timeout, check=False,
                          **{"cwd": project, "env": environment(project), **options})


def said_once(result: subprocess.CompletedProcess[str], words: str) -> str:
    """The one line with ``words`` that a command has written beside its results."""
    assert "Traceback" not in result.stderr
    [line] = [line for line in result.stderr.splitlines() if words in line]
    return line
