"""Going on from a cache: what a call finds there is what the call before it left."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from encyclopedia.checks.claims import TOLERANCE, BrokenClaim, Ledger, describe, difference, said
from encyclopedia.checks.layout import Seen, check_layout
from encyclopedia.model.readings import Reading
from encyclopedia.model.transformer import StandardizedTransformer

GOING_ON = "in a call that goes on from a cache"

#: What a model's forward calls its cache.
CACHES = ("past_key_values", "cache")

#: The value that a first call leaves, by the one that the next call finds.
LEFT_AS = {"state_input": "state_output"}


def check_continuing(model: StandardizedTransformer, input_ids: torch.Tensor, ledger: Ledger) -> None:
    """Read, in a call of one token that goes on from a cache, the values that a first call has not got.

    Args:
        model: the twin, wrapped.
        input_ids: ``[batch, seq]``; all but the last token make the first call.
        ledger: where claims that held are noted.

    Raises:
        BrokenClaim: for a value that cannot be read there or is not what the first call left.
    """
    places = [(layer, host, name) for layer in range(model.num_layers) for host in model.hosts(layer)
              for name in host.later if host.unavailable(name) is None]
    for layer, host, name in places:
        left = LEFT_AS[name]
        if host.unavailable(left) is not None:
            raise BrokenClaim("meaning", f"{host.host}.{name}", layer, f"{left} of the call before", "none is served")
        try:
            before, found = _two_calls(model, input_ids, host, name, left)
        except Exception as error:
            raise BrokenClaim("location", f"{host.host}.{name}", layer,
                              f"to be read at {host.locations[name]} {GOING_ON}", said(error)) from error
        reading = Reading(layer, host.host, name, Seen.of(found), host.layout_of(name))
        sizes = {**model.sizes(), **model.structure.kind_of(layer).sizes, **host.axes}
        check_layout(reading, sizes, input_ids.shape[0], 1)
        ledger.held("layout", host.host, name, f"{GOING_ON}, each axis has the size that its name has there")
        off = difference(before, found)
        if not off <= TOLERANCE:
            raise BrokenClaim("meaning", f"{host.host}.{name}", layer,
                              f"{left} of the call before ({describe(before)})", f"{describe(found)}, off by {off:.2e}")
        ledger.held("meaning", host.host, name, f"{GOING_ON}, {left} of the call before", off)


def _two_calls(
    model: StandardizedTransformer, input_ids: torch.Tensor, host: Any, name: str, left: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """What the first call leaves as ``left``, and what the second finds as ``name``."""
    parameters = inspect.signature(type(model._module).forward).parameters
    cache = next(parameter for parameter in CACHES if parameter in parameters)
    found: list[Any] = []
    with model.trace(input_ids[:, :-1], use_cache=True):
        found.append(getattr(host, left).clone())
        found.append(getattr(model.output, cache))
    going_on = {cache: found[1], "attention_mask": torch.ones_like(input_ids), "use_cache": True}
    with model.trace(input_ids[:, -1:], **going_on):
        found.append(getattr(host, name).clone())
    return found[0], found[2]
