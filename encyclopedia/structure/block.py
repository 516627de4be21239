"""One block of a recorded forward: what entered, what left, and what its modules did in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from encyclopedia.native import Call, NativeRun
from encyclopedia.structure.stack import is_norm

#: Largest difference, in units of the larger tensor's magnitude, at which two tensors count as one.
SAME = 2e-6


@dataclass(frozen=True)
class BlockRun:
    """A block's part of a recorded forward.

    Attributes:
        block: the native block.
        path: its path in the model.
        call: its own call.
        calls: those of the modules in it, in the order they began; their paths are from the model.
        shape: ``(batch, seq, hidden_size)`` of the stream.
    """

    block: nn.Module
    path: str
    call: Call
    calls: tuple[Call, ...]
    shape: tuple[int, int, int]

    @classmethod
    def of(cls, model: nn.Module, run: NativeRun, path: str, hidden_size: int) -> BlockRun:
        """The part of ``run`` that happened in the block at ``path``.

        Raises:
            KeyError: where the block was not called.
        """
        batch, seq = run.input_ids.shape
        return cls(model.get_submodule(path), path, run.calls[path][-1], tuple(run.under(path)),
                   (batch, seq, hidden_size))

    @property
    def stream(self) -> torch.Tensor | None:
        """What entered the block, ``[batch, seq, hidden_size]``; ``None`` where that is of another shape."""
        return self.as_stream(self.call.tensors[0]) if self.call.tensors else None

    @property
    def output(self) -> torch.Tensor | None:
        """What left the block, ``[batch, seq, hidden_size]``; ``None`` where that is of another shape."""
        return self.as_stream(self.call.leaving)

    @property
    def children(self) -> list[Call]:
        """The calls of the block's direct children, in the order they began."""
        return [call for call in self.calls if "." not in self.relative(call)]

    def relative(self, call: Call) -> str:
        """A call's path from the block."""
        return call.path.removeprefix(f"{self.path}.")

    def module(self, call: Call) -> nn.Module:
        """The module that was called."""
        return self.block.get_submodule(self.relative(call))

    def as_stream(self, value: Any) -> torch.Tensor | None:
        """``value`` as ``[batch, seq, hidden_size]``, from any shape with those entries; ``None`` for another."""
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return None
        flat = (self.shape[0] * self.shape[1], self.shape[2])
        if tuple(value.shape) not in (self.shape, flat):
            return None
        return value.reshape(self.shape)

    def entering(self, call: Call) -> torch.Tensor | None:
        """The stream-shaped tensor that entered a module: its ``hidden_states``, else its first such argument."""
        named = self.as_stream(call.keywords.get("hidden_states"))
        found = [stream for tensor in call.tensors if (stream := self.as_stream(tensor)) is not None]
        return named if named is not None else found[0] if found else None

    def leaving(self, call: Call) -> torch.Tensor | None:
        """The stream-shaped tensor that a module returned, alone or first in a tuple."""
        return self.as_stream(call.leaving)

    def output_location(self, call: Call) -> str:
        """Where a module's returned tensor is read on it."""
        return "output[0]" if isinstance(call.output, tuple | list) else "output"

    def norm_before(self, call: Call) -> Call | None:
        """The norm whose output is what entered ``call``, or ``None``."""
        entering = self.entering(call)
        if entering is None:
            return None
        before = [norm for norm in self.children if norm.ended < call.began and is_norm(self.module(norm))]
        return next((norm for norm in reversed(before) if same(self.leaving(norm), entering)), None)


def same(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    """Whether two tensors are the same numbers, up to rounding."""
    if one is None or other is None or one.shape != other.shape:
        return False
    scale = max(one.abs().max().item(), other.abs().max().item())
    return (one - other).abs().max().item() <= SAME * scale
