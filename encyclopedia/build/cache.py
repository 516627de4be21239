"""The cache of captured facts: one file per checkpoint or notes file, named by everything its facts depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

import encyclopedia
from encyclopedia.capture.family import installed_versions
from encyclopedia.checkpoints import RecordedCheckpoint
from encyclopedia.facts import Fact
from encyclopedia.files import CannotWrite, write_text
from encyclopedia.measure.records import read_measured

Stored = TypeVar("Stored", bound=Fact)

_PACKAGE = Path(encyclopedia.__file__).parent

#: Code that capture runs or is shaped by; what only pages use is not in it.
_CAPTURE_CODE = ("vocabulary.py", "location.py", "facts.py", "quirks.py", "notes.py", "instantiate.py", "native.py",
                 "coverage.py", "hooks.py", "twin", "structure", "model", "capture", "checks",
                 "checkpoints/__init__.py", "families/__init__.py", "families/base.py")


class FactsCache(Generic[Stored]):
    """Facts of one model on disk, under ``folder``.

    An entry appears whole or not at all, and one that cannot be read counts as missing. Nothing but time is lost where
    an entry cannot be written either.

    Attributes:
        trouble: why the first such entry could not be written, on one line; ``None`` where all were.
    """

    def __init__(self, folder: Path, model: type[Stored]) -> None:
        self.folder = folder
        self.model = model
        self.trouble: str | None = None

    def get(self, key: str) -> Stored | None:
        """The facts stored under ``key``, or ``None``."""
        try:
            return self.model.model_validate_json((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, ValidationError):
            return None

    def put(self, key: str, facts: Stored) -> None:
        """Store ``facts`` under ``key``, where that can be written."""
        try:
            write_text(self.folder / f"{key}.json", facts.model_dump_json())
        except CannotWrite as error:
            self.trouble = self.trouble or f"{error}; the build goes on and captures this again next time"


def facts_key(model_type: str, record: RecordedCheckpoint) -> str:
    """The key of a checkpoint's facts: its record, its family's module, capture's code and the versions."""
    return _key(record.id.replace("/", "--"), model_type, [record.model_dump_json()])


def snippets_key(model_type: str, records: Sequence[RecordedCheckpoint], notes: str) -> str:
    """The key of what running a family's snippets showed: as a checkpoint's, with the notes and all records."""
    measured = (record.model_dump_json() for record in read_measured(model_type))
    return _key(f"notes-{model_type}", model_type,
                [notes, *measured, *(record.model_dump_json() for record in records)])


def _key(label: str, model_type: str, parts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for part in (*parts, _family_code(model_type), _capture_code(), installed_versions().model_dump_json()):
        digest.update(part.encode())
        digest.update(b"\0")
    return f"{label}-{digest.hexdigest()[:24]}"


def _family_code(model_type: str) -> str:
    path = _PACKAGE / "families" / f"{model_type}.py"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


@cache
def _capture_code() -> str:
    digest = hashlib.sha256()
    for name in _CAPTURE_CODE:
        path = _PACKAGE / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(_PACKAGE).as_posix().encode())
            digest.update(file.read_bytes() if file.is_file() else b"")
    return digest.hexdigest()
