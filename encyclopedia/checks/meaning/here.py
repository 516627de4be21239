"""What values are recomputed from: the native model, its recorded run, and the values that were read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from encyclopedia.checks.identity import stream_gates
from encyclopedia.checks.recurrent import KernelRun
from encyclopedia.families import Family
from encyclopedia.model.readings import Reading
from encyclopedia.native import Call, NativeRun
from encyclopedia.structure.parts import Kind, Structure, Sublayer
from encyclopedia.structure.stack import Stack

#: Block, host and name of a value.
Key = tuple[int | None, str, str]

#: What was recomputed: the claim in words and the tensor expected.
Expected = tuple[str, torch.Tensor]


class NotRead(Exception):
    """A value that a recomputation needs and this load has not got."""


@dataclass(frozen=True)
class Root:
    """What values are recomputed from.

    Attributes:
        model: the native model.
        structure: what it is made of.
        native: what plain hooks recorded.
        values: every reading by block, host and name.
        kernels: by path, the calls of the recurrent mixers' kernels.
        lenient: whether only the first recomputation of a value has to hold.
        taken: the values that the recomputation being made has taken.
    """

    model: nn.Module
    structure: Structure
    native: NativeRun
    values: dict[Key, torch.Tensor]
    kernels: Mapping[str, list[KernelRun]] = field(default_factory=dict)
    lenient: bool = False
    taken: set[Key] = field(default_factory=set)

    @classmethod
    def of(cls, model: nn.Module, structure: Structure, native: NativeRun, readings: list[Reading],
           kernels: Mapping[str, list[KernelRun]], lenient: bool = False) -> Root:
        """What ``readings`` on ``model`` are checked from."""
        return cls(model, structure, native, {
            (reading.layer, reading.host, reading.name): reading.result for reading in readings}, kernels, lenient)

    @property
    def stack(self) -> Stack:
        """Where the model's standard parts are."""
        return self.structure.stack

    def module(self, name: str) -> nn.Module:
        """The native module under a standard name of the root."""
        return self.model.get_submodule(getattr(self.stack, name))

    def call(self, path: str) -> Call:
        """The last call of a module.

        Raises:
            NotRead: where it was not called.
        """
        if path not in self.native.calls:
            raise NotRead(path)
        return self.native.calls[path][-1]

    def value(self, layer: int | None, host: str, name: str) -> torch.Tensor:
        """A value that was read.

        Raises:
            NotRead: where it was not.
        """
        key = (layer, host, name)
        if key not in self.values:
            raise NotRead(name)
        self.taken.add(key)
        return self.values[key]


@dataclass(frozen=True)
class Here:
    """What one block's values are recomputed from.

    Attributes:
        root: the model around it.
        layer: the block's index.
        sublayer: the one whose values are checked, or ``None`` for the block's own.
        kind: the block's kind.
        family: what the family declares.
    """

    root: Root
    layer: int
    sublayer: Sublayer | None
    kind: Kind
    family: Family

    @property
    def path(self) -> str:
        """The native path of the block, or of the sublayer."""
        block = f"{self.root.stack.layers}.{self.layer}"
        return block if self.sublayer is None else f"{block}.{self.sublayer.name}"

    @property
    def block(self) -> nn.Module:
        return self.root.model.get_submodule(f"{self.root.stack.layers}.{self.layer}")

    @property
    def module(self) -> nn.Module:
        return self.root.model.get_submodule(self.path)

    def value(self, host: str, name: str) -> torch.Tensor:
        """A value read on this block; see :meth:`Root.value`."""
        return self.root.value(self.layer, host, name)

    def has(self, host: str, name: str) -> bool:
        """Whether the value was read on this block."""
        return (self.layer, host, name) in self.root.values

    def other(self, host: str) -> Sublayer | None:
        """The block's sublayer that is ``host``."""
        return self.kind.sublayer(host)

    @property
    def mixer(self) -> str:
        """The host that mixes positions."""
        return "self_attn" if self.kind.sublayer("self_attn") is not None else "linear_attn"

    @property
    def normed_mixer(self) -> str:
        """The host that mixes positions; of two that share a norm, the one that the norm is found in front of."""
        return next((sublayer.host for sublayer in self.kind.sublayers
                     if sublayer.host in ("self_attn", "linear_attn") and sublayer.norm is not None), self.mixer)

    def factor(self, host: str) -> float:
        """What multiplies the contribution of ``host`` before its add."""
        expression = None if self.kind.sum is None else self.kind.sum.factor(host)
        return 1.0 if expression is None else self.evaluated(expression)

    def evaluated(self, expression: str) -> Any:
        """The number or parameter that an expression of the identity reads on this block."""
        config: Any = self.root.model.config
        names = {**dict(self.block.named_parameters(recurse=False)), **dict(self.block.named_buffers(recurse=False)),
                 "config": SimpleNamespace(**config.to_dict()),
                 "layers": {self.layer: self.block}, "i": self.layer}
        return eval(expression, {"__builtins__": {}}, names)

    def gate(self, host: str) -> torch.Tensor | float:
        """What multiplies the stream before the add of ``host``."""
        name = stream_gates(self.family, self.kind).get(host)
        return 1.0 if name is None else self.evaluated(name)


#: What recomputes one value on a block.
Recomputation = Callable[[Here], Iterator[Expected]]


def hidden_states(call: Call) -> torch.Tensor:
    """What a module was called with: its ``hidden_states`` where they are named so, else its first argument."""
    return call.keywords.get("hidden_states", call.entering)


def child_named(module: nn.Module, names: tuple[str, ...]) -> str | None:
    """The first of ``names`` that is a child of ``module``."""
    children = dict(module.named_children())
    return next((name for name in names if name in children), None)
