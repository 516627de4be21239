"""Gemma 4 (``Gemma4ForCausalLM``, by Google), the text decoder.

Nothing is declared. It is a Gemma block with more around it, all of which a forward shows:

- Four norms per block, whose weights are plain gains here. The contributions are the outputs of
  ``post_attention_layernorm`` and ``post_feedforward_layernorm``.
- A block ends by multiplying the stream by ``layer_scalar``, a number it stores in a buffer. On the E checkpoints a
  third term is added before that: the token's own vector for this block, gated by the stream, through
  ``post_per_layer_input_norm``. It has no standard host and stands in the identity under its own name.
- Blocks with a window and full ones differ in head width, key/value heads and rotary. The last blocks of the E
  checkpoints have no keys of their own; on the larger ones full blocks take their values from ``k_proj``.
- On the 26B a router and experts stand in the block itself, beside its dense MLP. Both results are normed and added up
  in front of ``post_feedforward_layernorm``, so what is read as the MLP's contribution is that of both. The mixture's
  own values have no host: no module but the block holds router and experts.

The checkpoints are the text part of models that read images and, the smaller ones, sound.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="gemma4_text",
    title="Gemma 4",
    subtitle=(
        "Each sublayer stands between two norms, every block rescales the stream it leaves, and the small checkpoints "
        "feed a vector of the token's own into each block and share keys and values between blocks."
    ),
    hue=296,
)
