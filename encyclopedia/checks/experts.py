"""Recomputing a mixture of experts by its own modules, apart from any trace."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import nn

from encyclopedia.structure.operations import undecorated


def one_slot_at_a_time(
    experts: nn.Module, hidden_states: torch.Tensor, indices: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """Each slot's weighted output, from the experts' own loop called with that slot alone.

    Args:
        experts: transformers' experts module.
        hidden_states: ``[tokens, hidden_size]``.
        indices: ``[tokens, top_k]``.
        weights: ``[tokens, top_k]``.

    Returns:
        ``[tokens, top_k, hidden_size]``.
    """
    loop = undecorated(type(experts))
    slots = [loop(experts, hidden_states, indices[:, slot:slot + 1], weights[:, slot:slot + 1])
             for slot in range(indices.shape[1])]
    return torch.stack(slots, dim=1)


def scored(
    router: nn.Module, logits: torch.Tensor, returned: Sequence[object]
) -> tuple[str, torch.Tensor, torch.Tensor] | None:
    """The formula that makes the router's weights and indices out of its logits, found among the usual ones.

    Args:
        router: the native router.
        logits: ``[batch, seq, num_experts]`` as read.
        returned: what the router returns, tensors of ``[batch * seq, ...]``.

    Returns:
        The formula in words, the weights and the indices ``[batch, seq, top_k]``; ``None`` where none of the usual
        formulas gives what the router returns.
    """
    top_k, bias = getattr(router, "top_k", None), getattr(router, "e_score_correction_bias", None)
    if top_k is None:
        return None
    flat = logits.flatten(0, 1).float()
    scorings = (("softmax", flat.softmax(-1)), ("sigmoid", flat.sigmoid()))
    for (scoring, scores), normalised in itertools.product(scorings, (True, False)):
        chosen = (scores if bias is None else scores + bias).topk(top_k, dim=-1).indices
        weights = scores.gather(-1, chosen)
        if normalised:
            weights = weights / weights.sum(-1, keepdim=True)
        if any(isinstance(part, torch.Tensor) and part.shape == weights.shape and torch.allclose(part.float(), weights)
               for part in returned):
            text = f"the {scoring} of router_logits" + (", a bias added to choose" if bias is not None else "")
            text += ", divided by the sum over the chosen" if normalised else ""
            return (text, weights.to(logits.dtype).unflatten(0, logits.shape[:2]),
                    chosen.unflatten(0, logits.shape[:2]))
    return None
