"""Names of another library as data: one JSON file per family, with the releases that were compared."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from encyclopedia.files import write_text

FOLDER = Path(__file__).parent


class LensName(BaseModel):
    """A standard value and a hook that holds it, or that is taken for it.

    Attributes:
        host: the value's host, such as ``self_attn``.
        value: its standard name.
        hook: the hook's name, ``{i}`` standing for the block's index.
        same: whether the hook's tensor is the value, up to the order of the axes.
        error: the largest difference, over the value's largest magnitude; ``None`` where the shapes do not allow one.
        difference: how the tensors differ, or ``None`` where they do not.
        acts: whether an edit of the hook's tensor changes the logits; ``None`` where the bridge fails on one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str
    value: str
    hook: str
    same: bool
    error: float | None
    difference: str | None
    acts: bool | None = True


class LensRecord(BaseModel):
    """What a comparison on a family's twin found.

    Attributes:
        transformer_lens: the release of TransformerLens.
        transformers: the release of transformers.
        eager_only: hooks of ``names`` that see nothing where the model was loaded with its default attention.
        names: the values' hooks, in the vocabulary's order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    transformer_lens: str
    transformers: str
    eager_only: list[str]
    names: list[LensName]


def families_named(folder: Path = FOLDER) -> tuple[str, ...]:
    """Every ``model_type`` with a record, sorted."""
    return tuple(sorted(path.stem for path in folder.glob("*.json")))


def lens_record(model_type: str, folder: Path = FOLDER) -> LensRecord | None:
    """The family's record, or ``None`` where there is none.

    Raises:
        ValueError: where the file is not such a record.
    """
    path = folder / f"{model_type}.json"
    return LensRecord.model_validate_json(path.read_text(encoding="utf-8")) if path.is_file() else None


def lens_names(model_type: str, folder: Path = FOLDER) -> list[LensName]:
    """The names recorded for a family; none where nothing is."""
    record = lens_record(model_type, folder)
    return [] if record is None else list(record.names)


def write_names(model_type: str, record: LensRecord, folder: Path = FOLDER) -> Path:
    """Write the family's record, a line per name; returns the file."""
    names = ",\n".join(f"  {json.dumps(name.model_dump(), ensure_ascii=False)}" for name in record.names)
    head = "".join(f' "{key}": {json.dumps(value)},\n' for key, value in record.model_dump(exclude={"names"}).items())
    path = folder / f"{model_type}.json"
    write_text(path, f'{{\n{head} "names": [\n{names}\n ]\n}}\n')
    return path
