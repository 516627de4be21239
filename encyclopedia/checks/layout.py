"""Layout: a tensor has the rank, the sort of number and the axis sizes that its value's layout names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.model.readings import Reading
from encyclopedia.vocabulary import values_of


@dataclass(frozen=True)
class Seen:
    """What a value was in a run: its shape, and its dtype where it is a tensor."""

    shape: tuple[int, ...]
    dtype: str | None

    @classmethod
    def of(cls, value: Any) -> Seen:
        """What ``value`` is; a plain size has no dtype."""
        if isinstance(value, torch.Tensor):
            return cls(tuple(value.shape), str(value.dtype).removeprefix("torch."))
        return cls(tuple(value), None)


def check_layout(reading: Reading, sizes: dict[str, int], batch: int, seq: int) -> None:
    """Check a reading against its layout: rank, sort of number, and each axis the size that its name has there.

    Args:
        reading: with a :class:`Seen` as result.
        sizes: axis sizes by name on the block it was read on.
        batch: prompts in the call.
        seq: tokens of each prompt.

    Raises:
        BrokenClaim: naming the value, the block and the axis.
    """
    seen: Seen = reading.result
    layout = values_of(reading.host)[reading.name].layout
    if layout is None:
        return

    def broken(expected: str, found: str) -> BrokenClaim:
        return BrokenClaim("layout", f"{reading.host}.{reading.name}", reading.layer, expected, found)

    if len(seen.shape) != len(layout.dims):
        raise broken(f"the axes {layout}", f"the shape {list(seen.shape)}")
    if seen.dtype is None or _sort(seen.dtype) != layout.dtype:
        raise broken(f"{layout.dtype} numbers", str(seen.dtype))
    for axis, size in zip(layout.dims, seen.shape, strict=True):
        expected = {"batch": batch, "seq": seq, "query": seq, "key": seq, **sizes}.get(axis)
        if size != expected:
            raise broken(f"the axis {axis} to be {expected} long", f"{size} in the shape {list(seen.shape)}")


def _sort(dtype: str) -> str:
    return "int" if dtype.startswith(("int", "uint")) else "float"
