"""Finding the standard parts in a native model: container, stack, norms, sublayers, mixture.

Works on the module tree alone, with or without weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from encyclopedia.model.errors import UnknownStructure
from encyclopedia.model.operations import called_children

OUTPUT_PROJECTIONS = ("o_proj", "out_proj", "dense", "c_proj", "wo")
DOWN_PROJECTIONS = ("down_proj", "c_proj", "dense_4h_to_h", "fc2", "w2")


@dataclass(frozen=True)
class Mixture:
    """The parts of a mixture by native child name; ``shared`` is ``None`` where there is none."""

    router: str
    experts: str
    shared: str | None


@dataclass(frozen=True)
class Sublayer:
    """One sublayer of a block.

    Attributes:
        host: the standard host name, ``self_attn`` or ``mlp``.
        name: its native child name.
        module: the native module.
        norm: native name of the norm in front of it, or ``None``.
        post_norm: native name of the norm behind it, or ``None``.
        mixture: its parts where it is a mixture of experts.
    """

    host: str
    name: str
    module: nn.Module
    norm: str | None
    post_norm: str | None
    mixture: Mixture | None


@dataclass(frozen=True)
class Stack:
    """Where the model's standard parts are, as native paths from the causal model."""

    container: str
    embed_tokens: str
    layers: str
    norm: str
    lm_head: str


@dataclass(frozen=True)
class AttentionSizes:
    """Head counts and widths of one attention module."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    qk_head_dim: int


def find_stack(model: PreTrainedModel, config: Any) -> Stack:
    """The model's container, embedding, blocks, final norm and head.

    Raises:
        UnknownStructure: naming the part that was not found.
    """
    name = type(model).__name__
    paths = {id(module): path for path, module in model.named_modules()}

    def path_of(part: str, module: nn.Module | None) -> str:
        if module is None or id(module) not in paths:
            raise UnknownStructure(f"{name}: no {part} was found, so the standard names have nothing to stand on")
        return paths[id(module)]

    embed_tokens = path_of("embedding", model.get_input_embeddings())
    container_path = embed_tokens.rpartition(".")[0]
    container = model.get_submodule(container_path)
    depth = config.num_hidden_layers
    stacks = [module for module in container.children() if isinstance(module, nn.ModuleList) and len(module) == depth]
    norms = [module for module in container.children() if is_norm(module)]
    return Stack(
        container=container_path,
        embed_tokens=embed_tokens,
        layers=path_of(f"list of {depth} blocks", stacks[0] if stacks else None),
        norm=path_of("final norm", norms[-1] if norms else None),
        lm_head=path_of("head", model.get_output_embeddings()),
    )


def is_norm(module: nn.Module) -> bool:
    """Whether ``module`` is a normalisation layer, by its class's name."""
    return "norm" in type(module).__name__.lower()


def is_attention(module: nn.Module) -> bool:
    """Whether ``module`` is a softmax attention, by its class's name."""
    return type(module).__name__.endswith("Attention")


def is_mlp(module: nn.Module) -> bool:
    """Whether ``module`` stands in an MLP's place: a dense MLP or a mixture, by its class's name."""
    return any(word in type(module).__name__.lower() for word in ("mlp", "moe", "feedforward", "ffn"))


def find_sublayers(block: nn.Module) -> tuple[Sublayer, ...]:
    """The sublayers of ``block`` in forward order, each with the norms around it.

    The order in which the block's forward calls its children says which norm feeds what: of the norms between two
    sublayers the last one feeds the second, unless the block starts with a sublayer, in which case every norm
    stands behind one.
    """
    children = dict(block.named_children())
    calls = [name for name in called_children(block)
             if is_norm(children[name]) or is_attention(children[name]) or is_mlp(children[name])]
    places = [position for position, name in enumerate(calls) if not is_norm(children[name])]
    if not places:
        raise UnknownStructure(f"{type(block).__name__}: its forward calls no attention or MLP of its own")
    starts_with_norm = places[0] > 0
    found = []
    for order, position in enumerate(places):
        name = calls[position]
        before = calls[places[order - 1] + 1 if order else 0: position]
        after = calls[position + 1: places[order + 1] if order + 1 < len(places) else None]
        feeding = before[-1:] if starts_with_norm else []
        is_last = order + 1 == len(places)
        behind = after if is_last or not starts_with_norm else after[:-1]
        found.append(Sublayer(
            host="self_attn" if is_attention(children[name]) else "mlp",
            name=name,
            module=children[name],
            norm=feeding[0] if feeding else None,
            post_norm=behind[0] if behind else None,
            mixture=find_mixture(children[name]),
        ))
    return tuple(found)


def find_mixture(module: nn.Module) -> Mixture | None:
    """The parts of ``module`` where it is a mixture of experts with a router and experts module, else ``None``."""
    router = experts = shared = None
    for name, child in module.named_children():
        kind = type(child).__name__.lower()
        if "shared" in name and is_mlp(child):
            shared = name
        elif "experts" in kind or name == "experts":
            experts = name
        elif "router" in kind or name in ("gate", "router"):
            router = name
    return Mixture(router, experts, shared) if router and experts else None


def child_named(module: nn.Module, names: tuple[str, ...]) -> str | None:
    """The first of ``names`` that is a child of ``module``."""
    children = dict(module.named_children())
    return next((name for name in names if name in children), None)


def attention_sizes(attention: nn.Module, config: Any) -> AttentionSizes:
    """Head counts and widths, read off the projections of this one module.

    Raises:
        UnknownStructure: where the projections that tell them are missing.
    """
    head_dim = getattr(attention, "head_dim", None) or config.hidden_size // config.num_attention_heads
    qk_head_dim = getattr(attention, "qk_head_dim", head_dim)
    output = child_named(attention, OUTPUT_PROJECTIONS)
    keys = child_named(attention, ("k_proj",))
    if output is None or keys is None:
        raise UnknownStructure(f"{type(attention).__name__}: no output or key projection to read head counts from")
    num_heads = attention.get_submodule(output).in_features // head_dim
    num_kv_heads = attention.get_submodule(keys).out_features // qk_head_dim
    return AttentionSizes(num_heads, num_kv_heads, head_dim, qk_head_dim)


def blocks_of(model: nn.Module, stack: Stack) -> Iterator[nn.Module]:
    """The blocks of ``model`` in order."""
    yield from model.get_submodule(stack.layers).children()


def without_weights(module: nn.Module) -> bool:
    """Whether every parameter of ``module`` is on the meta device, so that it cannot compute.

    A model that keeps part of its weights elsewhere until they are needed has some of them there too, and computes.
    """
    return all(parameter.device == torch.device("meta") for parameter in module.parameters())
