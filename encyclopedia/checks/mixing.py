"""Mixing: the pattern that is served is the one the values are mixed with, whatever happens to it on the way.

Outside training dropout does nothing, so a pattern read in front of it looks the same. Here it drops, the same entries
each time, and what is read has to be what is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import functional

from encyclopedia.checks.claims import TOLERANCE, BrokenClaim, Ledger, describe, difference
from encyclopedia.checks.patched import patched
from encyclopedia.model.readings import read_all
from encyclopedia.model.transformer import StandardizedTransformer

_PATTERN, _VALUES, _MIXED = _NAMES = ("attention_probabilities", "attention_values", "attention_head_outputs")


def check_mixing(model: StandardizedTransformer, input_ids: torch.Tensor, ledger: Ledger) -> None:
    """Check on every block that has them that pattern times values is the head outputs while dropout drops.

    Raises:
        BrokenClaim: for the first block where it is not.
    """
    with dropping():
        readings = read_all(model, input_ids, torch.Tensor.clone, fake=False, names=_NAMES)
    read = {(reading.layer, reading.name): reading.result for reading in readings if reading.host == "self_attn"}
    for layer in sorted({reading.layer for reading in readings if reading.layer is not None}):
        if not all((layer, name) in read for name in _NAMES):
            continue
        pattern, values = read[layer, _PATTERN], read[layer, _VALUES]
        if not values.shape[1] or pattern.shape[1] % values.shape[1]:
            shapes = f"{values.shape[1]} for {pattern.shape[1]}"
            raise BrokenClaim("meaning", f"self_attn.{_VALUES}", layer,
                              "value heads that the query heads share evenly", shapes)
        repeated = values.repeat_interleave(pattern.shape[1] // values.shape[1], dim=1)
        expected, mixed = (pattern.to(values.dtype) @ repeated).transpose(1, 2), read[layer, _MIXED]
        error = difference(expected, mixed)
        if not error <= TOLERANCE:
            raise BrokenClaim("meaning", _PATTERN, layer, f"the pattern that the values are mixed with, after dropout "
                              f"({describe(expected)} as {_MIXED})", f"{describe(mixed)}, off by {error:.2e}")
        ledger.held("meaning", "self_attn", _PATTERN, "with dropout on, it is still what attention_values are mixed by",
                    error)


@contextmanager
def dropping() -> Iterator[None]:
    """Dropout drops every third entry and scales the rest, in training or not, inside the ``with`` block."""

    def drop(tensor: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        position = torch.arange(tensor.numel(), device=tensor.device).view(tensor.shape)
        return tensor * (position % 3 != 0) * 1.5

    with patched(functional, "dropout", drop):
        yield
