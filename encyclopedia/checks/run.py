"""Running all checks on one model: a twin, or real weights."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn

from encyclopedia.checks.availability import check_availability
from encyclopedia.checks.claims import BrokenClaim, Ledger
from encyclopedia.checks.continuing import check_continuing
from encyclopedia.checks.elsewhere import check_elsewhere
from encyclopedia.checks.identity import BrokenIdentity, identity_of, measure_identity
from encyclopedia.checks.layout import Seen, check_layout, check_order
from encyclopedia.checks.meaning import Root, check_meaning, check_value
from encyclopedia.checks.mixing import check_mixing
from encyclopedia.checks.reading import read_or_blame
from encyclopedia.checks.recurrent import KernelRun, kernels_recorded
from encyclopedia.checks.writing import check_writing, keep
from encyclopedia.facts import ClaimFacts
from encyclopedia.families import Family
from encyclopedia.model.hosts import Unconfirmed
from encyclopedia.model.places import Placed, native_places
from encyclopedia.model.readings import Reading, Write
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.native import NativeRun, record
from encyclopedia.structure.derive import structure_of
from encyclopedia.structure.parts import CONTRIBUTIONS, Kind


@dataclass(frozen=True)
class Checked:
    """What checking a model gave.

    Attributes:
        model: the live model.
        input_ids: what it was run on, ``[batch, seq]``.
        kinds: its kinds of blocks.
        native: the forward as plain hooks recorded it.
        claims: the claims that held.
        identities: each kind's identity and its largest error on the kind's blocks, or ``None`` where there is none.
        elsewhere: the values of the root and of each kind's first block, with where the native model has them; empty
            where that was not checked.
    """

    model: StandardizedTransformer
    input_ids: torch.Tensor
    kinds: tuple[Kind, ...]
    native: NativeRun
    claims: list[ClaimFacts]
    identities: list[tuple[str, float] | None]
    elsewhere: list[Placed]


def check_model(
    module: nn.Module,
    family: Family,
    input_ids: torch.Tensor,
    *,
    writing: bool = True,
    default: Callable[[], nn.Module] | None = None,
    unconfirmed: Unconfirmed | None = None,
    lenient: bool = False,
    elsewhere: bool = False,
) -> Checked:
    """Check everything a page claims about ``module``.

    Args:
        module: a causal model in float32 with eager attention, not wrapped yet.
        family: what its family declares.
        input_ids: ``[batch, seq]``, two prompts at least, so that no batch axis can hide.
        writing: check writing too, with a forward per value.
        default: builds the same model under the default load, for availability there.
        unconfirmed: values that are not served.
        lenient: of several recomputations of a value only the first, which shares nothing with its read, has to hold;
            further ones are noted where they do.
        elsewhere: check names elsewhere too, on a copy of the model.

    Raises:
        BrokenClaim: for the first claim that did not hold.
    """
    ledger = Ledger()
    family = family.on(module.config)
    native, kernels = _recorded(module, input_ids)
    plain = copy.deepcopy(module) if elsewhere else None
    withheld = unconfirmed or {}
    model = StandardizedTransformer(module, unconfirmed=withheld)
    kinds = model.structure.kinds
    layers = [kind.blocks[0] for kind in kinds]
    with torch.no_grad():
        readings = read_or_blame(model, input_ids, keep, fake=False)
        _check_layouts(model, kinds, readings, input_ids, ledger)
        root = Root.of(module, model.structure, native, readings, kernels, lenient)
        check_availability(model, input_ids, "a load with eager attention", layers, ledger,
                           holds=lambda reading: _holds(root, family, model, kinds, reading, input_ids))
        check_meaning(root, family, readings, ledger)
        check_mixing(model, input_ids, ledger)
        check_continuing(model, input_ids, ledger)
        identities = [_check_identity(model, family, kind, input_ids, ledger) for kind in kinds]
        if writing:
            # A forward for every value: two prompts are enough to see what a write changes, and that it reaches both.
            prompt = input_ids[:2]
            check_writing(model, prompt, read_or_blame(model, prompt, keep, fake=False, layers=layers), layers, ledger)
            for kind in kinds:
                _check_without_contributions(model, family, kind, prompt, ledger)
        if default is not None:
            check_availability(StandardizedTransformer(default(), unconfirmed=withheld), input_ids,
                               "the default load", layers, ledger, remedied=model)
        placed: list[Placed] = []
        if plain is not None:
            chosen = [reading for reading in readings if reading.layer in (None, *layers)]
            placed = check_elsewhere(plain, native_places(model, native, chosen), input_ids, ledger, lenient=lenient)
    return Checked(model, input_ids, kinds, native, ledger.claims(), identities, placed)


def _recorded(module: nn.Module, input_ids: torch.Tensor) -> tuple[NativeRun, dict[str, list[KernelRun]]]:
    """A forward of the native model by plain hooks, and what the kernels of its recurrent mixers were called with."""
    structure = structure_of(module)
    mixers = [f"{structure.stack.layers}.{index}.{sublayer.name}" for kind in structure.kinds for index in kind.blocks
              for sublayer in kind.sublayers if sublayer.host == "linear_attn"]
    with kernels_recorded(module, mixers) as kernels:
        return record(module, input_ids), kernels


def _check_layouts(
    model: StandardizedTransformer, kinds: Sequence[Kind], readings: list[Reading], input_ids: torch.Tensor,
    ledger: Ledger,
) -> None:
    batch, seq = input_ids.shape
    root = model.sizes()
    sizes = {block: {**root, **kind.sizes} for kind in kinds for block in kind.blocks}
    for reading in readings:
        own = root if reading.layer is None else {
            **sizes[reading.layer], **model.host_at(reading.layer, reading.host).axes}
        check_layout(replace(reading, result=Seen.of(reading.result)), own, batch, seq)
        ledger.held("layout", reading.host, reading.name, "each axis has the size that its name has there")
        if check_order(reading):
            ledger.held("layout", reading.host, reading.name, "no query sees a later key")


def _holds(
    root: Root, family: Family, model: StandardizedTransformer, kinds: Sequence[Kind], reading: Reading,
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
) -> tuple[str, float] | None:
    """The kind's identity with its largest error over the kind's blocks, or ``None`` where it has none."""
    identity = identity_of(family, kind)
    if identity is None or not _can_be_read(model, kind, identity):
        return None
    errors = []
    for layer in kind.blocks:
        errors.append(_measured(model, input_ids, identity, layer))
        ledger.held("identity", "layer", None, identity, errors[-1])
    return identity, max(errors)


def _can_be_read(model: StandardizedTransformer, kind: Kind, identity: str) -> bool:
    """Whether every standard value in the identity is served."""
    for host in model.hosts(kind.blocks[0]):
        wanted = {"layer": ("layer_input", "layer_output")}.get(host.host, (CONTRIBUTIONS.get(host.host, ""),))
        named = host.host == "layer" or f"{host.host}.{wanted[0]}" in identity
        if named and any(host.unavailable(name) is not None for name in wanted):
            return False
    return True


def _check_without_contributions(
    model: StandardizedTransformer, family: Family, kind: Kind, input_ids: torch.Tensor, ledger: Ledger
) -> None:
    layer = kind.blocks[0]
    identity = identity_of(family, kind)
    if identity is None or not _can_be_read(model, kind, identity):
        return
    for host in model.hosts(layer):
        contribution = CONTRIBUTIONS.get(host.host)
        if contribution is None or f"{host.host}.{contribution}" not in identity:
            continue
        zero = [Write(host, contribution, torch.zeros_like)]
        error = _measured(model, input_ids, identity, layer, zero)
        ledger.held("writing", host.host, contribution, "set to zero, it leaves the identity without its term", error)


def _measured(
    model: StandardizedTransformer, input_ids: torch.Tensor, identity: str, layer: int, writes: Sequence[Write] = ()
) -> float:
    try:
        return measure_identity(model, input_ids, identity, layer, writes)
    except BrokenIdentity as broken:
        value = writes[0].name if writes else "layer_output"
        raise BrokenClaim("identity", value, layer, identity, str(broken)) from broken
