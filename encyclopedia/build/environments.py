"""Facts captured with another environment's Python, such as one with another release of transformers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from encyclopedia.build.project import Project


class BrokenEnvironment(Exception):
    """An environment that captured nothing."""


def python_of(folder: Path) -> Path | None:
    """The interpreter of the environment in ``folder``, or ``None`` where it is none."""
    places = (folder / "bin" / "python", folder / "Scripts" / "python.exe")
    return next((path for path in places if path.exists()), None)


def capture_with(python: Path, project: Project, families: Sequence[str], folder: Path) -> None:
    """Capture ``families`` (all where none is named) with this project's code and that interpreter's packages.

    Raises:
        BrokenEnvironment: with the last line it said.
    """
    command = [str(python), "-m", "encyclopedia", "facts", str(folder.resolve()), *families]
    environment = {**os.environ, "PYTHONPATH": str(project.root)}
    result = subprocess.run(command, cwd=project.root, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if not (folder / "index.json").is_file():
        said = [line for line in result.stdout.splitlines() if line.strip()]
        reason = said[-1] if said else f"exit code {result.returncode}"
        raise BrokenEnvironment(f"{python}: it captured nothing ({reason}); install the project's requirements there")
