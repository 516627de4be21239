"""How the tests call the command line of a copy of the project."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "encyclopedia", *arguments]


def environment(project: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(project), "NO_COLOR": "1", "COLUMNS": "100"}
