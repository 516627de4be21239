"""The captured facts, made once per run, also where several processes share its tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from encyclopedia.facts import CheckpointFacts


@pytest.fixture(scope="session")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], CheckpointFacts]:
    """``captured(id)``: the facts of a recorded checkpoint."""
    from encyclopedia.capture.checkpoint import capture_checkpoint
    from encyclopedia.checkpoints import recorded
    from encyclopedia.facts import CheckpointFacts

    base, worker = tmp_path_factory.getbasetemp(), os.environ.get("PYTEST_XDIST_WORKER")
    folder = base if worker is None else base.parent
    made: dict[str, CheckpointFacts] = {}

    def get(checkpoint: str) -> CheckpointFacts:
        if checkpoint not in made:
            shared = folder / f"captured-{checkpoint.replace('/', '-')}.json"
            if shared.exists():
                made[checkpoint] = CheckpointFacts.model_validate_json(shared.read_text())
            else:
                made[checkpoint] = capture_checkpoint(recorded(checkpoint))
                partial = shared.with_suffix(f".{worker or 'alone'}")
                partial.write_text(made[checkpoint].model_dump_json(by_alias=True))
                partial.replace(shared)
        return made[checkpoint]

    return get
