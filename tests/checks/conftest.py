"""Twins that no check has touched, built once and copied for each check."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@pytest.fixture(scope="session")
def fresh_twin() -> Callable[..., PreTrainedModel]:
    """``fresh_twin(id, attention)``: a twin that nothing has wrapped, a copy per call."""
    from encyclopedia.checkpoints import recorded
    from encyclopedia.twin import twin_of

    @cache
    def built(checkpoint: str, attention: str) -> PreTrainedModel:
        return twin_of(recorded(checkpoint), attn_implementation=attention)

    def make(checkpoint: str, attention: str = "eager") -> PreTrainedModel:
        return copy.deepcopy(built(checkpoint, attention))

    return make
