"""Building the host classes and standard names for one native model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torch import nn

from encyclopedia.families import Declared, Family
from encyclopedia.model import envoys
from encyclopedia.model.locations import block_locations, parse_all, sublayer_locations
from encyclopedia.structure.parts import Kind, Structure, Sublayer
from encyclopedia.structure.recurrent import recurrent_values
from encyclopedia.structure.stack import Stack
from encyclopedia.vocabulary import STREAMS, Layout, values_of

#: Values that were not confirmed, with the reason, by native class and host.
Unconfirmed = Mapping[tuple[str, str], Mapping[str, str]]

HostClass = type[envoys.StandardHost]


@dataclass(frozen=True)
class Standard:
    """What nnsight is given to know the standard names: host classes and module aliases.

    Attributes:
        host_classes: by native class, or by path where blocks of one class are served differently.
        aliases: standard names by native name or class.
    """

    host_classes: Mapping[type[nn.Module] | str, HostClass]
    aliases: Mapping[str | type[nn.Module], str]


def standardize(model: nn.Module, structure: Structure, family: Family, unconfirmed: Unconfirmed) -> Standard:
    """Host classes and the aliases that give modules their standard names.

    Args:
        model: the native model.
        structure: what it is made of.
        family: what its family declares.
        unconfirmed: values not to serve, with the reason, by native class and host.
    """
    served: dict[type[nn.Module], list[tuple[HostClass, Kind, str]]] = {}
    shared = {type(expert) for kind in structure.kinds if (expert := _shared_expert(kind)) is not None}
    for kind in structure.kinds:
        for place, module, host_class in _hosts(kind, family, unconfirmed, shared):
            served.setdefault(type(module), []).append((host_class, kind, place))
    host_classes: dict[type[nn.Module] | str, HostClass] = {}
    for native, found in served.items():
        if native is not nn.Linear and len({_served(host_class) for host_class, _, _ in found}) == 1:
            host_classes[native] = found[0][0]
            continue
        for host_class, kind, place in found:
            for index in kind.blocks:
                path = f"{structure.stack.layers}.{index}"
                host_classes[f"{path}.{place}" if place else path] = host_class
    return Standard(host_classes, _aliases(model, structure))


def root_names(model: nn.Module, stack: Stack) -> dict[str, str]:
    """By standard part, the name it is reached by on the root: the standard one, where the model has not got it."""
    names = {}
    for part in ("embed_tokens", "layers", "norm", "lm_head"):
        path = getattr(stack, part)
        if path is not None:
            names[part] = path if path != part and hasattr(model, part) else part
    return names


def _served(host_class: HostClass) -> tuple:
    """What tells host classes apart: two with the same of it are one."""
    return (host_class.__mro__[1], tuple(host_class.locations.items()), tuple(host_class.withdrawn.items()),
            tuple(host_class.unconfirmed.items()))


def _shared_expert(kind: Kind) -> nn.Module | None:
    """The shared expert of a kind's mixture, or ``None``."""
    mlp = kind.sublayer("mlp")
    if mlp is None or mlp.mixture is None or mlp.mixture.shared is None:
        return None
    return mlp.module.get_submodule(mlp.mixture.shared)


def _hosts(
    kind: Kind, family: Family, unconfirmed: Unconfirmed, shared: set[type[nn.Module]]
) -> Iterator[tuple[str, nn.Module, HostClass]]:
    """Path in the block, module and host class of everything that carries values.

    A class that stands inside some mixture is served alike wherever it stands.
    """
    streams = dict.fromkeys(("layer_input", "layer_output"), STREAMS) if kind.streams is not None else {}
    yield "", kind.block, _serve(envoys.Block, kind, kind.block, block_locations(kind), family, unconfirmed, streams)
    for sublayer in kind.sublayers:
        base = _base(sublayer, family)
        base = envoys.PlacedMlp if base is envoys.Mlp and type(sublayer.module) in shared else base
        yield sublayer.name, sublayer.module, _serve(
            base, kind, sublayer.module, sublayer_locations(sublayer), family, unconfirmed)
        if sublayer.mixture is not None and sublayer.mixture.shared is not None:
            expert = sublayer.module.get_submodule(sublayer.mixture.shared)
            dense = _dense(expert)
            if dense is not None:
                yield (f"{sublayer.name}.{sublayer.mixture.shared}", expert, _serve(
                    envoys.PlacedMlp, kind, expert, dense, family, unconfirmed))


def _dense(shared: nn.Module) -> dict[str, str] | None:
    """The values of a shared expert that is built like a dense MLP."""
    children = dict(shared.named_children())
    down = next((name for name in ("down_proj", "w2", "output_linear") if name in children), None)
    activation = next((name for name in ("act_fn", "activation_fn", "act", "activation") if name in children), None)
    if down is None:
        return None
    found = {"mlp_output": "output", "mlp_neurons": f"{down}.input"}
    return found if activation is None else found | {"mlp_activation": f"{activation}.output"}


def _base(sublayer: Sublayer, family: Family) -> HostClass:
    declared = family.classes.get(type(sublayer.module).__name__, Declared())
    if sublayer.host == "self_attn":
        return envoys.Attention
    if sublayer.host == "linear_attn":
        return envoys.RecurrentMixer
    return envoys.Mixture if sublayer.mixture is not None or declared.like == "mixture" else envoys.Mlp


def _serve(
    base: HostClass, kind: Kind, module: nn.Module, derived: dict[str, str], family: Family, unconfirmed: Unconfirmed,
    layouts: Mapping[str, Layout] | None = None,
) -> HostClass:
    native = type(module).__name__
    declared = family.classes.get(native, Declared())
    recurrent = recurrent_values(module) if base is envoys.RecurrentMixer else None
    if recurrent is not None:
        derived = {**recurrent.locations, **derived}
    known = values_of(base.host)
    places = {**derived, **{name: place for name, place in declared.locations.items() if name in known}}
    left_out = {**declared.withdrawn, **declared.withdrawn_on.get(kind.attention_type or "", {})}
    withdrawn = {name: reason for name, reason in left_out.items() if name in known}
    if recurrent is not None:
        lacking = {name: reason for name, reason in recurrent.withdrawn.items() if name not in places}
        withdrawn = {**lacking, **withdrawn}
    return envoys.serving(
        base,
        type(module),
        parse_all(places),
        withdrawn,
        tuple(name for name in declared.locations if name in known),
        layouts or {},
        unconfirmed.get((native, base.host), {}),
        recurrent,
        [name for name, _ in module.named_children()],
    )


def _aliases(model: nn.Module, structure: Structure) -> dict[str | type[nn.Module], str]:
    aliases: dict[str | type[nn.Module], str] = {}
    for part, name in root_names(model, structure.stack).items():
        path = getattr(structure.stack, part)
        if path != name:
            aliases[path] = name
    sublayers = [sublayer for kind in structure.kinds for sublayer in kind.sublayers]
    hosts: dict[str, set[str]] = {}
    for sublayer in sublayers:
        hosts.setdefault(sublayer.name, set()).add(sublayer.host)
    for sublayer in sublayers:
        if sublayer.name != sublayer.host:
            # One native name may hold an attention on one block and a recurrent mixer on the next.
            key = sublayer.name if len(hosts[sublayer.name]) == 1 else type(sublayer.module)
            aliases[key] = sublayer.host
        if sublayer.mixture is not None and sublayer.mixture.router != "router":
            router = sublayer.module.get_submodule(sublayer.mixture.router)
            aliases[type(router) if type(router) is not nn.Linear else sublayer.mixture.router] = "router"
    return aliases



