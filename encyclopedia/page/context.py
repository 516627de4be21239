"""How long a text a checkpoint is made for."""

from __future__ import annotations

from encyclopedia.facts import CheckpointFacts

#: Keys under which configs say how many positions a text may have, the most telling first.
_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_target_positions", "model_max_length",
         "context_length")


def context_of(checkpoint: CheckpointFacts) -> int | None:
    """The most positions the config allows, or ``None`` where it sets no bound."""
    values = (checkpoint.config.get(key) for key in _KEYS)
    return next((value for value in values if type(value) is int and value > 0), None)
