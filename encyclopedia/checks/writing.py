"""Writing: a written value changes what comes after it, and nothing else."""

from __future__ import annotations

from typing import Any

import torch

from encyclopedia.checks.claims import TOLERANCE, BrokenClaim, Ledger, describe, difference
from encyclopedia.model.envoys import StandardHost
from encyclopedia.model.readings import Reading, Write, read_all
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.vocabulary import values_of

#: What zeroing a head is seen on.
HEADS = {"attention_head_outputs", "attention_premix", "attention_output"}

#: Arguments of the call itself: what they change begins with the call.
_ARGUMENTS = ("input_ids", "attention_mask")


def check_writing(
    model: StandardizedTransformer, input_ids: torch.Tensor, readings: list[Reading], layers: list[int], ledger: Ledger
) -> None:
    """Check writing on the root and on each block of ``layers``.

    Args:
        model: the twin, wrapped.
        input_ids: ``[batch, seq]``.
        readings: every value of the root and ``layers`` as it is when nothing is written, in forward order.
        layers: one block of each kind.
        ledger: where claims that held are noted.

    Raises:
        BrokenClaim: for the first that did not.
    """
    places = [(None, model), *((layer, host) for layer in layers for host in model.hosts(layer))]
    writable = [(layer, host, name) for layer, host in places for name, reason in StandardHost.support(host).items()
                if reason is None and values_of(host.host)[name].writable
                and name not in (*_ARGUMENTS, *host.later)]
    _check_unchanged(model, writable, input_ids, readings, ledger)
    for layer, host, name in writable:
        _check_changed(model, host, layer, name, input_ids, readings, ledger)
    for layer, host in places:
        if host.host == "self_attn" and host.unavailable("attention_head_outputs") is None:
            _check_head(model, host, layer, input_ids, readings, ledger)


def written(
    model: StandardizedTransformer, writes: list[Write], input_ids: torch.Tensor, layers: list[int],
    names: set[str] | None = None,
) -> list[Reading]:
    """Every value of the root and of ``layers``, or those of ``names``, in a forward in which ``writes`` happen."""
    return read_all(model, input_ids, keep, fake=False, layers=layers, names=names, writes=writes)


def keep(value: Any) -> torch.Tensor:
    """A copy of what was read; a size becomes a tensor."""
    return value.detach().clone() if isinstance(value, torch.Tensor) else torch.tensor(value)


def _check_unchanged(
    model: StandardizedTransformer, writable: list[tuple[int | None, StandardHost, str]], input_ids: torch.Tensor,
    readings: list[Reading], ledger: Ledger,
) -> None:
    writes = [Write(host, name, torch.clone) for _, host, name in writable]
    after = _in_order(written(model, writes, input_ids, _layers(readings)), readings)
    for before, now in zip(readings, after, strict=True):
        if not torch.equal(before.result, now.result):
            raise BrokenClaim("writing", now.name, now.layer, "no change from writing every value as it is",
                              f"a change of {difference(before.result, now.result):.2e}")
    for _, host, name in writable:
        ledger.held("writing", host.host, name, "written back unchanged, it changes nothing, bit for bit")


def _check_changed(
    model: StandardizedTransformer, host: StandardHost, layer: int | None, name: str, input_ids: torch.Tensor,
    readings: list[Reading], ledger: Ledger,
) -> None:
    after = _in_order(written(model, [Write(host, name, _moved)], input_ids, _layers(readings)), readings)
    place = next(position for position, reading in enumerate(readings)
                 if (reading.layer, reading.host, reading.name) == (layer, host.host, name))
    shared = {other for other, location in host.locations.items() if location == host.locations[name]}
    for before, now in zip(readings[:place], after[:place], strict=True):
        if now.layer == layer and now.host == host.host and now.name in shared:
            # One norm in front of two sublayers is one tensor under two names.
            continue
        if not torch.equal(before.result, now.result):
            raise BrokenClaim("writing", name, layer, "no change before the place that was written",
                              f"{now.host}.{now.name} changed by {difference(before.result, now.result):.2e}")
    asked = _moved(readings[place].result)
    if not torch.equal(asked, after[place].result):
        raise BrokenClaim("writing", name, layer, f"to be read as it was written ({describe(asked)})",
                          f"{describe(after[place].result)}, off by {difference(asked, after[place].result):.2e}")
    logits = next((position for position, reading in enumerate(readings) if reading.name == "logits"), None)
    if logits is None:
        raise BrokenClaim("location", None, None, "the logits to be read, for a write to show in", "no reading of them")
    if name != "state_output" and torch.equal(readings[logits].result, after[logits].result):
        raise BrokenClaim("writing", name, layer, "a change of the logits", "none")
    ledger.held("writing", host.host, name,
                "written, it is read as written, changes the logits and nothing that comes before it")


def _check_head(
    model: StandardizedTransformer, host: StandardHost, layer: int | None, input_ids: torch.Tensor,
    readings: list[Reading], ledger: Ledger,
) -> None:
    name = "attention_head_outputs"
    kind = model.structure.kind_of(host.layer)
    sublayer = kind.sublayer("self_attn")
    assert sublayer is not None
    before = {reading.name: reading.result for reading in readings
              if reading.layer == layer and reading.host == "self_attn"}
    if not sublayer.projection or sublayer.post_norm is not None or "attention_premix" not in before:
        return
    projection = sublayer.projection
    silenced = written(model, [Write(host, name, _without_head)], input_ids, _layers(readings), HEADS)
    after = {reading.name: reading.result for reading in silenced
             if reading.layer == layer and reading.host == "self_attn"}
    premix = before["attention_premix"]
    if not torch.equal(premix[:, :, 1:], after["attention_premix"][:, :, 1:]):
        if torch.equal(premix, before[name]):
            moved = difference(premix[:, :, 1:], after["attention_premix"][:, :, 1:])
            raise BrokenClaim("writing", name, layer, "no other head to change in attention_premix",
                              f"a change of {moved:.2e}")
        # What stands between the heads and the projection mixes them, so no head has a slice of its own.
        return
    writer = host._module.get_submodule(projection)
    with torch.no_grad():
        lost = writer(premix.flatten(-2)) - writer(_without_head(premix).flatten(-2))
    moved = before["attention_output"] - after["attention_output"]
    gap = difference(before["attention_output"], before["attention_output"] - lost + moved)
    if not gap <= TOLERANCE:
        raise BrokenClaim("writing", name, layer, f"a head's slice of {projection} gone ({describe(lost)})",
                          f"{describe(moved)}, off by {gap:.2e} of the output's largest magnitude")
    ledger.held("writing", "self_attn", name,
                "a head set to zero takes that head's slice of the output projection away", gap)


def _in_order(after: list[Reading], before: list[Reading]) -> list[Reading]:
    """``after`` in the order of ``before``: what is compared has to be the same value in the same place."""
    found = {(reading.layer, reading.host, reading.name): reading for reading in after}
    return [found[reading.layer, reading.host, reading.name] for reading in before]


def _moved(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_floating_point():
        return tensor * 0.5 + 0.1
    return tensor.roll(1, dims=-1) if tensor.ndim < 3 else tensor.flip(-1).roll(1, dims=1)


def _without_head(tensor: torch.Tensor) -> torch.Tensor:
    changed = tensor.clone()
    changed[:, :, 0] = 0
    return changed


def _layers(readings: list[Reading]) -> list[int]:
    return sorted({reading.layer for reading in readings if reading.layer is not None})
