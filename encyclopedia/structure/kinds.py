"""Kinds of blocks: which have the same modules, classes, sizes and attention type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from encyclopedia.model.structure import (
    DOWN_PROJECTIONS,
    Sublayer,
    attention_sizes,
    child_named,
    find_sublayers,
)


@dataclass(frozen=True)
class Kind:
    """Blocks that are alike.

    Attributes:
        blocks: their indices.
        block: the first of them.
        attention_type: as the config's ``layer_types`` spells it.
        sublayers: its sublayers.
    """

    blocks: tuple[int, ...]
    block: nn.Module
    attention_type: str
    sublayers: tuple[Sublayer, ...]


def find_kinds(blocks: list[nn.Module], config: Any) -> list[Kind]:
    """The kinds of ``blocks``, in the order of their first block."""
    groups: dict[tuple[str, str, int | None], list[int]] = {}
    for index, block in enumerate(blocks):
        groups.setdefault(_signature(index, block, config), []).append(index)
    return [
        Kind(tuple(indices), blocks[indices[0]], attention_type(indices[0], blocks[indices[0]], config),
             find_sublayers(blocks[indices[0]]))
        for indices in groups.values()
    ]


def attention_type(index: int, block: nn.Module, config: Any) -> str:
    """The block's attention type, such as ``full_attention`` or ``sliding_attention``."""
    layer_types = getattr(config, "layer_types", None)
    if layer_types is not None:
        return layer_types[index]
    return "sliding_attention" if sliding_window(block) is not None else "full_attention"


def sliding_window(block: nn.Module) -> int | None:
    """The window of the block's attention, or ``None`` where it sees every earlier position."""
    windows: list[Any] = [getattr(sublayer.module, "sliding_window", None) for sublayer in find_sublayers(block)
                          if sublayer.host == "self_attn"]
    return windows[0] if windows and windows[0] else None


def _signature(index: int, block: nn.Module, config: Any) -> tuple[str, str, int | None]:
    shapes = "; ".join(f"{name} {tuple(parameter.shape)}" for name, parameter in block.named_parameters())
    return f"{block!r} {shapes}", attention_type(index, block, config), sliding_window(block)


def sizes_of(kind: Kind, config: Any) -> dict[str, int]:
    """The kind's own sizes by name, read off its modules."""
    found: dict[str, int] = {"hidden_size": config.hidden_size}
    for sublayer in kind.sublayers:
        if sublayer.host == "self_attn":
            heads = attention_sizes(sublayer.module, config)
            found |= {"num_heads": heads.num_heads, "num_kv_heads": heads.num_kv_heads,
                      "head_dim": heads.head_dim, "qk_head_dim": heads.qk_head_dim}
        else:
            found |= mlp_sizes(sublayer, config)
    window = sliding_window(kind.block)
    if window is not None:
        found["sliding_window"] = window
    return found


def mlp_sizes(sublayer: Sublayer, config: Any) -> dict[str, int]:
    """Widths of a dense MLP, or the counts and widths of a mixture."""
    found: dict[str, int] = {}
    width = inner_width(sublayer.module)
    if width is not None:
        found["intermediate_size"] = width
    if sublayer.mixture is None:
        return found | own_counts(sublayer.module)
    experts = sublayer.module.get_submodule(sublayer.mixture.experts)
    router = sublayer.module.get_submodule(sublayer.mixture.router)
    found |= own_counts(sublayer.module) | own_counts(experts) | own_counts(router)
    if sublayer.mixture.shared is not None:
        shared = inner_width(sublayer.module.get_submodule(sublayer.mixture.shared))
        if shared is not None:
            found["shared_intermediate_size"] = shared
    expert_width = next((getattr(experts, name) for name in ("intermediate_dim", "intermediate_size", "expert_dim")
                         if isinstance(getattr(experts, name, None), int)), None)
    if expert_width is not None:
        found["expert_intermediate_size"] = expert_width
    return found


def inner_width(mlp: nn.Module) -> int | None:
    """The width of a dense MLP's neurons, off its down projection."""
    down = child_named(mlp, DOWN_PROJECTIONS)
    if down is None:
        return None
    width: Any = mlp.get_submodule(down).in_features
    return width


def own_counts(module: nn.Module) -> dict[str, int]:
    """The expert counts that a module states as its own attributes."""
    found = {name: getattr(module, name, None) for name in ("num_experts", "top_k")}
    return {name: count for name, count in found.items() if isinstance(count, int)}


def label_of(kind: Kind, sizes: dict[str, int]) -> str:
    """A short name, such as ``sliding 512 · mixture``."""
    attention = kind.attention_type.removesuffix("_attention")
    if "sliding_window" in sizes:
        attention = f"{attention} {sizes['sliding_window']}"
    has_experts = "num_experts" in sizes
    return f"{attention} · {'mixture' if has_experts else 'dense MLP'}"
