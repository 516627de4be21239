"""Capturing one checkpoint: from its recorded config to its facts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from torch import nn

from encyclopedia.capture.costs import costs_of
from encyclopedia.capture.elsewhere import native_places_of
from encyclopedia.capture.failed import failed, not_shown
from encyclopedia.capture.hosts import hosts_of
from encyclopedia.capture.labels import labels_of
from encyclopedia.capture.parameters import count_parameters, parameters_by_role
from encyclopedia.capture.quirks import find_quirks
from encyclopedia.capture.shapes import BATCH, SEQ, read_shapes
from encyclopedia.capture.sublayers import sublayers_of
from encyclopedia.checkpoints import BrokenConfig, RecordedCheckpoint
from encyclopedia.checks.claims import BrokenClaim, Ledger
from encyclopedia.checks.confirming import confirm
from encyclopedia.checks.layout import check_layout
from encyclopedia.checks.patched import patched
from encyclopedia.checks.run import Checked
from encyclopedia.facts import (
    CheckpointFacts,
    Checks,
    ClaimFacts,
    Costs,
    IdentityCheck,
    KindFacts,
    Measured,
    ModuleClass,
    SnippetCheck,
    UnconfirmedValue,
)
from encyclopedia.families import Family, family, has_module
from encyclopedia.instantiate import build_without_weights
from encyclopedia.model.hosts import Unconfirmed
from encyclopedia.model.readings import Reading
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.native import record as record_forward
from encyclopedia.structure.derive import structure_of
from encyclopedia.structure.parts import Kind, Structure
from encyclopedia.structure.stack import UnknownStructure
from encyclopedia.twin import PROMPTS, NoTwin, blocks_kept, prompt_for, twin_of_model

#: Config entries that say nothing about the model.
_NOISE = ("transformers_version", "_name_or_path", "model_type", "architectures", "chunk_size_feed_forward",
          "id2label", "label2id", "problem_type", "return_dict", "output_hidden_states", "output_attentions",
          "is_encoder_decoder")


#: The step that each error stops, for a page that says so.
_STEPS = ((BrokenConfig, "config"), (UnknownStructure, "structure"), (NoTwin, "run"), (BrokenClaim, "check"))


def capture_checkpoint(record: RecordedCheckpoint, *, lenient: bool = False) -> CheckpointFacts:
    """The facts of one checkpoint.

    Args:
        record: its config, and where it is known from.
        lenient: leave out what no run confirms for a family with a module too, whose people answer for recorded
            checkpoints alone.

    Raises:
        BrokenConfig: where its config does not build.
        UnknownStructure: where its structure cannot be derived.
        BrokenClaim: where anything the page would say does not hold in a run.
    """
    if record.reason is not None:
        return not_shown(record)
    full = build_without_weights(record, attn_implementation="eager")
    declared = family(str(record.config["model_type"])).on(full.config)
    structure = structure_of(full)
    default = _default_implementations(record)
    checked, unconfirmed = check_on_twin(full, declared, default["_attn_implementation"],
                                         lenient=lenient)
    kinds = structure.kinds
    layers = [kind.blocks[0] for kind in kinds]
    readings = read_shapes(full, layers, unconfirmed)
    model = StandardizedTransformer(full, unconfirmed=unconfirmed)
    ledger = Ledger()
    for reading in readings:
        check_layout(reading, _sizes_at(model, structure, reading), BATCH, SEQ)
        ledger.held("layout", reading.host, reading.name, "at full size, each axis has the size that its name has")
    claims = [*ledger.claims(), *checked.claims]
    support = {"eager": model.support(), "default": _support_under(model, default)}
    hosts = hosts_of(model, kinds, readings, support, confirmed(claims), native_places_of(checked, model, kinds))
    values = [value for host in hosts for value in host.values]
    errors = [found[1] for found in checked.identities if found is not None]
    return CheckpointFacts(
        id=record.id,
        available=True,
        reason=None,
        architecture=type(full).__name__,
        config_source=record.config_source,
        quirks=_quirks(declared, structure, full),
        sizes=model.sizes(),
        config=_config(full.config),
        config_known_from={key: source for key in record.config if (source := record.source_of(key)) is not None},
        parameters=count_parameters(full, structure, declared),
        kinds=[
            KindFacts(
                blocks=list(kind.blocks),
                label=label,
                attention_type=kind.attention_type,
                modules={"layer": type(kind.block).__name__,
                         **{sublayer.host: type(sublayer.module).__name__ for sublayer in kind.sublayers}},
                sizes=dict(kind.sizes),
                identity=None if identity is None else identity[0],
                identity_error=None if identity is None else identity[1],
                sublayers=sublayers_of(model, kind, readings, declared),
                parameters=parameters_by_role(full, structure, kind, declared),
            )
            for kind, label, identity in zip(kinds, labels_of(kinds), checked.identities, strict=True)
        ],
        hosts=hosts,
        module_classes=_module_classes(model, kinds),
        printout=repr(model).split("\n"),
        support={load: _lacking(table) for load, table in support.items()},
        checks=Checks(
            values=Measured(checked=sum(value.checked for value in values), total=len(values)),
            identity=IdentityCheck(
                blocks=sum(len(kind.blocks) for kind, found in zip(checked.kinds, checked.identities, strict=True)
                           if found is not None),
                max_error=max(errors, default=None)),
            snippets=SnippetCheck(run=0, total=0),
        ),
        claims=claims,
        unconfirmed=[
            UnconfirmedValue(host=host, native=native, name=name, reason=reason)
            for (native, host), left_out in unconfirmed.items() for name, reason in left_out.items()
        ],
        is_default=record.is_default,
        costs=_costs(full, structure, known=has_module(declared.model_type) and not lenient),
    )


def capture_or_fail(record: RecordedCheckpoint) -> CheckpointFacts:
    """The facts of a checkpoint; for a family without a module of its own, a failure is a fact.

    Raises:
        BrokenConfig, UnknownStructure, NoTwin, BrokenClaim: for a family with a module, as :func:`capture_checkpoint`.
        MemoryError: where there is too little memory, which is no fact about any family.
    """
    try:
        return capture_checkpoint(record)
    except MemoryError:
        raise
    except Exception as error:
        if has_module(str(record.config["model_type"])):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        step = next((step for kind, step in _STEPS if isinstance(error, kind)), "run")
        return failed(record, step, reason)


def check_on_twin(full: nn.Module, declared: Family, default_attention: str, *,
                  lenient: bool = False) -> tuple[Checked, Unconfirmed]:
    """Check the family's claims on the small twin of ``full``.

    Args:
        full: the checkpoint's model without weights.
        declared: its family.
        default_attention: the attention that a load runs where none is asked for.
        lenient: leave out what does not hold, whoever answers for the family.

    Returns:
        What held, and the derived values that did not.

    Raises:
        BrokenClaim: for the first claim that does not hold and is about no single derived value.
    """
    try:
        return confirm(lambda: twin_of_model(full), declared,
                       lambda: twin_of_model(full, attn_implementation=default_attention), elsewhere=True,
                       lenient=lenient)
    except BrokenClaim as broken:
        raise broken.on_twin_of(blocks_kept(full)) from broken


def _costs(full: nn.Module, structure: Structure, *, known: bool) -> Costs | None:
    """What the model costs; ``None`` where it does not run without weights and the family has no module that knows it.

    The shapes, which are read before, come from runs of another sort.
    """
    try:
        return costs_of(full, structure)
    except Exception as error:
        if known or isinstance(error, MemoryError):
            raise
        return None


def _sizes_at(model: StandardizedTransformer, structure: Structure, reading: Reading) -> dict[str, int]:
    if reading.layer is None:
        return model.sizes()
    kind = structure.kind_of(reading.layer)
    return {**model.sizes(), **kind.sizes, **model.host_at(reading.layer, reading.host).axes}


def _default_implementations(record: RecordedCheckpoint) -> dict[str, Any]:
    """The implementations that a load picks where none is asked for, by the config's attribute."""
    default: Any = build_without_weights(record)
    return {name: getattr(default.config, name) for name in ("_attn_implementation", "_experts_implementation")}


def _support_under(model: StandardizedTransformer, implementations: dict[str, Any]) -> dict[str, dict[str, str | None]]:
    """What the model has under other implementations than its own."""
    with ExitStack() as stack:
        for name, implementation in implementations.items():
            stack.enter_context(patched(model.config, name, implementation))
        return model.support()


def _quirks(declared: Family, structure: Structure, full: nn.Module) -> list[str]:
    twin = twin_of_model(full)
    return find_quirks(declared, structure, full, twin, record_forward(twin, prompt_for(twin, batch=PROMPTS)))


def _config(config: Any) -> dict[str, Any]:
    return {"architectures": config.architectures, **_telling(config.to_dict())}


def _telling(entries: dict[Any, Any]) -> dict[str, Any]:
    """The entries of a config that say something about the model, at every depth, by keys that JSON has."""
    return {str(key): _telling(value) if isinstance(value, dict) else _spelled(value)
            for key, value in entries.items() if key not in _NOISE}


def _spelled(value: Any) -> Any:
    """An entry as transformers writes it to a file, where JSON has no number for what is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"__float__": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
    return [_spelled(entry) for entry in value] if isinstance(value, list | tuple) else value


def confirmed(claims: list[ClaimFacts]) -> set[tuple[str, str]]:
    """Host and name of every value whose layout and meaning a run has both confirmed."""
    by_sort: dict[str, set[tuple[str, str]]] = {"layout": set(), "meaning": set()}
    for claim in claims:
        if claim.value is not None and claim.sort in by_sort:
            by_sort[claim.sort].add((claim.host, claim.value))
    return by_sort["layout"] & by_sort["meaning"]


def _module_classes(model: StandardizedTransformer, kinds: Sequence[Kind]) -> list[ModuleClass]:
    found = {("model", type(model._module).__name__): type(model).__name__}
    for kind in kinds:
        for there in model.hosts(kind.blocks[0]):
            found[there.host, type(there._module).__name__] = type(there).__mro__[1].__name__
    return [ModuleClass(host=host, native=native, serves=serves) for (host, native), serves in found.items()]


def _lacking(table: dict[str, dict[str, str | None]]) -> dict[str, dict[str, str]]:
    lacking = {host: {name: reason for name, reason in rows.items() if reason is not None}
               for host, rows in table.items()}
    return {host: rows for host, rows in lacking.items() if rows}
