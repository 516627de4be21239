"""Layout: a tensor has the rank, the sort of number and the axis sizes that its value's layout names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from encyclopedia.checks.claims import MASKED, BrokenClaim
from encyclopedia.model.readings import Reading


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


def check_layout(reading: Reading, sizes: Mapping[str, int], batch: int, seq: int) -> None:
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
    layout = reading.layout
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


def check_order(reading: Reading) -> bool:
    """Check that the axes named ``query`` and ``key`` stand for what they say: no query sees a later key.

    Both are as long as the prompt, so their sizes cannot tell them apart.

    Args:
        reading: with the tensor as result.

    Returns:
        Whether its layout has both axes.

    Raises:
        BrokenClaim: where a query sees a later key.
    """
    layout = reading.layout
    if layout is None or not {"query", "key"} <= set(layout.dims):
        return False
    tensor: torch.Tensor = reading.result
    seen = tensor.movedim((layout.dims.index("query"), layout.dims.index("key")), (-2, -1))
    visible = (seen != 0) & (seen > MASKED)
    if visible.triu(1).any():
        raise BrokenClaim("layout", f"{reading.host}.{reading.name}", reading.layer,
                          f"no query to see a later key along the axes {layout}",
                          f"{int(visible.triu(1).sum())} entries in which one does")
    return True


def _sort(dtype: str) -> str:
    return "int" if dtype.startswith(("int", "uint")) else "float"
