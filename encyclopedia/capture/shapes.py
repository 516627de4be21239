"""The concrete shape of every value at full size."""

from __future__ import annotations

import torch

from encyclopedia.checks.layout import Seen
from encyclopedia.checks.reading import read_or_blame
from encyclopedia.model.readings import Reading
from encyclopedia.model.transformer import StandardizedTransformer

#: The call that shapes are given for.
BATCH, SEQ = 1, 8


def read_shapes(model: StandardizedTransformer, layers: list[int]) -> list[Reading]:
    """Every available value of the root and of ``layers`` under fake tensors; each ``result`` is a :class:`Seen`."""
    return read_or_blame(model, torch.zeros(BATCH, SEQ, dtype=torch.long), Seen.of, fake=True, layers=layers)
