"""Counts and widths of heads, as the full model states them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from encyclopedia.capture.quirks.evidence import Evidence

#: Sizes that tensors of blocks are stacked by, of softmax attentions and of MLPs.
_ATTENTION = ("num_heads", "num_kv_heads", "head_dim", "qk_head_dim")
_MLP = ("intermediate_size", "expert_intermediate_size")


def multi_query(evidence: Evidence) -> bool:
    """Whether an attention has one key/value head for several query heads."""
    return any(shared == 1 < heads for heads, shared in _counts(evidence))


def grouped_query(evidence: Evidence) -> bool:
    """Whether an attention has fewer key/value heads than query heads, and more than one."""
    return any(1 < shared < heads for heads, shared in _counts(evidence))


def per_block_sizes(evidence: Evidence) -> bool:
    """Whether a count or width differs between the kinds of blocks that have it."""
    sizes = [kind.sizes for kind in evidence.structure.kinds]
    # A block that has only a recurrent mixer states the width of that one's heads by the same name.
    attending = [found for found in sizes if "num_heads" in found]
    return any(len({found[name] for found in holders if name in found}) > 1
               for names, holders in ((_ATTENTION, attending), (_MLP, sizes)) for name in names)


def unequal_head_widths(evidence: Evidence) -> bool:
    """Whether queries and keys have another width per head than values."""
    return any("qk_head_dim" in kind.sizes and kind.sizes.get("head_dim", 0) not in (0, kind.sizes["qk_head_dim"])
               for kind in evidence.structure.kinds)


def _counts(evidence: Evidence) -> Iterator[tuple[int, int]]:
    for kind in evidence.structure.kinds:
        if "num_heads" in kind.sizes and "num_kv_heads" in kind.sizes:
            yield kind.sizes["num_heads"], kind.sizes["num_kv_heads"]


DETECTORS: Mapping[str, Callable[[Evidence], bool]] = {
    "per-block-sizes": per_block_sizes,
    "multi-query-attention": multi_query,
    "grouped-query-attention": grouped_query,
    "unequal-head-widths": unequal_head_widths,
}
