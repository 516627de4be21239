"""How one tensor's axes lie in another: their order, and which of them are merged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch


@dataclass(frozen=True)
class Arrangement:
    """The axes of a value as another tensor has them.

    Attributes:
        groups: for each axis of the other tensor, the value's axes that it is made of, slowest first.
    """

    groups: tuple[tuple[int, ...], ...]

    @property
    def order(self) -> tuple[int, ...]:
        """The value's axes one after the other."""
        return tuple(axis for group in self.groups for axis in group)

    @property
    def plain(self) -> bool:
        """Whether nothing is moved or merged."""
        return self.groups == tuple((axis,) for axis in range(len(self.order)))

    def apply(self, value: torch.Tensor) -> torch.Tensor:
        """``value`` with its axes laid out so."""
        sizes = [math.prod(value.shape[axis] for axis in group) for group in self.groups]
        return value.permute(self.order).reshape(sizes)

    def undo(self, other: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
        """``other``, which lies so, as a tensor of the value's ``shape``."""
        back = [self.order.index(axis) for axis in range(len(self.order))]
        return other.reshape([shape[axis] for axis in self.order]).permute(back)

    def named(self, dims: Sequence[str]) -> str:
        """The other tensor's axes in the names of the value's, merged ones in parentheses."""
        words = (dims[group[0]] if len(group) == 1 else f"({' '.join(dims[axis] for axis in group)})"
                 for group in self.groups)
        return f"[{' '.join(words)}]"


def arrangements(shape: Sequence[int], other: Sequence[int]) -> tuple[Arrangement, ...]:
    """Every way in which a tensor of ``shape`` can be laid out to have the shape ``other``, the plainest first."""
    if math.prod(shape) != math.prod(other) or not 0 < len(other) <= len(shape):
        return ()
    return _arrangements(tuple(shape), tuple(other))


@cache
def _arrangements(shape: tuple[int, ...], other: tuple[int, ...]) -> tuple[Arrangement, ...]:
    found = []
    for order in itertools.permutations(range(len(shape))):
        for cuts in itertools.combinations(range(1, len(shape)), len(other) - 1):
            bounds = (0, *cuts, len(shape))
            groups = tuple(order[start:end] for start, end in itertools.pairwise(bounds))
            if all(math.prod(shape[axis] for axis in group) == size for group, size in zip(groups, other, strict=True)):
                found.append(Arrangement(groups))
    return tuple(sorted(found, key=_moves))


def _moves(arrangement: Arrangement) -> tuple[int, int]:
    """Pairs of axes that changed places; then merges without the last axis, since heads merge with their width."""
    order = arrangement.order
    moved = sum(first > second for first, second in itertools.combinations(order, 2))
    inner = sum(len(group) > 1 and group[-1] != len(order) - 1 for group in arrangement.groups)
    return moved, inner
