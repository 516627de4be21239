"""Whether a module lets positions see one another, and by a softmax, measured by calling it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from encyclopedia.native import Call
from encyclopedia.structure.block import BlockRun, same

#: Changes up to here, in units of the output's magnitude, are rounding: experts sum tokens in another order.
ROUNDING = 1e-4


@dataclass(frozen=True)
class Mixing:
    """How a module mixes positions.

    Attributes:
        mixes: whether what it returns for later positions depends on the first one.
        softmax: whether it takes a softmax over positions.
    """

    mixes: bool
    softmax: bool


class _Softmaxes(TorchDispatchMode):
    """Notes the length of the axis of every softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.lengths: list[int] = []

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        if operation.overloadpacket in (torch.ops.aten._softmax, torch.ops.aten._safe_softmax):
            self.lengths.append(arguments[0].shape[arguments[1]])
        return operation(*arguments, **(keywords or {}))


def mixing_of(run: BlockRun, call: Call) -> Mixing:
    """How the module of ``call`` mixes positions, from a second call in which the first position is changed.

    A module that cannot be called again on its own is taken to mix, by a softmax, where it was given a mask.
    """
    entering, before = run.entering(call), run.leaving(call)
    if entering is None or before is None:
        return Mixing(False, False)
    changed = entering.clone()
    changed[:, 0] = -changed[:, 0] + 0.5
    arguments = tuple(_replaced(value, run, entering, changed) for value in call.arguments)
    keywords = {name: _replaced(value, run, entering, changed) for name, value in call.keywords.items()}
    try:
        with torch.no_grad(), _Softmaxes() as softmaxes:
            again = run.module(call)(*arguments, **keywords)
    except Exception:
        masked = any("mask" in name for name in call.keywords)
        return Mixing(masked, masked)
    after = run.as_stream(again[0] if isinstance(again, tuple) else again)
    if after is None:
        return Mixing(False, False)
    moved = (after[:, 1:] - before[:, 1:]).abs().max().item()
    positions = run.shape[1]
    return Mixing(moved > ROUNDING * before.abs().max().item(),
                  any(length >= positions for length in softmaxes.lengths))


def _replaced(value: Any, run: BlockRun, entering: torch.Tensor, changed: torch.Tensor) -> Any:
    """``changed`` where ``value`` is what entered, in the shape it had there."""
    return changed.reshape(value.shape) if same(run.as_stream(value), entering) else value
