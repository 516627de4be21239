"""A tensor as a model holds it and in a standard layout: the same numbers with their axes in another order.

How a model holds one is a pattern: the axes in the model's order, and in parentheses those that lie flat in one, as in
``batch seq (heads head_dim)``. An axis of the layout that the pattern lacks has the length one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import torch


def axes_of(pattern: str) -> tuple[tuple[str, ...], ...]:
    """The axes of ``pattern``, each as the layout's axes that lie in it.

    >>> axes_of("batch seq (heads head_dim)")
    (('batch',), ('seq',), ('heads', 'head_dim'))
    """
    return tuple(tuple(found.strip("()").split()) for found in re.findall(r"\([^)]*\)|\S+", pattern))


def to_layout(tensor: torch.Tensor, pattern: str, dims: Sequence[str], sizes: Mapping[str, int]) -> torch.Tensor:
    """``tensor``, held as ``pattern`` says, as a view with the axes ``dims``.

    Args:
        tensor: what the model holds.
        pattern: its axes.
        dims: the layout's axes; all of the pattern's are among them.
        sizes: lengths by axis; only those that lie flat in one with others are asked for, and of these the first
            need not be there.

    Raises:
        ValueError: where the tensor has another number of axes than the pattern.
    """
    axes = axes_of(pattern)
    if tensor.ndim != len(axes):
        raise ValueError(f"a tensor with the axes {pattern} was expected and one of shape {list(tensor.shape)} is held")
    for position, inside in reversed(list(enumerate(axes))):
        if len(inside) > 1:
            tensor = tensor.unflatten(position, (-1, *(sizes[axis] for axis in inside[1:])))
    order = [axis for inside in axes for axis in inside]
    for axis in dims:
        if axis not in order:
            tensor = tensor.unsqueeze(-1)
            order.append(axis)
    return tensor.permute([order.index(axis) for axis in dims])


def to_held(tensor: torch.Tensor, pattern: str, dims: Sequence[str]) -> torch.Tensor:
    """``tensor`` with the axes ``dims``, as a model holds it that ``pattern`` describes: undoes :func:`to_layout`."""
    axes = axes_of(pattern)
    order = [axis for inside in axes for axis in inside]
    added = [axis for axis in dims if axis not in order]
    tensor = tensor.permute([dims.index(axis) for axis in (*order, *added)])
    tensor = tensor.reshape(tensor.shape[: len(order)])
    for position, inside in enumerate(axes):
        if len(inside) > 1:
            tensor = tensor.flatten(position, position + len(inside) - 1)
    return tensor
