"""The comparisons that the project keeps: one file for each pair of releases, beside this module's package."""

from __future__ import annotations

from pathlib import Path

from encyclopedia.diff.records import Difference
from encyclopedia.files import write_text

_FOLDER = Path(__file__).parent / "history"


def write_record(difference: Difference) -> Path:
    """Keep a comparison.

    Returns:
        Its file.
    """
    path = _FOLDER / f"{difference.old.transformers}-{difference.new.transformers}.json"
    write_text(path, difference.model_dump_json(indent=1) + "\n")
    return path


def read_records() -> list[Difference]:
    """All that are kept, the newest release first."""
    found = [Difference.model_validate_json(path.read_text(encoding="utf-8")) for path in _FOLDER.glob("*.json")]
    return sorted(found, key=lambda entry: (_numbers(entry.new.transformers), _numbers(entry.old.transformers)),
                  reverse=True)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
