"""The concrete shape of every value at full size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.layout import Seen
from encyclopedia.checks.patched import patched
from encyclopedia.checks.reading import read_or_blame
from encyclopedia.model.readings import Reading
from encyclopedia.model.transformer import StandardizedTransformer

#: The call that shapes are given for.
BATCH, SEQ = 1, 8


def read_shapes(
    model: StandardizedTransformer, layers: list[int], rebuild: Callable[[], nn.Module]
) -> list[Reading]:
    """Every available value of the root and of ``layers`` under fake tensors; each ``result`` is a :class:`Seen`.

    Args:
        model: the live model at full size.
        layers: one block of each kind.
        rebuild: builds its native model again.
    """
    ids = torch.zeros(BATCH, SEQ, dtype=torch.long)
    try:
        return read_or_blame(model, ids, Seen.of, fake=True, layers=layers)
    except BrokenClaim as broken:
        if not isinstance(broken.__cause__, GuardOnDataDependentSymNode):
            raise
    with _experts_stood_in_for(model):
        # Anew, because the forwards of the model at hand are instrumented already.
        again = StandardizedTransformer(rebuild(), unconfirmed=model.left_out)
        return read_or_blame(again, ids, Seen.of, fake=True, layers=layers)


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
