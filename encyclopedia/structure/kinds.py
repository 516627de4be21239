"""Kinds of blocks: which have the same modules, classes, sizes and attention type."""

from __future__ import annotations

from typing import Any

from torch import nn

from encyclopedia.structure.stack import Stack, blocks_of

#: Attributes that number a block and say nothing about what it does.
_NUMBERING = ("layer_idx", "layer_id", "layer_index", "layer_number", "block_idx")


def group_blocks(model: nn.Module, stack: Stack) -> list[tuple[int, ...]]:
    """The indices of the blocks that are alike, in the order of each kind's first block."""
    groups: dict[tuple, list[int]] = {}
    for index, block in enumerate(blocks_of(model, stack)):
        groups.setdefault(_signature(index, block, model.config), []).append(index)
    return [tuple(indices) for indices in groups.values()]


def attention_type(index: int, block: nn.Module, config: Any) -> str:
    """The block's attention type, such as ``full_attention`` or ``sliding_attention``."""
    layer_types = getattr(config, "layer_types", None)
    if layer_types is not None and index < len(layer_types):
        return layer_types[index]
    return "sliding_attention" if sliding_window(block, config) is not None else "full_attention"


def sliding_window(block: nn.Module, config: Any) -> int | None:
    """The window of the block's attention, or ``None`` where it sees every earlier position.

    A config without a list of layer types has one window for all blocks, which the model puts in their mask; one as
    long as the longest text hides nothing.
    """
    for module in block.modules():
        window = getattr(module, "sliding_window", None)
        if isinstance(window, int) and window:
            return window
    window = getattr(config, "sliding_window", None)
    if getattr(config, "layer_types", None) is not None or not isinstance(window, int):
        return None
    return window if window < getattr(config, "max_position_embeddings", window + 1) else None


def switches_of(block: nn.Module) -> dict[str, bool | str]:
    """What the block's modules are told to do: their flags and choices, by path and attribute."""
    found: dict[str, bool | str] = {}
    for path, module in block.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, bool | str) and not name.startswith("_") and name not in ("training", *_NUMBERING):
                found[f"{path}.{name}" if path else name] = value
    return found


def _signature(index: int, block: nn.Module, config: Any) -> tuple:
    shapes = "; ".join(f"{name} {tuple(parameter.shape)}" for name, parameter in block.named_parameters())
    return (repr(block), shapes, attention_type(index, block, config), sliding_window(block, config),
            tuple(switches_of(block).items()))
