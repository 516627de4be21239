"""The parts that structure is told in: sublayers with their norms and contributions, mixtures, kinds of blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from encyclopedia.structure.stack import Stack

#: The value each host adds to the stream.
CONTRIBUTIONS = {"self_attn": "attention_output", "linear_attn": "attention_output", "mlp": "mlp_output"}


@dataclass(frozen=True)
class Mixture:
    """The parts of a mixture by native path in it; ``shared`` is ``None`` where there is none."""

    router: str
    experts: str
    shared: str | None


@dataclass(frozen=True)
class Term:
    """One term of a block's identity.

    Attributes:
        path: the module of the block whose output it is.
        location: the output's tensor, as read on that module.
        factor: what multiplies it, as an expression over ``config`` and the block's own attributes, or ``None``.
        host: the standard host whose contribution it is, or ``None``.
    """

    path: str
    location: str
    factor: str | None = None
    host: str | None = None

    @property
    def name(self) -> str:
        """What is added: the contribution's standard name, or the module's own output."""
        if self.host is not None:
            return f"{self.host}.{CONTRIBUTIONS[self.host]}"
        indexed = re.sub(r"[.]([0-9]+)", r"[\1]", self.path)
        return f"{indexed}.{self.location}"


@dataclass(frozen=True)
class Sum:
    """What a block's output was measured to be the sum of.

    Attributes:
        stream: what multiplies the block's input, ``""`` for one, ``None`` where the input is not a term.
        terms: the others, in forward order.
    """

    stream: str | None
    terms: tuple[Term, ...]

    @property
    def common(self) -> str | None:
        """What multiplies the whole sum, or ``None``."""
        factors = {self.stream, *(term.factor for term in self.terms)}
        return self.stream if len(factors) == 1 and self.stream else None

    @property
    def gates(self) -> tuple[str, str] | None:
        """What multiplies the stream ahead of the first and of the second of two adds, or ``None``.

        A stream that is gated twice carries the first term through the second gate.
        """
        if not self.stream or self.common or len(self.terms) != 2:
            return None
        first, second = self.terms
        if second.factor is not None or first.factor is None:
            return None
        for before in self.stream.split(" * "):
            if {f"{before} * {first.factor}", f"{first.factor} * {before}"} & {self.stream}:
                return before, first.factor
        return None

    def factor(self, host: str) -> str | None:
        """What multiplies the contribution of ``host`` before its own add, or ``None``."""
        if self.common or self.gates:
            return None
        return next((term.factor for term in self.terms if term.host == host), None)

    def __str__(self) -> str:
        if self.gates is not None:
            before, after = self.gates
            first, second = self.terms
            return f"{after} * ({before} * layers[i].input + {first.name}) + {second.name} == layer_output"
        common = self.common
        stream = [] if self.stream is None else [_times(None if common else self.stream, "layers[i].input")]
        total = " + ".join([*stream, *(_times(None if common else term.factor, term.name) for term in self.terms)])
        return f"{common} * ({total}) == layer_output" if common else f"{total} == layer_output"


def _times(factor: str | None, name: str) -> str:
    return f"{factor} * {name}" if factor else name


@dataclass(frozen=True)
class Sublayer:
    """One sublayer of a block.

    Attributes:
        host: the standard host name: ``self_attn``, ``linear_attn`` or ``mlp``.
        name: its native child name; of a sublayer that is loose layers of the block, the last of them.
        first: the child its input enters; ``name`` itself but for loose layers.
        module: the native module under ``name``.
        norm: native name of the norm in front of it, or ``None``.
        post_norm: native name of the norm behind it, or ``None``.
        contribution: the location of what it adds to the stream, from its host.
        projection: native path, from the module, of the layer that writes its output; ``""`` for the module itself,
            ``None`` where none was found.
        interior: path, from the module, of the one whose forward holds the attention's arithmetic; ``""`` for itself.
        activation: location of the activation's output from the host, or ``None``.
        mixture: its parts where it is a mixture of experts.
    """

    host: str
    name: str
    first: str
    module: nn.Module
    norm: str | None
    post_norm: str | None
    contribution: str
    projection: str | None
    interior: str
    activation: str | None
    mixture: Mixture | None

    def on(self, block: nn.Module) -> Sublayer:
        """The same sublayer of another block of its kind."""
        return replace(self, module=block.get_submodule(self.name))

    @property
    def writer(self) -> nn.Module | None:
        """The layer that writes the sublayer's output."""
        return None if self.projection is None else self.module.get_submodule(self.projection)


@dataclass(frozen=True)
class Kind:
    """Blocks that are alike.

    Attributes:
        blocks: their indices.
        block: the first of them.
        attention_type: as the config's ``layer_types`` spells it.
        sublayers: its sublayers in forward order.
        sum: what its output was measured to be the sum of, or ``None`` where no sum was exact.
        streams: how many parallel streams the block carries, or ``None`` for the usual one.
        mid: location, from the block, of the stream between its two sublayers, or ``None``.
        returns_tuple: whether the block returns its stream in a tuple.
        sizes: its own sizes by standard name.
        switches: the flags that tell it from other kinds, by path and attribute.
    """

    blocks: tuple[int, ...]
    block: nn.Module
    attention_type: str
    sublayers: tuple[Sublayer, ...]
    sum: Sum | None
    streams: int | None
    mid: str | None
    returns_tuple: bool
    sizes: Mapping[str, int]
    switches: Mapping[str, bool | str]

    def sublayer(self, host: str) -> Sublayer | None:
        """The sublayer that is ``host``, or ``None``."""
        return next((found for found in self.sublayers if found.host == host), None)


@dataclass(frozen=True)
class Structure:
    """What a model is made of.

    Attributes:
        stack: native paths of its standard parts.
        kinds: its kinds of blocks, in the order of their first block.
    """

    stack: Stack
    kinds: tuple[Kind, ...]

    @property
    def depth(self) -> int:
        """How many blocks there are."""
        return sum(len(kind.blocks) for kind in self.kinds)

    def kind_of(self, index: int) -> Kind:
        """The kind of block ``index``."""
        return next(kind for kind in self.kinds if index in kind.blocks)

    def sublayers(self, model: Any, index: int) -> tuple[Sublayer, ...]:
        """The sublayers of block ``index`` of ``model``."""
        block = model.get_submodule(f"{self.stack.layers}.{index}")
        return tuple(sublayer.on(block) for sublayer in self.kind_of(index).sublayers)
