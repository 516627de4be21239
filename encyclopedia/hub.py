"""Comparing recorded configs with the hub's, where a hub is reachable."""

from __future__ import annotations

import json
from pathlib import Path

from huggingface_hub import hf_hub_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from transformers import CONFIG_MAPPING

from encyclopedia.checkpoints import RecordedCheckpoint
from encyclopedia.instantiate import config_of


class HubUnreachable(Exception):
    """The hub did not give a checkpoint's config."""


def compare_with_hub(record: RecordedCheckpoint) -> list[str]:
    """Where the hub's config of a checkpoint says something else than the record, a line for each key.

    Both are read by transformers first, so that two spellings of one setting are equal. Keys that the record leaves
    out are not compared.

    Raises:
        BrokenConfig: where the record does not build.
        HubUnreachable: in one line, where the hub has no such file or cannot be reached.
    """
    try:
        path = hf_hub_download(record.id, "config.json")
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = " ".join(str(error).split())
        raise HubUnreachable(f"{record.id}: the hub did not give its config.json ({reason})") from error
    published = json.loads(Path(path).read_text(encoding="utf-8"))
    ours = config_of(record).to_dict()
    theirs = CONFIG_MAPPING[str(record.config["model_type"])].from_dict(published).to_dict()
    return [
        f"{record.id}: {key}: recorded {ours[key]!r}, the hub says {theirs.get(key)!r}"
        for key in record.config
        if key in ours and key != "model_type" and ours[key] != theirs.get(key)
    ]
