"""Which families there are: the text decoders of the installed transformers, and the ones recorded beside them."""

from __future__ import annotations

from functools import cache

from transformers.models.auto import modeling_auto

from encyclopedia.checkpoints import RecordedCheckpoint, families_recorded, read_family


@cache
def text_decoders() -> tuple[str, ...]:
    """Every ``model_type`` with a causal language model and none that is masked, translates or reads images."""
    others = (modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
              modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
              modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)
    return tuple(sorted(name for name in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
                        if not any(name in other for other in others)))


def all_families() -> tuple[str, ...]:
    """Every family that has a page, sorted."""
    return tuple(sorted({*text_decoders(), *families_recorded()}))


def reference_record(model_type: str) -> RecordedCheckpoint:
    """The checkpoint that stands for a family: of those shown its reference, else the first, else the defaults."""
    recorded = read_family(model_type)[0] if model_type in families_recorded() else []
    shown = [record for record in recorded if record.reason is None]
    return next((record for record in shown if record.reference), shown[0] if shown else default_record(model_type))


def default_record(model_type: str) -> RecordedCheckpoint:
    """The config class's own default as a checkpoint, for a family without a recorded public one.

    Raises:
        KeyError: where transformers has no causal language model of that type.
    """
    architecture = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[model_type]
    return RecordedCheckpoint(
        id=model_type,
        reference=True,
        reason=None,
        published_parameters=None,
        config_source="The defaults of the family's config class in transformers; no public checkpoint is recorded.",
        config={"architectures": [architecture], "model_type": model_type},
        is_default=True,
    )
