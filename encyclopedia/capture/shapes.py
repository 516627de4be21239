"""The concrete shape of every value at full size."""

from __future__ import annotations

import torch

from encyclopedia.checks.layout import Seen
from encyclopedia.model.readings import Reading, read_all
from encyclopedia.model.transformer import StandardizedTransformer

#: The call that shapes are given for.
BATCH, SEQ = 1, 8


def read_shapes(model: StandardizedTransformer, layers: list[int]) -> list[Reading]:
    """Every available value of the root and of ``layers`` under fake tensors; each ``result`` is a :class:`Seen`."""
    return read_all(model, torch.zeros(BATCH, SEQ, dtype=torch.long), Seen.of, fake=True, layers=layers)
