"""Which quirks a checkpoint carries, found in its modules, its config and its small twin."""

from __future__ import annotations

from typing import Any

import torch

from encyclopedia.families import Family
from encyclopedia.model.kinds import Kind
from encyclopedia.model.readings import read_all
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.quirks import QUIRKS


def find_quirks(
    family: Family, config: Any, kinds: list[Kind], sizes: list[dict[str, int]],
    twin: StandardizedTransformer, input_ids: torch.Tensor,
) -> list[str]:
    """The slugs a checkpoint carries, in the order of :data:`encyclopedia.quirks.QUIRKS`.

    Args:
        family: what the family declares.
        config: the checkpoint's config.
        kinds: its kinds of blocks.
        sizes: each kind's sizes.
        twin: its small twin.
        input_ids: ``[batch, seq]`` for the twin.
    """
    heads = [found["num_heads"] for found in sizes if "num_heads" in found]
    kv_heads = [found["num_kv_heads"] for found in sizes if "num_kv_heads" in found]
    attentions = [dict(sublayer.module.named_children()) for kind in kinds for sublayer in kind.sublayers
                  if sublayer.host == "self_attn"]
    mixtures = ["num_experts" in found for found in sizes]
    carried = {
        "per-block-sizes": len(set(heads)) > 1,
        "gated-stream": bool(family.stream_gates),
        "query-key-norms": any("q_norm" in children and "k_norm" in children for children in attentions),
        "output-gate": gates_head_outputs(twin, input_ids),
        "sliding-window": any("sliding_window" in found for found in sizes),
        "partial-rotary": any(factor < 1 for factor in rotary_factors(config)),
        "mixture-of-experts": any(mixtures),
        "dense-first-blocks": any(mixtures) and not mixtures[0],
        "multi-query-attention": any(kv == 1 < count for kv, count in zip(kv_heads, heads, strict=True)),
        "grouped-query-attention": any(1 < kv < count for kv, count in zip(kv_heads, heads, strict=True)),
        "tied-embeddings": bool(config.tie_word_embeddings),
    }
    return [slug for slug in QUIRKS if carried.get(slug, False) or slug in family.quirks]


def rotary_factors(config: Any) -> list[float]:
    """The rotated part of a head, one number per set of rotary parameters in the config."""
    parameters = getattr(config, "rope_parameters", None) or {}
    by_type = [entry for entry in parameters.values() if isinstance(entry, dict)]
    return [entry.get("partial_rotary_factor", 1.0) or 1.0 for entry in by_type or [parameters]]


def gates_head_outputs(twin: StandardizedTransformer, input_ids: torch.Tensor) -> bool:
    """Whether the output projection receives something else than the head outputs, measured on the twin."""
    readings = read_all(twin, input_ids, torch.Tensor.clone, fake=False,
                        names={"attention_head_outputs", "attention_premix"})
    found = {(reading.layer, reading.name): reading.result for reading in readings}
    return any(
        not torch.equal(value, found[layer, "attention_premix"])
        for (layer, name), value in found.items()
        if name == "attention_head_outputs" and (layer, "attention_premix") in found
    )
