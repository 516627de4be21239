"""Moving every parameter of a small model off its initial value."""

from __future__ import annotations

import math

import torch
from torch import nn

#: How far a vector's entries are moved, in standard deviations of a unit normal.
MOVED = 0.3


def randomize(model: nn.Module, seed: int) -> None:
    """Move every parameter of ``model``, and every vector that is saved with it, off its initial value.

    Matrices are drawn so that a unit input gives a unit output; vectors (gains, gates, biases) keep their initial
    value as the mean. A saved buffer of more than one axis is a table that the class computed, such as a mask of
    decays, and stays. The draw is of its own generator, so the same seed gives the same numbers.
    """
    generator = torch.Generator().manual_seed(seed)
    saved = set(model.state_dict())
    vectors = [buffer for name, buffer in model.named_buffers() if name in saved and buffer.ndim < 2]
    with torch.no_grad():
        for tensor in [*model.parameters(), *vectors]:
            if not tensor.is_floating_point():
                continue
            noise = torch.randn(tensor.shape, generator=generator)
            if tensor.ndim < 2:
                tensor.add_(MOVED * noise)
            else:
                tensor.copy_(noise / math.sqrt(tensor.shape[-1]))
        for name, table in model.named_buffers():
            # Indices that only a checkpoint fills: a row of different ones keeps them in range and tells slots apart.
            if name in saved and table.ndim > 1 and not table.is_floating_point() and not table.any():
                table.copy_(torch.rand(table.shape, generator=generator).argsort(-1))
