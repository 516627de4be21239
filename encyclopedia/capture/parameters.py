"""Parameter counts of a built model."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from encyclopedia.facts import ParameterCounts
from encyclopedia.families import Family
from encyclopedia.structure.mixture import find_mixture
from encyclopedia.structure.parts import Kind, Structure


def count_parameters(model: nn.Module, structure: Structure, family: Family) -> ParameterCounts:
    """All parameters, tied ones once, and those active for one token.

    Active leaves out the share of the routed experts that a token is not sent to.
    """
    total = sum(parameter.numel() for parameter in model.parameters())
    idle = sum(len(kind.blocks) * _idle(kind, modules) for kind in structure.kinds
               for modules in _experts(kind, family))
    return ParameterCounts(total=total, active=total - idle)


def _experts(kind: Kind, family: Family) -> Iterator[list[nn.Module]]:
    """The modules that hold a mixture's experts, of every mixture in a block: in a sublayer, or beside them."""
    for sublayer in kind.sublayers:
        declared = family.classes.get(type(sublayer.module).__name__)
        names = [sublayer.mixture.experts] if sublayer.mixture is not None else declared.experts if declared else ()
        yield [sublayer.module.get_submodule(name) for name in names]
    beside = find_mixture(kind.block)
    if beside is not None:
        yield [kind.block.get_submodule(beside.experts)]


def _idle(kind: Kind, modules: list[nn.Module]) -> int:
    """The parameters of a block's experts that no token visits at once."""
    num_experts, top_k = (kind.sizes.get(name) for name in ("num_experts", "top_k"))
    if not num_experts or not top_k:
        return 0
    held = [sum(parameter.numel() for parameter in module.parameters()) for module in modules]
    return sum(number * (num_experts - top_k) // num_experts for number in held)
