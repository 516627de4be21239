"""Parameter counts of a built model."""

from __future__ import annotations

from torch import nn

from encyclopedia.facts import ParameterCounts
from encyclopedia.families import Family
from encyclopedia.structure.parts import Kind, Structure, Sublayer


def count_parameters(model: nn.Module, structure: Structure, family: Family) -> ParameterCounts:
    """All parameters, tied ones once, and those active for one token.

    Active leaves out the share of the routed experts that a token is not sent to.
    """
    total = sum(parameter.numel() for parameter in model.parameters())
    idle = sum(len(kind.blocks) * _idle(kind, sublayer, family) for kind in structure.kinds
               for sublayer in kind.sublayers)
    return ParameterCounts(total=total, active=total - idle)


def _idle(kind: Kind, sublayer: Sublayer, family: Family) -> int:
    """The parameters of a block's experts that no token visits at once."""
    declared = family.classes.get(type(sublayer.module).__name__)
    names = [sublayer.mixture.experts] if sublayer.mixture is not None else declared.experts if declared else ()
    num_experts, top_k = (kind.sizes.get(name) for name in ("num_experts", "top_k"))
    if not num_experts or not top_k:
        return 0
    held = [sum(parameter.numel() for parameter in sublayer.module.get_submodule(name).parameters()) for name in names]
    return sum(number * (num_experts - top_k) // num_experts for number in held)
