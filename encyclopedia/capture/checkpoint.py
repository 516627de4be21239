"""Capturing one checkpoint: from its recorded config to its facts."""

from __future__ import annotations

from typing import Any

from torch import nn

from encyclopedia.capture.parameters import count_parameters
from encyclopedia.capture.quirks import find_quirks
from encyclopedia.capture.shapes import BATCH, SEQ, read_shapes
from encyclopedia.checkpoints import RecordedCheckpoint
from encyclopedia.checks.claims import BrokenClaim, Ledger
from encyclopedia.checks.identity import CONTRIBUTIONS, identity_of
from encyclopedia.checks.layout import Seen, check_layout
from encyclopedia.checks.run import Checked, check_model
from encyclopedia.facts import (
    CheckpointFacts,
    Checks,
    ClaimFacts,
    EdgeFacts,
    HostFacts,
    IdentityCheck,
    KindFacts,
    Measured,
    ModuleClass,
    PartFacts,
    SnippetCheck,
    SublayerFacts,
    ValueFacts,
)
from encyclopedia.families import Family, family
from encyclopedia.model.build import build_without_weights
from encyclopedia.model.envoys import StandardHost
from encyclopedia.model.kinds import Kind, find_kinds, label_of, sizes_of
from encyclopedia.model.readings import Reading
from encyclopedia.model.structure import Sublayer, blocks_of
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.twin import PROMPTS, blocks_kept, prompt_for, twin_of_model
from encyclopedia.vocabulary import HOSTS, VOCABULARY, values_of

#: Config entries that say nothing about the model.
_NOISE = ("transformers_version", "_name_or_path", "model_type", "architectures", "chunk_size_feed_forward",
          "id2label", "label2id", "problem_type", "return_dict", "output_hidden_states", "output_attentions",
          "is_encoder_decoder")


def capture_checkpoint(record: RecordedCheckpoint) -> CheckpointFacts:
    """The facts of one recorded checkpoint.

    Raises:
        BrokenConfig: where its config does not build.
        BrokenClaim: where anything the page would say does not hold in a run.
    """
    if record.reason is not None:
        return _not_shown(record)
    declared = family(str(record.config["model_type"]))
    full = build_without_weights(record, attn_implementation="eager")
    model = StandardizedTransformer(full)
    default = StandardizedTransformer(build_without_weights(record))
    kinds = find_kinds(list(blocks_of(full, model.stack)), full.config)
    sizes = [sizes_of(kind, full.config) for kind in kinds]
    layers = [kind.blocks[0] for kind in kinds]
    readings = read_shapes(model, layers)
    root_sizes = model.sizes()
    ledger = Ledger()
    for reading in readings:
        own = root_sizes if reading.layer is None else {**root_sizes, **sizes[layers.index(reading.layer)]}
        check_layout(reading, own, BATCH, SEQ)
        ledger.held("layout", reading.host, reading.name, "at full size, each axis has the size that its name has")
    checked = check_on_twin(full, declared, default._module.config._attn_implementation)
    errors = checked.identity_errors
    claims = [*ledger.claims(), *checked.claims]
    support = {"eager": model.support(), "default": default.support()}
    hosts = _hosts(model, kinds, layers, readings, support, confirmed(claims))
    values = [value for host in hosts for value in host.values]
    return CheckpointFacts(
        id=record.id,
        available=True,
        reason=None,
        architecture=type(full).__name__,
        config_source=record.config_source,
        quirks=find_quirks(declared, full.config, kinds, sizes, checked.model, checked.input_ids),
        sizes=root_sizes,
        config=_config(full.config),
        config_known_from={key: source for key in record.config if (source := record.source_of(key)) is not None},
        parameters=count_parameters(full, declared),
        kinds=[
            KindFacts(
                blocks=list(kind.blocks),
                label=label_of(kind, found),
                attention_type=kind.attention_type,
                modules={"layer": type(kind.block).__name__,
                         **{sublayer.host: type(sublayer.module).__name__ for sublayer in kind.sublayers}},
                sizes=found,
                identity=identity_of(declared, kind.sublayers),
                identity_error=error,
                sublayers=[_sublayer(sublayer, layer, readings, declared) for sublayer in kind.sublayers],
            )
            for kind, found, layer, error in zip(kinds, sizes, layers, errors, strict=True)
        ],
        hosts=hosts,
        module_classes=_module_classes(model, kinds),
        printout=repr(model).split("\n"),
        support={load: _lacking(table) for load, table in support.items()},
        checks=Checks(
            values=Measured(checked=sum(value.checked for value in values), total=len(values)),
            identity=IdentityCheck(blocks=checked.model.num_layers, max_error=max(errors)),
            snippets=SnippetCheck(run=0, total=0),
        ),
        claims=claims,
    )


def check_on_twin(full: nn.Module, declared: Family, default_attention: str) -> Checked:
    """Check the family's claims on the small twin of ``full``.

    Args:
        full: the checkpoint's model without weights.
        declared: its family.
        default_attention: the attention that a load runs where none is asked for.

    Raises:
        BrokenClaim: for the first claim that does not hold.
    """
    twin = twin_of_model(full)
    try:
        return check_model(twin, declared, prompt_for(twin, batch=PROMPTS),
                           default=lambda: twin_of_model(full, attn_implementation=default_attention))
    except BrokenClaim as broken:
        raise broken.on_twin_of(blocks_kept(full)) from broken


def _not_shown(record: RecordedCheckpoint) -> CheckpointFacts:
    architectures: Any = record.config.get("architectures") or [None]
    return CheckpointFacts(
        id=record.id, available=False, reason=record.reason, architecture=architectures[0],
        config_source=record.config_source, quirks=[], sizes={}, config=record.config, config_known_from={},
        parameters=None, kinds=[], hosts=[], module_classes=[], printout=[], support={}, checks=None, claims=[],
    )


def _config(config: Any) -> dict[str, Any]:
    entries = {key: value for key, value in config.to_dict().items() if key not in _NOISE}
    return {"architectures": config.architectures, **entries}


def confirmed(claims: list[ClaimFacts]) -> set[tuple[str, str]]:
    """Host and name of every value whose layout and meaning a run has both confirmed."""
    by_sort: dict[str, set[tuple[str, str]]] = {"layout": set(), "meaning": set()}
    for claim in claims:
        if claim.value is not None and claim.sort in by_sort:
            by_sort[claim.sort].add((claim.host, claim.value))
    return by_sort["layout"] & by_sort["meaning"]


def _sublayer(sublayer: Sublayer, layer: int, readings: list[Reading], declared: Family) -> SublayerFacts:
    table = values_of(sublayer.host)
    contribution = CONTRIBUTIONS[sublayer.host]
    order = [reading.name for reading in readings if reading.layer == layer and reading.host == sublayer.host]
    parts = _parts(sublayer, order)
    edges = [
        EdgeFacts(source=source, target=name, label=declared.arrows.get((source, name), table[name].by))
        for name in order
        for source in table[name].made_from
        if source in order
    ]
    sort = "attention" if sublayer.host == "self_attn" else "mixture" if parts else "mlp"
    return SublayerFacts(
        host=sublayer.host,
        sort=sort,
        class_name=type(sublayer.module).__name__,
        norm=sublayer.norm,
        post_norm=sublayer.post_norm,
        contribution=contribution,
        stream_gate=declared.stream_gates.get(sublayer.host),
        values=[name for name in order if name != contribution],
        edges=edges,
        parts=parts,
    )


def _parts(sublayer: Sublayer, order: list[str]) -> list[PartFacts]:
    if sublayer.mixture is None:
        return []
    table = values_of(sublayer.host)
    named = {"router": sublayer.mixture.router, "experts": sublayer.mixture.experts, "shared": sublayer.mixture.shared}
    return [
        PartFacts(
            name=part,
            module=module,
            class_name=type(sublayer.module.get_submodule(module)).__name__,
            values=[name for name in order if table[name].part == part],
        )
        for part, module in named.items()
        if module is not None
    ]


def _hosts(
    model: StandardizedTransformer, kinds: list[Kind], layers: list[int], readings: list[Reading],
    support: dict[str, dict[str, dict[str, str | None]]], sure: set[tuple[str, str]],
) -> list[HostFacts]:
    seen: dict[tuple[str, str], dict[int | None, Seen]] = {}
    for reading in readings:
        seen.setdefault((reading.host, reading.name), {})[reading.layer] = reading.result
    found = []
    for host, expression in HOSTS.items():
        standing = [model] if host == "model" else [
            there for layer in layers for there in model.hosts(layer) if there.host == host]
        if not standing:
            continue
        carried = {name for there in standing for name in there.values()}
        places = _places(standing)
        values = []
        for value in VOCABULARY:
            if value.host != host or value.name not in carried or value.name not in places:
                continue
            by_layer = seen.get((host, value.name), {})
            at_root = by_layer.get(None)
            shapes = [at_root if host == "model" else by_layer.get(layer) for layer in layers]
            sample = next((shape for shape in shapes if shape is not None), None)
            layout = value.layout
            values.append(ValueFacts(
                name=value.name,
                layout=None if layout is None else layout.name,
                dims=[] if layout is None else list(layout.dims),
                role=value.role,
                part=value.part,
                location=str(places[value.name]),
                where=_where(value.name, places[value.name]),
                condition=_condition(support, expression, value.name),
                description=value.description,
                shapes=[None if shape is None else list(shape.shape) for shape in shapes],
                dtype=None if sample is None else sample.dtype,
                writable=value.writable,
                checked=(host, value.name) in sure,
            ))
        classes = list(dict.fromkeys(type(there._module).__name__ for there in standing))
        found.append(HostFacts(name=host, host=expression, classes=classes, values=values))
    return found


def _condition(support: dict[str, dict[str, dict[str, str | None]]], expression: str, name: str) -> str | None:
    """Why some block, or the default load, has not got a value; ``None`` where every load has it."""
    lacking = support["eager"][expression].get(name)
    by_default = support["default"][expression].get(name)
    if lacking is None and by_default is not None:
        return f"the default load lacks it: {by_default}"
    return lacking


def _places(standing: list[StandardHost]) -> dict[str, Any]:
    """Where each value is read, from the first host that serves it, else from the first that has a place for it."""
    served: dict[str, Any] = {}
    for there in reversed(standing):
        served |= {name: place for name, place in there.locations.items() if name not in there.withdrawn}
    return served


def _where(name: str, location: Any) -> str:
    if name == "attention_mask":
        return "the argument attention_mask of the module itself"
    return location.phrase()


def _module_classes(model: StandardizedTransformer, kinds: list[Kind]) -> list[ModuleClass]:
    found = {("model", type(model._module).__name__): type(model).__name__}
    for kind in kinds:
        for there in model.hosts(kind.blocks[0]):
            found[there.host, type(there._module).__name__] = type(there).__mro__[1].__name__
    return [ModuleClass(host=host, native=native, serves=serves) for (host, native), serves in found.items()]


def _lacking(table: dict[str, dict[str, str | None]]) -> dict[str, dict[str, str]]:
    lacking = {host: {name: reason for name, reason in rows.items() if reason is not None}
               for host, rows in table.items()}
    return {host: rows for host, rows in lacking.items() if rows}
