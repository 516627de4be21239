"""GPT-J (``GPTJForCausalLM``): EleutherAI's GPT-J-6B and models trained with its code, such as KoGPT.

Nothing is declared. The block is the parallel one in its oldest form:

- One LayerNorm, ``ln_1``, feeds attention and MLP both. An edit of its output moves two contributions at once;
  ``attention_norm_output`` and ``mlp_norm_output`` are one tensor. There is no ``layer_mid``.
- The rotary turns the first ``rotary_dim`` channels of every head, each even channel together with the odd one behind
  it. Code that pairs a channel with the one half a width away, as Llama does, reads other angles off the same weights.
- The four projections of the attention have no bias while the two of the MLP have one.
- ``lm_head`` is a matrix of its own and has a bias, which few decoders have; a readout that multiplies with the weight
  alone is off by it.

The scores are formed in float32 whatever the dtype of the load.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="gptj",
    title="GPT-J",
    subtitle=(
        "One LayerNorm feeds attention and an ungated MLP side by side; the rotary turns neighbouring channels of a "
        "part of each head, and the output head has a bias."
    ),
    hue=292,
)
