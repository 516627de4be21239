"""The sublayers of a kind of block as facts: their values in forward order, the arrows between these, their parts."""

from __future__ import annotations

from collections.abc import Sequence

from encyclopedia.checks.identity import stream_gates
from encyclopedia.facts import EdgeFacts, PartFacts, SublayerFacts
from encyclopedia.families import Family
from encyclopedia.model.readings import Reading
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.structure.parts import CONTRIBUTIONS, Kind, Sublayer
from encyclopedia.vocabulary import sources_of, values_of


def sublayers_of(
    model: StandardizedTransformer, kind: Kind, readings: Sequence[Reading], declared: Family
) -> list[SublayerFacts]:
    """The sublayers of ``kind``.

    Args:
        model: the model at full size.
        kind: the kind of block.
        readings: what was read on the first block of each kind, in forward order.
        declared: the model's family.
    """
    return [_sublayer(model, kind, sublayer, readings, declared) for sublayer in kind.sublayers]


def _sublayer(
    model: StandardizedTransformer, kind: Kind, sublayer: Sublayer, readings: Sequence[Reading], declared: Family
) -> SublayerFacts:
    layer = kind.blocks[0]
    table = model.host_at(layer, sublayer.host).values()
    contribution = CONTRIBUTIONS[sublayer.host]
    order = [reading.name for reading in readings if reading.layer == layer and reading.host == sublayer.host]
    parts = _parts(sublayer, order)
    edges = [
        EdgeFacts(source=source, target=name, label=declared.arrows.get((source, name), table[name].by))
        for name in order
        for source in sources_of(table[name], table, order)
    ]
    sorts = {"self_attn": "attention", "linear_attn": "recurrent", "mlp": "mixture" if parts else "mlp"}
    return SublayerFacts(
        host=sublayer.host,
        sort=sorts[sublayer.host],
        class_name=type(sublayer.module).__name__,
        norm=sublayer.norm,
        post_norm=sublayer.post_norm,
        contribution=contribution,
        stream_gate=stream_gates(declared, kind).get(sublayer.host),
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
