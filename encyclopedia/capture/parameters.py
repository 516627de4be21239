"""Parameter counts of a built model."""

from __future__ import annotations

from torch import nn

from encyclopedia.facts import ParameterCounts
from encyclopedia.families import Family
from encyclopedia.model.kinds import own_counts
from encyclopedia.model.structure import blocks_of, find_mixture, find_stack, find_sublayers


def count_parameters(model: nn.Module, family: Family) -> ParameterCounts:
    """All parameters, tied ones once, and those active for one token.

    Active leaves out the share of the routed experts that a token is not sent to.
    """
    total = sum(parameter.numel() for parameter in model.parameters())
    idle = 0
    for block in blocks_of(model, find_stack(model, model.config)):
        for sublayer in find_sublayers(block):
            for experts, num_experts, top_k in _experts(sublayer.module, family):
                held = sum(parameter.numel() for parameter in experts.parameters())
                idle += held * (num_experts - top_k) // num_experts
    return ParameterCounts(total=total, active=total - idle)


def _experts(module: nn.Module, family: Family) -> list[tuple[nn.Module, int, int]]:
    parts = find_mixture(module)
    declared = family.classes.get(type(module).__name__)
    if parts is not None:
        experts, router = module.get_submodule(parts.experts), module.get_submodule(parts.router)
        counts = own_counts(module) | own_counts(experts) | own_counts(router)
        return [(experts, counts["num_experts"], counts["top_k"])]
    if declared is not None and declared.experts:
        counts = own_counts(module)
        return [(module.get_submodule(name), counts["num_experts"], counts["top_k"]) for name in declared.experts]
    return []
