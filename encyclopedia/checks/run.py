"""Running all checks on one model: a twin, or real weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn

from encyclopedia.checks.availability import check_availability
from encyclopedia.checks.claims import BrokenClaim, Ledger
from encyclopedia.checks.identity import CONTRIBUTIONS, BrokenIdentity, identity_of, measure_identity
from encyclopedia.checks.layout import Seen, check_layout, check_order
from encyclopedia.checks.meaning import Root, check_meaning, check_value
from encyclopedia.checks.mixing import check_mixing
from encyclopedia.checks.native import record
from encyclopedia.checks.reading import read_or_blame
from encyclopedia.checks.writing import check_writing, keep
from encyclopedia.facts import ClaimFacts
from encyclopedia.families import Family
from encyclopedia.model.kinds import Kind, find_kinds, sizes_of
from encyclopedia.model.readings import Reading, Write
from encyclopedia.model.structure import blocks_of
from encyclopedia.model.transformer import StandardizedTransformer


@dataclass(frozen=True)
class Checked:
    """What checking a model gave.

    Attributes:
        model: the live model.
        input_ids: what it was run on, ``[batch, seq]``.
        kinds: its kinds of blocks.
        claims: the claims that held.
        identity_errors: the largest error of the identity on each kind's blocks.
    """

    model: StandardizedTransformer
    input_ids: torch.Tensor
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
        readings = read_or_blame(model, input_ids, keep, fake=False)
        _check_layouts(model, kinds, readings, input_ids, ledger)
        root = Root.of(module, model.stack, native, readings)
        check_availability(model, input_ids, "a load with eager attention", layers, ledger,
                           holds=lambda reading: _holds(root, family, model, kinds, reading, input_ids))
        check_meaning(root, family, readings, ledger)
        check_mixing(model, input_ids, ledger)
        errors = [_check_identity(model, family, kind, input_ids, ledger) for kind in kinds]
        if writing:
            of_kinds = [reading for reading in readings if reading.layer is None or reading.layer in layers]
            check_writing(model, input_ids, of_kinds, layers, ledger)
            for kind in kinds:
                _check_without_contributions(model, family, kind, input_ids, ledger)
        if default is not None:
            check_availability(StandardizedTransformer(default()), input_ids, "the default load", layers, ledger,
                               remedied=model)
    return Checked(model, input_ids, kinds, ledger.claims(), errors)


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
        if check_order(reading):
            ledger.held("layout", reading.host, reading.name, "no query sees a later key")


def _holds(
    root: Root, family: Family, model: StandardizedTransformer, kinds: list[Kind], reading: Reading,
    input_ids: torch.Tensor,
) -> bool:
    """Whether ``reading`` has the layout and the meaning of its value."""
    try:
        _check_layouts(model, kinds, [reading], input_ids, Ledger())
        there = {(reading.layer, reading.host, reading.name): reading.result}
        check_value(replace(root, values={**root.values, **there}), family, reading, Ledger())
    except BrokenClaim:
        return False
    return True


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
        value = writes[0].name if writes else "layer_output"
        raise BrokenClaim("identity", value, layer, identity, str(broken)) from broken
