"""Rotary frequencies that follow the length of the input, held still while shapes are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn


@contextmanager
def settled_rotary(model: nn.Module) -> Iterator[None]:
    """Keep the rotary frequencies of ``model`` from following the input, inside the ``with`` block.

    Such a rotary compares numbers in the position ids, and fake tensors hold none; the frequencies change no shape.
    """
    kinds: dict[Any, Any] = {module: vars(module)["rope_type"] for module in model.modules()
                             if "rope_type" in vars(module)}
    try:
        for module, kind in kinds.items():
            module.rope_type = dict.fromkeys(kind, "default") if isinstance(kind, dict) else "default"
        yield
    finally:
        for module, kind in kinds.items():
            module.rope_type = kind
