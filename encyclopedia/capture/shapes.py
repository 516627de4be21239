"""The concrete shape of every value at full size, checked against its layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from encyclopedia.model.readings import Reading, read_all
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.vocabulary import values_of

#: The call that shapes are given for.
BATCH, SEQ = 1, 8


class BrokenLayout(Exception):
    """A tensor that is not what its layout says."""


@dataclass(frozen=True)
class Seen:
    """What a value was in the run: its shape, and its dtype where it is a tensor."""

    shape: tuple[int, ...]
    dtype: str | None


def read_shapes(model: StandardizedTransformer, layers: list[int]) -> list[Reading]:
    """Every available value of the root and of ``layers`` under fake tensors; each ``result`` is a :class:`Seen`."""
    return read_all(model, torch.zeros(BATCH, SEQ, dtype=torch.long), _seen, fake=True, layers=layers)


def _seen(value: Any) -> Seen:
    if isinstance(value, torch.Tensor):
        return Seen(tuple(value.shape), str(value.dtype).removeprefix("torch."))
    return Seen(tuple(value), None)


def check_layout(reading: Reading, sizes: dict[str, int]) -> None:
    """Check a reading against its layout: rank, sort of number, and each axis the size that its name has there.

    Args:
        reading: with a :class:`Seen` as result.
        sizes: axis sizes by name on the block it was read on.

    Raises:
        BrokenLayout: naming the value, the block and the axis.
    """
    seen: Seen = reading.result
    layout = values_of(reading.host)[reading.name].layout
    place = f"{reading.host}.{reading.name}" + ("" if reading.layer is None else f" on block {reading.layer}")
    if layout is None:
        return
    if len(seen.shape) != len(layout.dims):
        raise BrokenLayout(f"{place}: shape {list(seen.shape)} has not the axes {layout}")
    if seen.dtype is None or _sort(seen.dtype) != layout.dtype:
        raise BrokenLayout(f"{place}: dtype {seen.dtype} is not {layout.dtype}")
    for axis, size in zip(layout.dims, seen.shape, strict=True):
        expected = axis_sizes(sizes).get(axis)
        if expected is None:
            raise BrokenLayout(f"{place}: nothing says how long the axis {axis} is")
        if size != expected:
            raise BrokenLayout(f"{place}: axis {axis} is {size} long where {expected} was expected")


def axis_sizes(sizes: dict[str, int]) -> dict[str, int]:
    """``sizes`` with the axes of the call itself."""
    return {"batch": BATCH, "seq": SEQ, "query": SEQ, "key": SEQ, **sizes}


def _sort(dtype: str) -> str:
    return "int" if dtype.startswith(("int", "uint")) else "float"
