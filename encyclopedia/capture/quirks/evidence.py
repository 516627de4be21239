"""What the detectors look at: a full model's structure beside a recorded forward of its small twin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import nn

from encyclopedia.capture.quirks.probe import Probe, probe, probe_equal
from encyclopedia.families import Family
from encyclopedia.native import AttentionCall, Call, NativeRun
from encyclopedia.structure.block import BlockRun
from encyclopedia.structure.kinds import group_blocks
from encyclopedia.structure.parts import Kind, Structure, Sublayer
from encyclopedia.structure.recurrent import find_kernel_call
from encyclopedia.structure.stack import Stack, find_stack

#: What a twin's config has where the checkpoint's has one, so that a factor shows; or its inverse.
MOVED = (1.25, 2.0)


@dataclass(frozen=True)
class TwinBlock:
    """A kind of block beside the twin's first block of it.

    Attributes:
        kind: the full model's kind.
        run: the twin's block in the recorded forward.
        sublayers: the kind's sublayers on the twin's block.
    """

    kind: Kind
    run: BlockRun
    sublayers: tuple[Sublayer, ...]

    def call_of(self, sublayer: Sublayer) -> Call | None:
        """The last call of a sublayer's module."""
        return next((call for call in reversed(self.run.calls) if self.run.relative(call) == sublayer.name), None)


@dataclass(frozen=True, eq=False)
class Attention:
    """A softmax attention of the twin.

    Attributes:
        block: the block it stands in.
        path: its path from the twin.
        call: its call in the recorded forward.
        sublayer: the sublayer it is, or ``None`` where the block's structure does not say.
        interface: the call of the eager attention function in it, or ``None`` where it has arithmetic of its own.
    """

    block: TwinBlock
    path: str
    call: Call
    sublayer: Sublayer | None
    interface: AttentionCall | None

    @cached_property
    def module(self) -> nn.Module:
        """The twin's module."""
        return self.block.run.module(self.call)

    @cached_property
    def full(self) -> nn.Module:
        """The same module of the full model."""
        return self.block.kind.block.get_submodule(self.block.run.relative(self.call))

    @cached_property
    def inside(self) -> list[Call]:
        """Calls of the modules in it, in the order they began."""
        return [call for call in self.block.run.calls if call.path.startswith(f"{self.path}.")]

    @cached_property
    def as_recorded(self) -> Probe | None:
        """Its products and softmax in a call like the recorded one."""
        return probe(self.module, self.call, self.block.run.shape[:2])

    @cached_property
    def on_equal_tokens(self) -> Probe | None:
        """The same where each position gets what the first one got, so that only positions tell tokens apart."""
        return probe_equal(self.module, self.call, self.block.run.shape[:2])

    def inner(self, call: Call) -> nn.Module:
        """The module of a call inside it."""
        return self.block.run.module(call)


@dataclass(eq=False)
class Evidence:
    """Everything a detector may look at.

    Attributes:
        family: what the family declares.
        structure: what the full model is made of.
        model: the full model, without weights.
        twin: its small twin.
        run: a recorded forward of the twin.
    """

    family: Family
    structure: Structure
    model: Any
    twin: Any
    run: NativeRun

    @cached_property
    def stack(self) -> Stack:
        """Where the twin's standard parts are."""
        return find_stack(self.twin)

    @cached_property
    def blocks(self) -> list[TwinBlock]:
        """One block of each kind."""
        found = []
        for indices, kind in zip(group_blocks(self.twin, self.stack), self.structure.kinds, strict=False):
            path = f"{self.stack.layers}.{indices[0]}"
            run = BlockRun.of(self.twin, self.run, path, self.twin.config.hidden_size)
            found.append(TwinBlock(kind, run, tuple(sublayer.on(run.block) for sublayer in kind.sublayers)))
        return found

    @cached_property
    def attentions(self) -> list[Attention]:
        """The softmax attentions of those blocks."""
        found = []
        for block in self.blocks:
            named = {f"{block.run.path}.{sublayer.name}": sublayer for sublayer in block.sublayers
                     if sublayer.host == "self_attn"}
            loose = [path for path in self.run.attention if path.startswith(f"{block.run.path}.")
                     and not any(path == name or path.startswith(f"{name}.") for name in named)]
            for path in (*named, *loose):
                sublayer = named.get(path)
                interior = path if sublayer is None or not sublayer.interior else f"{path}.{sublayer.interior}"
                if path in self.run.calls:
                    found.append(Attention(block, path, self.run.calls[path][-1], sublayer,
                                           self.run.attention.get(interior)))
        return found

    @cached_property
    def flavours(self) -> set[str]:
        """The kernels that the recurrent mixers' forwards call, by flavour."""
        mixers = {type(mixer.module): mixer.module for block in self.blocks
                  if (mixer := block.kind.sublayer("linear_attn")) is not None}
        calls = [find_kernel_call(module) for module in mixers.values()]
        return {call.kernel.flavour for call in calls if call is not None}

    @cached_property
    def mixtures(self) -> list[tuple[TwinBlock, Sublayer]]:
        """The mixtures of experts of those blocks."""
        return [(block, sublayer) for block in self.blocks for sublayer in block.sublayers
                if sublayer.mixture is not None]

    @cached_property
    def first_stream(self) -> torch.Tensor | None:
        """What entered the first block, ``[batch, seq, hidden_size]``; of several streams the first."""
        calls = self.run.calls.get(f"{self.stack.layers}.0")
        entering = calls[0].tensors[0] if calls and calls[0].tensors else None
        batch, seq = self.run.input_ids.shape
        if entering is None or entering.shape[-1] != self.twin.config.hidden_size:
            return None
        if entering.ndim == 4:
            entering = entering[:, :, 0] if entering.shape[:2] == (batch, seq) else entering[0]
        return entering.reshape(batch, seq, -1) if entering.numel() == batch * seq * entering.shape[-1] else None

    def is_declared_mixture(self, sublayer: Sublayer) -> bool:
        """Whether the family declares a sublayer's class to be a mixture of experts."""
        declared = self.family.classes.get(type(sublayer.module).__name__)
        return declared is not None and declared.like == "mixture"

    def is_moved(self, factor: float) -> bool:
        """Whether a factor may be the twin's alone, because the checkpoint's config has one in its place."""
        if not any(math.isclose(abs(factor), each, rel_tol=1e-3) for moved in MOVED for each in (moved, 1 / moved)):
            return False
        small, full = (_numbers(model.config.to_dict()) for model in (self.twin, self.model))
        return any(value == 1 and small.get(key) in MOVED for key, value in full.items())


def _numbers(config: dict[str, Any]) -> dict[str, float]:
    return {key: value for key, value in config.items()
            if isinstance(value, int | float) and not isinstance(value, bool)}
