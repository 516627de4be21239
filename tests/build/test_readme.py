"""The README's table of families by sort is the built site's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_families_is_the_sites() -> None:
    result = subprocess.run([sys.executable, "scripts/readme.py", "--check"], cwd=ROOT, capture_output=True, text=True,
                            check=False)
    assert result.returncode == 0, result.stdout + result.stderr
