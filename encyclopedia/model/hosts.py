"""Building the host classes and standard names for one native model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from encyclopedia.families import Declared, Family
from encyclopedia.model import envoys
from encyclopedia.model.locations import (
    attention_locations,
    block_locations,
    mixture_locations,
    mlp_locations,
    parse_all,
)
from encyclopedia.model.structure import Mixture, Stack, Sublayer, blocks_of, find_sublayers


@dataclass(frozen=True)
class Standard:
    """What nnsight is given to know the standard names: host classes and module aliases."""

    host_classes: Mapping[type[nn.Module], type[envoys.StandardHost]]
    aliases: Mapping[str | type[nn.Module], str]


def standardize(model: nn.Module, stack: Stack, family: Family) -> Standard:
    """Host classes by native class, and the aliases that give modules their standard names."""
    hosts: dict[type[nn.Module], type[envoys.StandardHost]] = {}
    aliases: dict[str | type[nn.Module], str] = {}
    for name in ("embed_tokens", "layers", "norm", "lm_head"):
        path = getattr(stack, name)
        if path != name:
            aliases[path] = name
    shared_classes = set()
    for block in blocks_of(model, stack):
        if type(block) in hosts and all(type(child) in hosts for child in _sublayer_modules(block)):
            continue
        sublayers = find_sublayers(block)
        hosts.setdefault(type(block), _serve(
            envoys.Block, block, block_locations(block, sublayers), family))
        for sublayer in sublayers:
            if sublayer.name != sublayer.host:
                aliases[type(sublayer.module)] = sublayer.host
            if sublayer.mixture is not None:
                router = sublayer.module.get_submodule(sublayer.mixture.router)
                if sublayer.mixture.router != "router":
                    aliases[type(router)] = "router"
                if sublayer.mixture.shared is not None:
                    shared_classes.add(sublayer.module.get_submodule(sublayer.mixture.shared))
            hosts.setdefault(type(sublayer.module), _serve_sublayer(sublayer, family))
    for shared in shared_classes:
        hosts[type(shared)] = _serve(envoys.PlacedMlp, shared, mlp_locations(shared), family)
    return Standard(hosts, aliases)


def _sublayer_modules(block: nn.Module) -> list[nn.Module]:
    return [sublayer.module for sublayer in find_sublayers(block)]


def _serve_sublayer(sublayer: Sublayer, family: Family) -> type[envoys.StandardHost]:
    module, parts = sublayer.module, sublayer.mixture
    declared = family.classes.get(type(module).__name__, Declared())
    if sublayer.host == "self_attn":
        return _serve(envoys.Attention, module, attention_locations(module), family)
    if isinstance(parts, Mixture):
        return _serve(envoys.Mixture, module, mixture_locations(module, parts), family)
    base = envoys.Mixture if declared.like == "mixture" else envoys.Mlp
    return _serve(base, module, mlp_locations(module), family)


def _serve(
    base: type[envoys.StandardHost], module: nn.Module, derived: dict[str, str], family: Family
) -> type[envoys.StandardHost]:
    declared = family.classes.get(type(module).__name__, Declared())
    places = {**derived, **declared.locations}
    return envoys.serving(
        base,
        type(module),
        parse_all(places),
        declared.withdrawn,
        tuple(declared.locations),
    )
