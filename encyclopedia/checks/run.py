"""Running all checks on one model: a twin, or real weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn

from encyclopedia.checks.availability import check_availability
from encyclopedia.checks.claims import BrokenClaim, Ledger
from encyclopedia.checks.identity import CONTRIBUTIONS, BrokenIdentity, identity_of, measure_identity
from encyclopedia.checks.layout import Seen, check_layout
from encyclopedia.checks.meaning import check_meaning
from encyclopedia.checks.native import record
from encyclopedia.checks.writing import check_writing, keep
from encyclopedia.facts import ClaimFacts
from encyclopedia.families import Family
from encyclopedia.model.kinds import Kind, find_kinds, sizes_of
from encyclopedia.model.readings import Reading, Write, read_all
from encyclopedia.model.structure import blocks_of
from encyclopedia.model.transformer import StandardizedTransformer


@dataclass(frozen=True)
class Checked:
    """What checking a model gave.

    Attributes:
        model: the live model.
        kinds: its kinds of blocks.
        claims: the claims that held.
        identity_errors: the largest error of the identity on each kind's blocks.
    """

    model: StandardizedTransformer
    kinds: list[Kind]
    claims: list[ClaimFacts]
    identity_errors: list[float]


def check_model(
    module: nn.Module,
    family: Family,
    input_ids: torch.Tensor,
    *,
    writing: bool = True,
    default: Callable[[], nn.Module] | None = None,
) -> Checked:
    """Check everything a page claims about ``module``.

    Args:
        module: a causal model in float32 with eager attention, not wrapped yet.
        family: what its family declares.
        input_ids: ``[batch, seq]``, two prompts at least, so that no batch axis can hide.
        writing: check writing too, with a forward per value.
        default: builds the same model under the default load, for availability there.

    Raises:
        BrokenClaim: for the first claim that did not hold.
    """
    ledger = Ledger()
    native = record(module, input_ids)
    model = StandardizedTransformer(module)
    kinds = find_kinds(list(blocks_of(module, model.stack)), module.config)
    layers = [kind.blocks[0] for kind in kinds]
    with torch.no_grad():
        readings = read_all(model, input_ids, keep, fake=False)
        _check_layouts(model, kinds, readings, input_ids, ledger)
        check_meaning(module, model.stack, family, native, readings, ledger)
        errors = [_check_identity(model, family, kind, input_ids, ledger) for kind in kinds]
        check_availability(model, input_ids, "a load with eager attention", layers, ledger)
        if writing:
            of_kinds = [reading for reading in readings if reading.layer is None or reading.layer in layers]
            check_writing(model, input_ids, of_kinds, layers, ledger)
            for kind in kinds:
                _check_without_contributions(model, family, kind, input_ids, ledger)
        if default is not None:
            check_availability(StandardizedTransformer(default()), input_ids, "the default load", layers, ledger)
    return Checked(model, kinds, ledger.claims(), errors)


def _check_layouts(
    model: StandardizedTransformer, kinds: list[Kind], readings: list[Reading], input_ids: torch.Tensor, ledger: Ledger
) -> None:
    batch, seq = input_ids.shape
    root = model.sizes()
    sizes = {block: {**root, **sizes_of(kind, model.config)} for kind in kinds for block in kind.blocks}
    for reading in readings:
        own = root if reading.layer is None else sizes[reading.layer]
        check_layout(replace(reading, result=Seen.of(reading.result)), own, batch, seq)
        ledger.held("layout", reading.host, reading.name, "each axis has the size that its name has there")


def _check_identity(
    model: StandardizedTransformer, family: Family, kind: Kind, input_ids: torch.Tensor, ledger: Ledger
) -> float:
    """The largest error of the identity over the kind's blocks."""
    identity = identity_of(family, kind.sublayers)
    errors = []
    for layer in kind.blocks:
        errors.append(_measured(model, input_ids, identity, layer))
        ledger.held("identity", "layer", None, identity, errors[-1])
    return max(errors)


def _check_without_contributions(
    model: StandardizedTransformer, family: Family, kind: Kind, input_ids: torch.Tensor, ledger: Ledger
) -> None:
    layer = kind.blocks[0]
    for host in model.hosts(layer):
        contribution = CONTRIBUTIONS.get(host.host)
        if contribution is None or host.unavailable(contribution) is not None:
            continue
        zero = [Write(host, contribution, torch.zeros_like)]
        error = _measured(model, input_ids, identity_of(family, kind.sublayers), layer, zero)
        ledger.held("writing", host.host, contribution, "set to zero, it leaves the identity without its term", error)


def _measured(
    model: StandardizedTransformer, input_ids: torch.Tensor, identity: str, layer: int, writes: Sequence[Write] = ()
) -> float:
    try:
        return measure_identity(model, input_ids, identity, layer, writes)
    except BrokenIdentity as broken:
        raise BrokenClaim("identity", writes[0].name if writes else None, layer, identity, str(broken)) from broken
