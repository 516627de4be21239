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
              "Queries and keys are normalised per head before their product; the standard values are read after it."),
        Quirk("dynamic-mask", "Dynamic mask",
              "The scores carry a learned bias per key that depends on the values."),
        Quirk("output-gate", "Output gate",
              "Something multiplies the head outputs before the output projection, so the premix is not the head "
              "outputs side by side."),
        Quirk("sliding-window", "Sliding window",
              "Some or all blocks attend to the last positions only; earlier keys are masked in their scores."),
        Quirk("partial-rotary", "Partial rotary",
              "On some blocks only a leading part of each head is rotated; the rest carries no position."),
        Quirk("mixture-of-experts", "Mixture of experts",
              "In place of the MLP a router sends each token to a few of many experts."),
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
