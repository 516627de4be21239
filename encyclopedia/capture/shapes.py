"""The concrete shape of every value at full size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from transformers import PreTrainedModel

from encyclopedia.capture.stand_in import experts_stood_in_for
from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.layout import Seen
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
        experts = [sublayer.module.get_submodule(sublayer.mixture.experts) for kind in model.structure.kinds
                   for sublayer in kind.sublayers if sublayer.mixture is not None]
        with experts_stood_in_for(experts):
            # Anew, because the forwards of the model at hand are instrumented already.
            again = StandardizedTransformer(rebuilt(module), unconfirmed=unconfirmed)
            found = read_or_blame(again, ids, Seen.of, fake=True, layers=standing)
    layer_of = {place: layer for layer, place in places.items()}
    return [replace(reading, layer=None if reading.layer is None else layer_of[reading.layer]) for reading in found]
