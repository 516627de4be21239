"""Checkpoints without weights, and their costs, made once per process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from encyclopedia.facts import Costs


@pytest.fixture(scope="session")
def costs() -> Callable[[str], Costs]:
    """``costs(id)``: the costs of a recorded checkpoint."""
    from encyclopedia.capture.costs import costs_of
    from encyclopedia.checkpoints import recorded
    from encyclopedia.instantiate import build_without_weights
    from encyclopedia.structure.derive import structure_of

    made: dict[str, Any] = {}

    def get(checkpoint: str) -> Costs:
        if checkpoint not in made:
            full: Any = build_without_weights(recorded(checkpoint), attn_implementation="eager")
            made[checkpoint] = costs_of(full, structure_of(full))
        return made[checkpoint]

    return get
