"""Reading many standard values in one forward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from encyclopedia.model.envoys import StandardHost
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.vocabulary import Layout


@dataclass(frozen=True)
class Reading:
    """One value read in one place.

    Attributes:
        layer: the block's index, or ``None`` for a value of the root.
        host: the host's name, such as ``self_attn``.
        name: the value's name.
        result: what the reader made of it.
        layout: the value's layout there; ``None`` for a plain Python value.
    """

    layer: int | None
    host: str
    name: str
    result: Any
    layout: Layout | None


@dataclass(frozen=True)
class Write:
    """A value to replace on its way through the forward.

    Attributes:
        host: the host that carries it.
        name: its name.
        edit: makes the new tensor out of the one read.
    """

    host: StandardHost
    name: str
    edit: Callable[[torch.Tensor], torch.Tensor]


def read_all(
    model: StandardizedTransformer,
    input_ids: torch.Tensor,
    make: Callable[[Any], Any],
    *,
    fake: bool,
    layers: Iterable[int] | None = None,
    names: Iterable[str] | None = None,
    writes: Sequence[Write] = (),
) -> list[Reading]:
    """Every available value of the root and of ``layers``, read in one forward of a first call.

    Each value has a reader of its own, so they need not be asked for in the order the forward makes them; the result
    is in that order.

    Args:
        model: the live model.
        input_ids: ``[batch, seq]``.
        make: applied to a value as it is read, such as ``torch.Tensor.clone``.
        fake: run under fake tensors, which gives shapes and needs no weights.
        layers: blocks to read on, all by default.
        names: values to read, all available by default.
        writes: values to replace first; readers see what was written.
    """
    wanted = None if names is None else set(names)
    places: dict[tuple[str, str], list[tuple[int | None, StandardHost]]] = {}
    for name, reason in StandardHost.support(model).items():
        if reason is None and (wanted is None or name in wanted):
            places["model", name] = [(None, model)]
    for index in range(model.num_layers) if layers is None else layers:
        for host in model.hosts(index):
            for name, reason in host.support().items():
                if reason is None and name not in host.later and (wanted is None or name in wanted):
                    places.setdefault((host.host, name), []).append((index, host))
    found: list[Reading] = []
    runner = model.scan if fake else model.trace
    with runner() as tracer:
        with tracer.invoke(input_ids):
            pass
        for write in writes:
            with tracer.invoke():
                setattr(write.host, write.name, write.edit(getattr(write.host, write.name)))
        for (host_name, name), stops in places.items():
            with tracer.invoke():
                for layer, host in stops:
                    found.append(Reading(layer, host_name, name, make(getattr(host, name)), host.layout_of(name)))
    return found
