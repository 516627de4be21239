"""Parameter counts of a built model, and what each of them is part of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from torch import nn

from encyclopedia.facts import ParameterCounts, RoleParameters
from encyclopedia.families import Family
from encyclopedia.structure.mixture import find_mixture
from encyclopedia.structure.parts import Kind, Mixture, Structure, Sublayer
from encyclopedia.structure.stack import blocks_of, is_norm

#: The roles in a block and outside, in the order they are told in.
ROLES = ("attention", "recurrent", "mlp", "router", "experts", "shared", "norm", "other")
OUTSIDE = ("embedding", "norm", "head", "other")

_OF_HOST = {"self_attn": "attention", "linear_attn": "recurrent", "mlp": "mlp"}


def count_parameters(model: nn.Module, structure: Structure, family: Family) -> ParameterCounts:
    """All parameters, tied ones once, and those active for one token.

    Active leaves out the share of the routed experts that a token is not sent to. What several blocks share stands
    outside the blocks.
    """
    roles = [role for kind in structure.kinds for role in parameters_by_role(model, structure, kind, family)
             for _ in kind.blocks]
    outside = _outside(model, structure)
    counted = [*roles, *outside]
    return ParameterCounts(total=sum(role.total for role in counted), active=sum(role.active for role in counted),
                           outside=outside)


def parameters_by_role(model: nn.Module, structure: Structure, kind: Kind, family: Family) -> list[RoleParameters]:
    """The parameters of one block of ``kind``, by role; those it shares with other blocks stand outside."""
    shared = _shared_by_blocks(model, structure)
    owner = _Owners.of(kind, family)
    totals, idle = dict.fromkeys(ROLES, 0), dict.fromkeys(ROLES, 0)
    for path, parameter in kind.block.named_parameters():
        if id(parameter) not in shared:
            totals[owner.role(path)] += parameter.numel()
    for modules in owner.experts:
        idle["experts"] += _idle(kind, [module for module in modules if not shared.intersection(
            id(parameter) for parameter in module.parameters())])
    return [RoleParameters(role=role, total=total, active=total - idle[role])
            for role, total in totals.items() if total]


@dataclass
class _Owners:
    """Which role each module of a block has, by path; the innermost named one counts.

    Attributes:
        block: the block.
        roles: the role by the path of a module.
        experts: the modules that hold the experts of each mixture.
    """

    block: nn.Module
    roles: dict[str, str] = field(default_factory=dict)
    experts: list[list[nn.Module]] = field(default_factory=list)

    @classmethod
    def of(cls, kind: Kind, family: Family) -> _Owners:
        """The owners in a block of ``kind``."""
        found = cls(kind.block)
        for sublayer in kind.sublayers:
            for name in loose_layers(kind.block, sublayer):
                found.roles[name] = _OF_HOST[sublayer.host]
            declared = family.classes.get(type(sublayer.module).__name__)
            if sublayer.mixture is not None:
                found.add_mixture(f"{sublayer.name}.", sublayer.mixture)
            elif declared is not None and declared.experts:
                found.roles |= {f"{sublayer.name}.{name}": "router" for name, _ in sublayer.module.named_children()
                                if "router" in name}
                found.add_experts(f"{sublayer.name}.", declared.experts)
        beside = find_mixture(kind.block)
        if beside is not None:
            found.add_mixture("", beside)
        return found

    def add_mixture(self, prefix: str, mixture: Mixture) -> None:
        """Name the parts of a mixture, whose gate of the shared expert belongs to that expert."""
        module = self.block.get_submodule(prefix.rstrip("."))
        self.roles |= {f"{prefix}{name}": "shared" for name, _ in module.named_children() if "shared" in name}
        self.roles[f"{prefix}{mixture.router}"] = "router"
        self.add_experts(prefix, (mixture.experts,))

    def add_experts(self, prefix: str, names: Iterable[str]) -> None:
        """Name the modules that hold experts."""
        self.roles |= {f"{prefix}{name}": "experts" for name in names}
        self.experts.append([self.block.get_submodule(f"{prefix}{name}") for name in names])

    def role(self, path: str) -> str:
        """The role of a parameter of the block."""
        if is_of_norm(self.block, path):
            return "norm"
        return next((self.roles[module] for module in _ancestors(path) if module in self.roles), "other")


def loose_layers(block: nn.Module, sublayer: Sublayer) -> list[str]:
    """The children of ``block`` that a sublayer is made of: one module, or the layers from its first to its last."""
    names = [name for name, _ in block.named_children()]
    if sublayer.name == sublayer.first or not {sublayer.name, sublayer.first} <= set(names):
        return [sublayer.name]
    start, end = sorted((names.index(sublayer.first), names.index(sublayer.name)))
    return names[start: end + 1]


def is_of_norm(root: nn.Module, path: str) -> bool:
    """Whether a parameter of ``root`` is a norm's own; one of a layer that stands in a module with norms is not."""
    holder = root.get_submodule(path.rpartition(".")[0])
    return holder is not root and is_norm(holder) and not any(True for _ in holder.children())


def _ancestors(path: str) -> Iterator[str]:
    """The paths of the modules around a parameter, the innermost first, the outermost left out."""
    while "." in path:
        path = path.rpartition(".")[0]
        yield path


def _shared_by_blocks(model: nn.Module, structure: Structure) -> set[int]:
    """The identities of the parameters that stand in several blocks."""
    found: dict[int, int] = {}
    for block in blocks_of(model, structure.stack):
        for parameter in block.parameters():
            found[id(parameter)] = found.get(id(parameter), 0) + 1
    return {identity for identity, count in found.items() if count > 1}


def _outside(model: nn.Module, structure: Structure) -> list[RoleParameters]:
    stack = structure.stack
    inside = {id(parameter) for block in blocks_of(model, stack) for parameter in block.parameters()}
    alone = inside - _shared_by_blocks(model, structure)
    modules: Mapping[str, nn.Module] = dict(model.named_modules())
    totals = dict.fromkeys(OUTSIDE, 0)
    for path, parameter in model.named_parameters():
        if id(parameter) in alone:
            continue
        around = [] if id(parameter) in inside else list(_ancestors(path))
        if any(each == stack.embed_tokens or isinstance(modules[each], nn.Embedding) for each in around):
            role = "embedding"
        elif around and is_of_norm(model, path):
            role = "norm"
        else:
            role = "head" if stack.lm_head in around else "other"
        totals[role] += parameter.numel()
    return [RoleParameters(role=role, total=total, active=total) for role, total in totals.items() if total]


def _idle(kind: Kind, modules: list[nn.Module]) -> int:
    """The parameters of a block's experts that no token visits at once."""
    num_experts, top_k = (kind.sizes.get(name) for name in ("num_experts", "top_k"))
    if not num_experts or not top_k:
        return 0
    held = [sum(parameter.numel() for parameter in module.parameters()) for module in modules]
    return sum(number * (num_experts - top_k) // num_experts for number in held)
