"""Recorded configs beside the hub's, where a hub is reachable."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import hf_hub_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from pydantic import JsonValue
from transformers import CONFIG_MAPPING

from encyclopedia.checkpoints import FOLDER, BrokenConfig, RecordedCheckpoint
from encyclopedia.checkpoints.writing import text_of
from encyclopedia.files import write_text
from encyclopedia.instantiate import config_of


class HubUnreachable(Exception):
    """The hub did not give a checkpoint's config."""


@dataclass(frozen=True)
class KeyDifference:
    """A key of a recorded config about which the hub says something else."""

    checkpoint: str
    key: str
    recorded: JsonValue
    published: JsonValue

    def __str__(self) -> str:
        return f"{self.checkpoint}: {self.key}: recorded {self.recorded!r}, the hub says {self.published!r}"


def compare_with_hub(record: RecordedCheckpoint) -> list[KeyDifference]:
    """Where the hub's config of a checkpoint says something else than the record.

    Both are read by transformers first, so that two spellings of one setting are equal. Keys that the record leaves
    out are not compared.

    Raises:
        BrokenConfig: where the record does not build, or the hub's config is of another family.
        HubUnreachable: in one line, where the hub has no such file or cannot be reached.
    """
    published = _published(record.id)
    model_type = str(record.config["model_type"])
    if published.get("model_type") != model_type:
        raise BrokenConfig(f"{record.id}: the hub's config has the model_type {published.get('model_type')!r}, "
                           f"the record {model_type!r}: record it in that family")
    ours = config_of(record).to_dict()
    theirs = CONFIG_MAPPING[model_type].from_dict(published).to_dict()
    return [KeyDifference(record.id, key, ours[key], theirs.get(key)) for key in record.config
            if key in ours and key != "model_type" and ours[key] != theirs.get(key)]


def _published(repository: str) -> dict[str, JsonValue]:
    try:
        found = json.loads(Path(hf_hub_download(repository, "config.json")).read_text(encoding="utf-8"))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = " ".join(str(error).split())
        raise HubUnreachable(f"{repository}: the hub did not give its config.json ({reason})") from error
    except ValueError as error:
        raise HubUnreachable(f"{repository}: the hub's config.json is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise HubUnreachable(f"{repository}: the hub's config.json is not an object")
    return found


def take_over(model_type: str, differences: Sequence[KeyDifference], *, source: str, folder: Path = FOLDER) -> Path:
    """Put what the hub says into the records of a family, each key with its new source.

    Args:
        model_type: the family.
        differences: what to change, of its checkpoints.
        source: where the keys are known from now, in words.
        folder: where the records are.

    Returns:
        The file that was written.
    """
    path = folder / f"{model_type}.json"
    family = json.loads(path.read_text(encoding="utf-8"))
    for entry in family["checkpoints"]:
        keys = []
        for difference in differences:
            if difference.checkpoint == entry["id"]:
                entry["config"][difference.key] = difference.published
                keys.append(difference.key)
        if keys:
            entry["known_from"] = _known_from(entry.get("known_from", {}), keys, source)
    write_text(path, text_of(family))
    return path


def _known_from(known: dict[str, str], keys: Sequence[str], source: str) -> dict[str, str]:
    """The sources by their keys, with ``keys`` moved to ``source``."""
    kept = {", ".join(name for name in names.split(", ") if name not in keys): said for names, said in known.items()}
    kept.pop("", None)
    return {**kept, ", ".join(keys): source}
