"""The concrete shape of every value at full size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from transformers import PreTrainedModel

from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.layout import Seen
from encyclopedia.checks.patched import patched
from encyclopedia.checks.reading import read_or_blame
from encyclopedia.model.hosts import Unconfirmed
from encyclopedia.model.readings import Reading
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.twin import cut_model, rebuilt

#: The call that shapes are given for.
BATCH, SEQ = 1, 8


def read_shapes(full: PreTrainedModel, layers: Sequence[int], unconfirmed: Unconfirmed) -> list[Reading]:
    """Every available value of the root and of ``layers`` under fake tensors; each ``result`` is a :class:`Seen`.

    Blocks of a kind are alike in every parameter, so a model of full width with one of each tells all of them.

    Args:
        full: the native model without weights.
        layers: one block of each kind.
        unconfirmed: values that are not served.
    """
    cut = cut_model(full)
    module, places = cut if cut is not None else (full, {layer: layer for layer in layers})
    ids = torch.zeros(BATCH, SEQ, dtype=torch.long)
    standing = [places[layer] for layer in layers]
    model = StandardizedTransformer(module, unconfirmed=unconfirmed)
    try:
        found = read_or_blame(model, ids, Seen.of, fake=True, layers=standing)
    except BrokenClaim as broken:
        if not isinstance(broken.__cause__, GuardOnDataDependentSymNode):
            raise
        with _experts_stood_in_for(model):
            # Anew, because the forwards of the model at hand are instrumented already.
            again = StandardizedTransformer(rebuilt(module), unconfirmed=unconfirmed)
            found = read_or_blame(again, ids, Seen.of, fake=True, layers=standing)
    layer_of = {place: layer for layer, place in places.items()}
    return [replace(reading, layer=None if reading.layer is None else layer_of[reading.layer]) for reading in found]


@contextmanager
def _experts_stood_in_for(model: StandardizedTransformer) -> Iterator[None]:
    """For a while, experts that pick their tokens by number, which fake tensors have none of, return a tensor like
    their input: the shape is the same, and no value is read inside them."""

    def like_input(experts: nn.Module, hidden_states: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        return torch.empty_like(hidden_states)

    classes = {type(sublayer.module.get_submodule(sublayer.mixture.experts))
               for kind in model.structure.kinds for sublayer in kind.sublayers if sublayer.mixture is not None}
    with ExitStack() as stack:
        for experts in classes:
            stack.enter_context(patched(experts, "forward", like_input))
        yield
