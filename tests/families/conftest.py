"""Small twins of recorded checkpoints, each built once, and a family's notes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from encyclopedia import StandardizedTransformer
from encyclopedia.capture.snippets import run_snippets
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.facts import SnippetFacts
from encyclopedia.notes import python_blocks
from encyclopedia.twin import prompt_for, twin_of

NOTES = Path(__file__).parents[2] / "site_src" / "notes"


@pytest.fixture(scope="session")
def small() -> Callable[..., StandardizedTransformer]:
    """The live model over a checkpoint's small twin, by id and load."""

    @cache
    def build(checkpoint: str, **load: Any) -> StandardizedTransformer:
        model = StandardizedTransformer(twin_of(recorded(checkpoint), **load))
        model._module.requires_grad_(False)
        return model

    return build


@pytest.fixture(scope="session")
def prompt() -> Callable[..., torch.Tensor]:
    """Token ids ``[batch, seq]`` for a twin."""

    def make(model: StandardizedTransformer, *, batch: int = 1, seed: int = 0) -> torch.Tensor:
        return prompt_for(model._module, batch=batch, seed=seed)

    return make


@pytest.fixture(scope="session")
def run_notes() -> Callable[[str], list[SnippetFacts]]:
    """What running a family's notes shows."""

    def run(model_type: str) -> list[SnippetFacts]:
        records, broken = read_family(model_type)
        assert not broken
        reference = next(record.id for record in records if record.reference)
        blocks = python_blocks((NOTES / f"{model_type}.md").read_text(encoding="utf-8"))
        return run_snippets(blocks, records, reference, f"site_src/notes/{model_type}.md")

    return run
