"""Recorded checkpoints: public configs as data, each number with where it is known from.

One JSON file per family stands in this folder. Reading one never touches a hub.
"""

from __future__ import annotations

import difflib
import json
import re
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

FOLDER = Path(__file__).parent

_ID = re.compile(r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")
_IDENTIFIER = re.compile(r"^[A-Za-z_]\w*$")


class BrokenConfig(Exception):
    """A recorded checkpoint that cannot be used, naming the checkpoint and the key."""


class PublishedParameters(BaseModel):
    """Parameter counts somebody published, a check on the recorded config."""

    model_config = ConfigDict(extra="forbid")

    total: int
    active: int | None
    known_from: str


class RecordedCheckpoint(BaseModel):
    """One checkpoint as recorded.

    Attributes:
        id: the hub's repository id.
        reference: whether the family's page opens on it.
        reason: why it is listed but not shown; ``None`` where it is shown.
        published_parameters: published counts, or ``None`` where none is known.
        config_source: where the config is known from, in a sentence.
        config: the config's keys as transformers reads them.
        known_from: where each key is known from, keys separated by commas.
    """

    model_config = ConfigDict(extra="forbid")

    id: str
    reference: bool = False
    reason: str | None
    published_parameters: PublishedParameters | None
    config_source: str | None
    config: dict[str, JsonValue]
    known_from: dict[str, str] = Field(default_factory=dict)

    def source_of(self, key: str) -> str | None:
        """Where the config's ``key`` is known from."""
        for keys, source in self.known_from.items():
            if key in (name.strip() for name in keys.split(",")):
                return source
        return None


def families_recorded(folder: Path = FOLDER) -> tuple[str, ...]:
    """Every ``model_type`` with a file of recorded checkpoints, sorted."""
    return tuple(sorted(path.stem for path in folder.glob("*.json")))


def read_family(model_type: str, folder: Path = FOLDER) -> tuple[list[RecordedCheckpoint], list[BrokenConfig]]:
    """The recorded checkpoints of a family, and an error for each one that is broken.

    Raises:
        BrokenConfig: where the file itself cannot be read as JSON.
    """
    path = folder / f"{model_type}.json"
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["checkpoints"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BrokenConfig(f"{path.name}: not a list of recorded checkpoints ({error})") from error
    good, broken = [], []
    for position, entry in enumerate(entries):
        try:
            good.append(_checked(entry, position, model_type))
        except BrokenConfig as error:
            broken.append(error)
    return good, broken


def _checked(entry: object, position: int, model_type: str) -> RecordedCheckpoint:
    name = entry.get("id") if isinstance(entry, dict) else None
    label = f"{model_type} checkpoint {name if isinstance(name, str) else f'number {position + 1}'!r}"
    try:
        record = RecordedCheckpoint.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the entry"
        raise BrokenConfig(f"{label}: key {key!r}: {first['msg'].lower()}") from error
    if not _ID.match(record.id):
        raise BrokenConfig(f"{label}: key 'id': not a repository id of the form owner/name")
    if record.reason is None:
        check_config(record)
    return record


def check_config(record: RecordedCheckpoint) -> None:
    """Check the config's own keys, before anything is built from it.

    Raises:
        BrokenConfig: naming the checkpoint and the key.
    """
    def broken(key: str, why: str) -> BrokenConfig:
        return BrokenConfig(f"checkpoint {record.id!r}: config key {key!r}: {why}")

    config = record.config
    if not isinstance(config.get("model_type"), str):
        raise broken("model_type", "missing, or not a string")
    architectures = config.get("architectures")
    if not isinstance(architectures, list) or not architectures:
        raise broken("architectures", "missing, or not a list with a class name")
    for name in architectures:
        if not isinstance(name, str) or not _IDENTIFIER.match(name):
            raise broken("architectures", f"{name!r} is not the name of a class")
    for key, value in config.items():
        if not (key.startswith("num_") or key.endswith("_size")):
            continue
        for number in value if isinstance(value, list) else [value]:
            if number is None and not isinstance(value, list):
                continue
            if isinstance(number, bool) or not isinstance(number, int):
                raise broken(key, f"{number!r} is not a whole number")
            if number < 0:
                raise broken(key, f"{number} is negative")


@cache
def _all_recorded() -> dict[str, RecordedCheckpoint]:
    return {record.id: record for model_type in families_recorded() for record in read_family(model_type)[0]}


def recorded(checkpoint: str) -> RecordedCheckpoint:
    """The recorded checkpoint of that id.

    Raises:
        KeyError: with the nearest recorded id.
    """
    known = _all_recorded()
    if checkpoint in known:
        return known[checkpoint]
    near = difflib.get_close_matches(checkpoint, known, n=1, cutoff=0.0)
    hint = f"; the nearest is {near[0]!r}" if near else ""
    raise KeyError(f"no recorded checkpoint {checkpoint!r}{hint}")
