"""OLMo 2 (``Olmo2ForCausalLM``, by the Allen Institute for AI).

Nothing is declared. Two things are moved from where Llama has them, and both are seen in a forward:

- The norms stand behind the sublayers and nothing stands in front. Attention and MLP read the stream itself, so a block
  has no ``attention_norm_output`` and no ``mlp_norm_output``, and the contributions are the outputs of
  ``post_attention_layernorm`` and ``post_feedforward_layernorm``.
- Queries and keys pass ``q_norm`` and ``k_norm`` after their projections and before they are cut into heads: one norm
  over the width of all heads together, followed by the rotary. The standard values are read behind both.

The rest is Llama's: no biases, a gated MLP with silu, one rotary over the whole head, and a head with a table of its
own. On the recorded checkpoints every query head has its own key/value head.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="olmo2",
    title="OLMo 2",
    subtitle=(
        "Attention and MLP read the bare stream and are normalised on their way out; queries and keys are normalised "
        "over all heads at once."
    ),
    hue=196,
)
