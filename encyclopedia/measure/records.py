"""Measured numbers as data: one JSON file per family, each record with all that it takes to measure it again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from encyclopedia.files import write_text

FOLDER = Path(__file__).parents[1] / "measured"


class MeasuredRecord(BaseModel):
    """One quantity, measured on one checkpoint's weights.

    Attributes:
        checkpoint: the recorded checkpoint's id.
        quantity: slug of the quantity.
        description: what was measured, in words.
        prompt: the text the model read.
        values: one number per block (``None`` for a block that has not got it), or a single one, or a token's text.
        unit: unit of the numbers.
        weights: which weights, and how they were loaded.
        versions: of the packages that computed it.
        command: the command that measures it again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    checkpoint: str
    quantity: str
    description: str
    prompt: str
    values: list[int | float | None] | int | float | str
    unit: str
    weights: str
    versions: dict[str, str]
    command: str


def read_measured(model_type: str, folder: Path = FOLDER) -> list[MeasuredRecord]:
    """What was measured for a family, in the file's order; nothing where there is no file.

    Raises:
        ValueError: where the file is not a list of records.
    """
    path = folder / f"{model_type}.json"
    if not path.is_file():
        return []
    entries = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(entries, list):
        raise ValueError(f"{path.name}: not a list of measured records")
    return [MeasuredRecord.model_validate(entry) for entry in entries]


def find_measured(records: Sequence[MeasuredRecord], quantity: str, checkpoint: str) -> MeasuredRecord:
    """The record of ``quantity`` on ``checkpoint``, given by its id or the part after the slash.

    Raises:
        LookupError: naming what is there.
    """
    on = [record for record in records if checkpoint in (record.checkpoint, record.checkpoint.rpartition("/")[2])]
    found = [record for record in on if record.quantity == quantity]
    if len(found) == 1:
        return found[0]
    if not on:
        known = ", ".join(dict.fromkeys(record.checkpoint for record in records)) or "nothing"
        raise LookupError(f"nothing was measured on {checkpoint!r}; there is {known}")
    raise LookupError(f"no single {quantity!r} was measured on {checkpoint!r}; "
                      f"there are {', '.join(record.quantity for record in on)}")


def write_measured(model_type: str, measured: Sequence[MeasuredRecord], folder: Path = FOLDER) -> Path:
    """Put ``measured`` in the family's file, in place of what it has of the same checkpoints; returns the file."""
    again = {record.checkpoint for record in measured}
    kept = [record for record in read_measured(model_type, folder) if record.checkpoint not in again]
    records = sorted([*kept, *measured], key=lambda record: record.checkpoint)
    path = folder / f"{model_type}.json"
    write_text(path, _as_json(records))
    return path


def _as_json(records: Sequence[MeasuredRecord]) -> str:
    """A line per field, so that a change of one number shows as one line."""
    blocks = [
        ",\n".join(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
                   for key, value in record.model_dump().items())
        for record in records
    ]
    return "[\n" + ",\n".join(f" {{\n{block}\n }}" for block in blocks) + "\n]\n"
