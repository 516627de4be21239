"""Qwen2 and Qwen2.5 (``Qwen2ForCausalLM``, by Alibaba's Qwen team).

Nothing is declared. Modules, names, norms and sums are Llama's, and so is the shared eager attention in which the
interior is read. The one departure inside a block is that ``q_proj``, ``k_proj`` and ``v_proj`` add a bias (``o_proj``
and the MLP have none). The standard values have the biases in them: queries and keys are read after the rotation,
which turns their biases along with the rest, and values as ``v_proj`` returns them. What follows from that for scores
and head outputs is in the notes.

The class can also slide: with ``use_sliding_window`` the blocks from ``max_window_layers`` on see ``sliding_window``
positions only. The published configs set the numbers and switch the window off, so all their blocks are of one kind,
and the kinds are derived from ``layer_types`` either way.

Whether head and embedding table are one matrix differs by size and is read off the modules.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="qwen2",
    title="Qwen2 and Qwen2.5",
    subtitle=(
        "Llama's block with a bias on queries, keys and values, which puts a term that depends on distance alone into "
        "the scores and a constant into what the attention adds."
    ),
    hue=268,
)
