"""Phi-3 (``Phi3ForCausalLM``): Microsoft's Phi-3-mini, Phi-4-mini and Phi-4.

Nothing is declared. Sums, norms and names are Llama's, but fewer matrices hold them, and what is fused is taken apart
by slicing inside the forward:

- ``qkv_proj`` returns all query heads, then all key heads, then all value heads. No module has queries alone, so the
  standard ones are the arguments of the shared eager attention, behind slicing and rotation.
- ``gate_up_proj`` returns the gate's half and then the other. The activation function runs on the first, which makes
  its output the standard activation; the product enters ``down_proj``.

Two dropout modules stand between the sublayers and their adds. They do nothing outside training, and the contributions
are read in front of them, where the sublayers return them.

What differs between the checkpoints is in their configs: a window that all blocks share (as on Mistral, in the mask
alone), the share of a head that is rotated, and factors that slow the rotation down in a way that depends on how long
the text is.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="phi3",
    title="Phi-3-mini, Phi-4-mini, Phi-4",
    subtitle=(
        "Llama's block in fewer matrices: one projection makes queries, keys and values, another both halves of the "
        "gated MLP."
    ),
    hue=188,
)
