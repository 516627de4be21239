"""Measuring everything on one checkpoint's weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from transformers import PreTrainedConfig

from encyclopedia.capture.family import installed_versions
from encyclopedia.checkpoints import RecordedCheckpoint, read_family
from encyclopedia.measure.quantities import QUANTITIES, Measurement, Quantity
from encyclopedia.measure.records import FOLDER, MeasuredRecord, write_measured
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.weights import describe_weights, load_weights

#: Significant digits kept: fewer than a float32 computation has, so that another machine writes the same numbers.
DIGITS = 5

#: What tells one checkpoint of a family from another.
_TELLING = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
            "num_key_value_heads")


class MeasureError(Exception):
    """Weights that cannot be measured, with what to do."""


def measure_family(
    model_type: str, weights: str, checkpoint: str | None = None, folder: Path = FOLDER
) -> tuple[Path, list[MeasuredRecord]]:
    """Measure every quantity on real weights and write the family's file.

    Args:
        model_type: the family.
        weights: as :func:`encyclopedia.weights.load_weights` takes them.
        checkpoint: which recorded checkpoint they are, by its id or the part after the slash; without it, the only
            one whose sizes they have.
        folder: where the file goes.

    Returns:
        The file, and the records of this checkpoint.

    Raises:
        MeasureError: where the weights are not a recorded checkpoint's, or come without a tokenizer.
        WeightsError: where they cannot be loaded.
    """
    module, tokenizer = load_weights(weights, attn_implementation="eager", dtype=torch.float32)
    if tokenizer is None:
        raise MeasureError(f"{weights}: there is no tokenizer with these weights, and a prompt needs one")
    if module.config.model_type != model_type:
        raise MeasureError(f"{weights}: these weights are of the family {module.config.model_type!r}")
    record = matching_checkpoint(module.config, read_family(model_type)[0], checkpoint)
    model = StandardizedTransformer(module, tokenizer=tokenizer)
    name = Path(weights).name if Path(weights).exists() else weights
    command = f"encyclopedia measure {model_type} --weights {name} --checkpoint {record.id}"
    measured = measure_model(model, record.id, describe_weights(weights), command)
    return write_measured(model_type, measured, folder), measured


def measure_model(
    model: StandardizedTransformer, checkpoint: str, weights: str, command: str,
    quantities: Sequence[Quantity] = QUANTITIES,
) -> list[MeasuredRecord]:
    """Every quantity on a live model, as records.

    Args:
        model: the live model, with a tokenizer.
        checkpoint: the id that the records carry.
        weights: what the records say of the weights.
        command: what the records say measures them again.
        quantities: those measured.
    """
    versions = installed_versions().model_dump()
    with _one_thread():
        return [
            MeasuredRecord(
                checkpoint=checkpoint,
                quantity=quantity.slug,
                description=quantity.description,
                prompt=quantity.prompt,
                values=rounded(quantity.measure(model, token_ids(model, quantity.prompt))),
                unit=quantity.unit,
                weights=weights,
                versions=versions,
                command=command,
            )
            for quantity in quantities
        ]


def token_ids(model: StandardizedTransformer, prompt: str) -> torch.Tensor:
    """``prompt`` as the checkpoint's own tokenizer reads it, ``[1, seq]``."""
    ids: torch.Tensor = model.tokenizer(prompt, return_tensors="pt")["input_ids"]
    return ids


def matching_checkpoint(
    config: PreTrainedConfig, records: Sequence[RecordedCheckpoint], name: str | None
) -> RecordedCheckpoint:
    """The recorded checkpoint that a loaded config is.

    Args:
        config: of the loaded model.
        records: of its family.
        name: the checkpoint's id or the part after the slash, where it was given.

    Raises:
        MeasureError: where the sizes are another's, or more than one has them.
    """
    asked = [record for record in records if name in (None, record.id, record.id.rpartition("/")[2])]
    if not asked:
        raise MeasureError(f"no checkpoint {name!r} is recorded; there are {_listed(records)}")
    alike = [record for record in asked if not _differing(config, record)]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise MeasureError(f"these weights have the sizes of {_listed(alike)}: say which with --checkpoint")
    if name is not None:
        raise MeasureError(f"these weights are not {asked[0].id}: {'; '.join(_differing(config, asked[0]))}")
    raise MeasureError(f"these weights have the sizes of none of {_listed(records)}")


def rounded(values: Measurement) -> Measurement:
    """``values`` with :data:`DIGITS` significant digits; whole numbers and text as they are."""
    if isinstance(values, list):
        return [value if value is None else _rounded(value) for value in values]
    return values if isinstance(values, str) else _rounded(values)


def _rounded(value: int | float) -> int | float:
    if isinstance(value, int) or value == 0:
        return value
    return round(value, DIGITS - 1 - math.floor(math.log10(abs(value))))


def _differing(config: PreTrainedConfig, record: RecordedCheckpoint) -> list[str]:
    return [f"{key} is {getattr(config, key, None)}, not {record.config[key]}" for key in _TELLING
            if key in record.config and getattr(config, key, None) != record.config[key]]


def _listed(records: Sequence[RecordedCheckpoint]) -> str:
    return ", ".join(record.id for record in records)


@contextmanager
def _one_thread() -> Iterator[None]:
    # The order of a sum, and with it the last digits, depends on how many threads share it.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
