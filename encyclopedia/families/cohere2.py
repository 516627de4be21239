"""Cohere 2 (``Cohere2ForCausalLM``, by Cohere): Command R7B and Tiny Aya.

Nothing is declared. The block is unlike Llama's in ways that a forward shows:

- One LayerNorm per block, whose output attention and MLP both read. They run side by side: the MLP does not see what
  the attention adds, there is no stream between them, and so no ``layer_mid``. ``attention_norm_output`` and
  ``mlp_norm_output`` are one tensor.
- The norm subtracts the mean over channels. It has a weight and no bias, like all the rest.
- Three blocks with a window and rotated queries and keys, then one that sees everything and rotates nothing. The rotary
  turns neighbouring channels.
- ``logits`` are the head's product times ``logit_scale``. The head is the embedding table.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="cohere2",
    title="Cohere Command R7B and Tiny Aya",
    subtitle=(
        "Attention and MLP read one LayerNorm side by side; three blocks with a window and a rotary take turns with "
        "one that sees everything and knows no positions."
    ),
    hue=12,
)
