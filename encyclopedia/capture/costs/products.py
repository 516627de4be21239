"""Counting the multiply-adds of a forward's matrix products by where they run and what they multiply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

#: Matrix products by name, each with the position of its first operand; the second one follows it.
PRODUCTS = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1, "_grouped_mm": 0, "grouped_mm_fallback": 0, "mv": 0}

#: Where a product runs: in a block's recurrent mixer, in its experts, elsewhere in it, or outside the blocks.
RECURRENT, EXPERTS, BLOCK, OUTSIDE = "recurrent", "experts", "block", "outside"


@dataclass(frozen=True)
class Place:
    """Where products are counted.

    Attributes:
        block: the block's index, or ``None`` outside.
        part: ``recurrent``, ``experts``, ``block`` or ``outside``.
        of_weights: whether one operand is made of weights alone; else both come from the tokens.
    """

    block: int | None
    part: str
    of_weights: bool


@dataclass
class Counted:
    """Multiply-adds by place, how often each block was called, and which ran a convolution."""

    products: Counter[Place] = field(default_factory=Counter)
    calls: Counter[int | None] = field(default_factory=Counter)
    convolutions: set[int | None] = field(default_factory=set)


class WithoutValues(TorchDispatchMode):
    """Answers zero where a forward without weights asks a tensor for its number.

    Such questions are whether a text is longer than some limit and whether anything is masked; a short one's is not.
    """

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        if operation is torch.ops.aten._local_scalar_dense.default and arguments[0].is_meta:
            return torch.zeros((), dtype=arguments[0].dtype).item()
        return operation(*arguments, **(keywords or {}))


class _Counting(WithoutValues):
    """Counts the products of a forward.

    What depends on weights alone is told by its storage; every such tensor is kept alive so that none is reused.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.counted = Counted()
        self.standing: list[tuple[int | None, str]] = [(None, OUTSIDE)]
        self.kept: list[torch.Tensor] = list(model.parameters())
        self.weights = {_storage(parameter) for parameter in self.kept}

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        result = super().__torch_dispatch__(operation, types, arguments, keywords)
        name = operation.overloadpacket.__name__
        if name in PRODUCTS:
            self._count(*arguments[PRODUCTS[name]: PRODUCTS[name] + 2])
        elif name in ("convolution", "conv1d"):
            self.counted.convolutions.add(self.standing[-1][0])
        elif self._made_of_weights(arguments):
            for made in result if isinstance(result, list | tuple) else (result,):
                if isinstance(made, torch.Tensor):
                    self.weights.add(_storage(made))
                    self.kept.append(made)
        return result

    def _made_of_weights(self, arguments: Any) -> bool:
        found = False
        for given in arguments:
            for each in given if isinstance(given, list | tuple) else (given,):
                if isinstance(each, torch.Tensor):
                    if _storage(each) not in self.weights:
                        return False
                    found = True
        return found

    def enter(self, place: tuple[int | None, str]) -> None:
        """Note that the forward of a part begins."""
        self.standing.append(place)
        if place[1] == BLOCK:
            self.counted.calls[place[0]] += 1

    def _count(self, left: torch.Tensor, right: torch.Tensor) -> None:
        of_weights = [_storage(each) in self.weights for each in (left, right)]
        # A sum over one element is no sum: positions times frequencies are such a product.
        if all(of_weights) or left.shape[-1] == 1:
            return
        block, part = self.standing[-1]
        columns = right.shape[-1] if right.ndim > 1 else 1
        self.counted.products[Place(block, part, any(of_weights))] += left.numel() * columns


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


@contextmanager
def counting(model: nn.Module, parts: Mapping[nn.Module, tuple[int, str]]) -> Iterator[Counted]:
    """Count the products of the forwards inside the ``with`` block.

    Args:
        model: the model that runs.
        parts: the block's index and the part by module; a product counts for the innermost that runs it.
    """
    mode = _Counting(model)
    with ExitStack() as stack:
        for module, place in parts.items():
            stack.callback(module.register_forward_pre_hook(
                lambda module, arguments, place=place: mode.enter(place)).remove)
            stack.callback(module.register_forward_hook(
                lambda module, arguments, output: mode.standing.pop() and None).remove)
        stack.enter_context(mode)
        yield mode.counted
