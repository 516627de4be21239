"""Recorded checkpoints: public configs as data, each number with where it is known from.

One JSON file per family stands in this folder. Reading one never touches a hub.
"""

from __future__ import annotations

import difflib
import json
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

FOLDER = Path(__file__).parent

_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
#: Above any count or size of a model, so that a slip of the keyboard does not build for ever.
LARGEST = 2_000_000

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


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
        is_default: whether it is no checkpoint but the defaults of the family's config class.
    """

    model_config = ConfigDict(extra="forbid")

    id: str
    reference: bool = False
    reason: str | None
    published_parameters: PublishedParameters | None
    config_source: str | None
    config: dict[str, JsonValue]
    known_from: dict[str, str] = Field(default_factory=dict)
    is_default: bool = False

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
    if not isinstance(entries, list):
        raise BrokenConfig(f"{path.name}: key 'checkpoints': not a list of recorded checkpoints")
    good: dict[str, RecordedCheckpoint] = {}
    broken = []
    for position, entry in enumerate(entries):
        try:
            record = _checked(entry, position, model_type)
            if record.id in good:
                raise BrokenConfig(f"{model_type} checkpoint {record.id!r}: key 'id': recorded twice")
            good[record.id] = record
        except BrokenConfig as error:
            broken.append(error)
    return list(good.values()), broken


def _checked(entry: object, position: int, model_type: str) -> RecordedCheckpoint:
    name = entry.get("id") if isinstance(entry, dict) else None
    label = f"{model_type} checkpoint {name if isinstance(name, str) else f'number {position + 1}'!r}"
    try:
        record = RecordedCheckpoint.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the entry"
        raise BrokenConfig(f"{label}: key {key!r}: {first['msg'].lower()}") from error
    if not _ID.fullmatch(record.id):
        raise BrokenConfig(f"{label}: key 'id': not a repository id of the form owner/name")
    if record.reason is None:
        check_config(record)
    elif "architectures" in record.config:
        check_architectures(record)
    named = record.config.get("model_type", model_type)
    if named != model_type:
        raise BrokenConfig(f"{label}: config key 'model_type': {named!r} is another family")
    return record


def check_config(record: RecordedCheckpoint) -> None:
    """Check the config's own keys, before anything is built from it.

    Raises:
        BrokenConfig: naming the checkpoint and the key.
    """
    if not isinstance(record.config.get("model_type"), str):
        raise _broken(record, "model_type", "missing, or not a string")
    check_architectures(record)
    for key, value in record.config.items():
        if not (key.startswith("num_") or key.endswith("_size")):
            continue
        for number in value if isinstance(value, list) else [value]:
            if number is None and not isinstance(value, list):
                continue
            if isinstance(number, bool) or not isinstance(number, int):
                raise _broken(record, key, f"{number!r} is not a whole number")
            if number < 0:
                raise _broken(record, key, f"{number} is negative")
            if number > LARGEST:
                raise _broken(record, key, f"{number} is larger than any model has")
    _check_heads(record)


def _check_heads(record: RecordedCheckpoint) -> None:
    heads, kv_heads, width = (
        record.config.get(key) or 0 for key in ("num_attention_heads", "num_key_value_heads", "hidden_size"))
    if not isinstance(heads, int) or not heads:
        return
    if isinstance(kv_heads, int) and kv_heads and heads % kv_heads:
        raise _broken(record, "num_attention_heads", f"{heads} is not a multiple of 'num_key_value_heads' {kv_heads}")
    states_head_dim = any("head_dim" in key for key in record.config)
    if not states_head_dim and isinstance(width, int) and width % heads:
        raise _broken(record, "num_attention_heads", f"'hidden_size' {width} does not split into {heads} heads")


def check_architectures(record: RecordedCheckpoint) -> None:
    """Check that the config names classes, and nothing else, as its architectures.

    Raises:
        BrokenConfig: naming the checkpoint and the key.
    """
    architectures = record.config.get("architectures")
    if not isinstance(architectures, list) or not architectures:
        raise _broken(record, "architectures", "missing, or not a list with a class name")
    for name in architectures:
        if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
            raise _broken(record, "architectures", f"{name!r} is not the name of a class")


def _broken(record: RecordedCheckpoint, key: str, why: str) -> BrokenConfig:
    return BrokenConfig(f"checkpoint {record.id!r}: config key {key!r}: {why}")


@cache
def _all_recorded() -> dict[str, RecordedCheckpoint]:
    found: dict[str, RecordedCheckpoint] = {}
    for model_type in families_recorded():
        # A file that cannot be read takes its own family away, and no other.
        with suppress(BrokenConfig):
            found |= {record.id: record for record in read_family(model_type)[0]}
    return found


def recorded(checkpoint: str) -> RecordedCheckpoint:
    """The recorded checkpoint of that id; for a ``model_type``, its config class's defaults.

    Raises:
        KeyError: with the nearest recorded id.
    """
    known = _all_recorded()
    if checkpoint in known:
        return known[checkpoint]
    if "/" not in checkpoint:
        from encyclopedia.coverage import default_record

        with suppress(KeyError):
            return default_record(checkpoint)
    spelled = {name.lower(): name for name in known}
    near = difflib.get_close_matches(checkpoint.lower(), spelled, n=1, cutoff=0.0)
    hint = f"; the nearest is {spelled[near[0]]!r}" if near else ""
    raise KeyError(f"no recorded checkpoint {checkpoint!r}{hint}")
