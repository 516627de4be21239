"""The quirks: named departures from a plain pre-norm block, each with a sentence that holds wherever it is carried."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quirk:
    """One quirk.

    Attributes:
        slug: its name in data and addresses.
        label: its name on a page.
        sentence: what it means for somebody who reads activations.
    """

    slug: str
    label: str
    sentence: str


QUIRKS: dict[str, Quirk] = {
    quirk.slug: quirk
    for quirk in (
        Quirk("per-block-sizes", "Per-block sizes",
              "Head counts differ from block to block, so head-indexed tensors cannot be stacked over all blocks."),
        Quirk("gated-stream", "Scaled residual adds",
              "The block multiplies the stream it carries by learned gates, so what an early block adds arrives "
              "rescaled at the last one and the plain sum of contributions is not the block's output."),
        Quirk("query-key-norms", "Query/key norms",
              "Queries and keys are normalised before their product; the standard values are the normalised ones."),
        Quirk("dynamic-mask", "Dynamic mask",
              "The scores carry a learned bias per key that depends on the values; past a set number of keys, those "
              "with the smallest bias are masked."),
        Quirk("output-gate", "Output gate",
              "Between the attention and its output projection the heads are changed, so attention_premix and "
              "attention_head_outputs differ."),
        Quirk("sliding-window", "Sliding window",
              "Some or all blocks attend to the last positions only; earlier keys are masked in their scores."),
        Quirk("partial-rotary", "Partial rotary",
              "On some or all blocks only the leading channels of a head are rotated; the others pass as they are."),
        Quirk("mixture-of-experts", "Mixture of experts",
              "In some or all blocks a few of many experts, chosen per token, make the MLP's output, alone or beside a "
              "part that every token goes through."),
        Quirk("dense-first-blocks", "Dense first blocks",
              "The first blocks have a dense MLP and later ones a mixture, so MLP values differ by block."),
        Quirk("multi-query-attention", "Multi-query attention",
              "All query heads share one key/value head."),
        Quirk("grouped-query-attention", "Grouped-query attention",
              "Several query heads share a key/value head; keys and values are read before they are repeated."),
        Quirk("tied-embeddings", "Tied embeddings",
              "The head's weight is the embedding table: editing one edits the other."),
    )
}
