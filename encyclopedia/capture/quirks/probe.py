"""Calling an attention again and watching its arithmetic: the product of queries and keys, its softmax, the mixing."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from encyclopedia.native import Call

_aten = torch.ops.aten

#: Arguments that say where a token stands, not what it is.
_PLACES = re.compile(r"pos|cos|sin|freq|rot|mask|bias|cache")


@dataclass(frozen=True)
class Probe:
    """The arithmetic of one softmax over positions.

    Attributes:
        queries: ``[batch, heads, seq, width]``, as they entered the product.
        keys: ``[batch, heads, positions, width]``, repeated to the queries' heads.
        scores: ``[batch, heads, seq, positions]``, as they entered the softmax.
        pattern: as they left it; a column more than there are keys is a sink's.
        values: ``[batch, heads, positions, width]``, or ``None`` where no product with the pattern followed.
        mixed: ``[batch, seq, heads, width]``, that product.
    """

    queries: torch.Tensor
    keys: torch.Tensor
    scores: torch.Tensor
    pattern: torch.Tensor
    values: torch.Tensor | None
    mixed: torch.Tensor | None


class _Watching(TorchDispatchMode):
    """Notes the last softmax over positions, the product in front of it and the one behind it."""

    def __init__(self, seq: int) -> None:
        super().__init__()
        self.seq = seq
        self.product: tuple[torch.Tensor, torch.Tensor] | None = None
        self.softmax: tuple[torch.Tensor, torch.Tensor] | None = None
        self.before: tuple[torch.Tensor, torch.Tensor] | None = None
        self.behind: tuple[torch.Tensor, torch.Tensor] | None = None

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        output = operation(*arguments, **(keywords or {}))
        packet = operation.overloadpacket
        if packet in (_aten.bmm, _aten.baddbmm):
            one, other = arguments[-2:]
            if self.softmax is not None and self.behind is None and one.shape[1] == self.seq \
                    and self.softmax[1].shape[-1] - 1 <= one.shape[2] <= self.softmax[1].shape[-1]:
                self.behind = other, output
            elif output.shape[1] == self.seq and output.shape[2] >= self.seq:
                self.product = one, other
        elif packet in (_aten._softmax, _aten._safe_softmax) and self.product is not None:
            entering = arguments[0]
            positions = self.product[1].shape[2]
            if entering.ndim >= 3 and entering.shape[-2] == self.seq and entering.shape[-1] - 1 <= positions \
                    <= entering.shape[-1]:
                self.softmax, self.before, self.behind = (entering, output), self.product, None
        return output


def probe(module: nn.Module, call: Call, shape: Sequence[int]) -> Probe | None:
    """The arithmetic of ``module``'s attention when it is called as in ``call``; ``None`` where it cannot be seen.

    Args:
        module: an attention.
        call: a recorded call of it.
        shape: ``(batch, seq)``.
    """
    return _watched(module, list(call.arguments), call.keywords, shape)


def probe_equal(module: nn.Module, call: Call, shape: Sequence[int]) -> Probe | None:
    """The same where every position gets what the first one got, in double precision wherever the module allows it.

    In single precision a matrix product may round equal rows apart, by as much as the slowest channels turn.
    """
    batch, seq = shape

    def equal(name: str, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(equal("position", each) for each in value)
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        token = value.ndim == 3 and tuple(value.shape[:2]) == (batch, seq) and not _PLACES.search(name)
        return value[:, :1].expand_as(value).contiguous() if token else value

    def doubled(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(doubled(each) for each in value)
        return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    arguments = [equal("", value) for value in call.arguments]
    keywords = {name: equal(name, value) for name, value in call.keywords.items()}
    exact = _watched(copy.deepcopy(module).double(), [doubled(value) for value in arguments],
                     {name: doubled(value) for name, value in keywords.items()}, shape)
    return exact or _watched(module, arguments, keywords, shape)


def _watched(module: nn.Module, arguments: list[Any], keywords: dict[str, Any], shape: Sequence[int]) -> Probe | None:
    batch, seq = shape
    try:
        with torch.no_grad(), _Watching(seq) as watching:
            module(*arguments, **keywords)
    except Exception:
        # A module that wants more than its arguments, such as what an earlier block left, shows nothing.
        return None
    return _read(watching, batch)


def _read(watching: _Watching, batch: int) -> Probe | None:
    if watching.softmax is None or watching.before is None:
        return None
    tensors = [*watching.before, *watching.softmax]
    if any(tensor.numel() % batch or (tensor.ndim == 3 and tensor.shape[0] % batch) for tensor in tensors):
        return None
    queries, keys = (tensor.unflatten(0, (batch, -1)) for tensor in watching.before)
    scores, pattern = (tensor.reshape(batch, -1, *tensor.shape[-2:]) for tensor in watching.softmax)
    values = mixed = None
    if watching.behind is not None and watching.behind[0].shape[0] % batch == 0:
        values, mixed = (tensor.unflatten(0, (batch, -1)) for tensor in watching.behind)
        mixed = mixed.transpose(1, 2)
    return Probe(queries, keys.transpose(2, 3), scores, pattern, values, mixed)
