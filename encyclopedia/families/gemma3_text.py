"""Gemma 3 (``Gemma3ForCausalLM``, by Google), the text decoder.

Nothing is declared. The block is Gemma 2's with the caps taken out and norms on queries and keys put in:

- Four norms per block, each with one plus its weight for a gain. The contributions are the outputs of
  ``post_attention_layernorm`` and ``post_feedforward_layernorm``.
- ``q_norm`` and ``k_norm`` work on each head for itself, in front of the rotary, and have that gain too.
- Five blocks with a window, then one that sees everything, and so on from the start. The two sorts rotate with bases of
  their own, and on the larger checkpoints the full blocks divide positions by a factor.
- The embedding module scales its rows; the head reads the same table unscaled, and nothing caps the logits.

The two smallest checkpoints are text models on the hub. The others are the text part of models that read images; what
is shown for them is that decoder by itself, and a hub id of theirs loads the whole.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="gemma3_text",
    title="Gemma 3",
    subtitle=(
        "Each sublayer stands between two norms, queries and keys are normalised per head, and five blocks with a "
        "window and a rotary of their own precede each block that sees everything."
    ),
    hue=278,
)
