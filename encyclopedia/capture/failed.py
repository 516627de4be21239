"""The facts of a checkpoint that is not shown: what is recorded of it, and why it is not."""

from __future__ import annotations

from typing import Any

from encyclopedia.checkpoints import RecordedCheckpoint
from encyclopedia.facts import CheckpointFacts, Failure


def not_shown(record: RecordedCheckpoint) -> CheckpointFacts:
    """A checkpoint that its record says is not shown, with the record's reason."""
    architectures: Any = record.config.get("architectures") or [None]
    return CheckpointFacts(
        id=record.id, available=False, reason=record.reason, architecture=architectures[0],
        config_source=record.config_source, quirks=[], sizes={}, config=record.config, config_known_from={},
        parameters=None, kinds=[], hosts=[], module_classes=[], printout=[], support={}, checks=None, claims=[],
    )


def failed(record: RecordedCheckpoint, step: str, reason: str) -> CheckpointFacts:
    """A checkpoint that could not be verified.

    Args:
        record: the checkpoint.
        step: as in :class:`encyclopedia.facts.Failure`.
        reason: what the step said.
    """
    why = Failure(step=step, reason=reason)
    return not_shown(record.model_copy(update={"reason": reason})).model_copy(
        update={"failure": why, "is_default": record.is_default})
