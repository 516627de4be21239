"""GPT-NeoX (``GPTNeoXForCausalLM``, by EleutherAI): GPT-NeoX-20B and the Pythia suite.

Nothing is declared; the block is derived, with its two sublayers side by side. What differs from a Llama:

- ``use_parallel_residual``: attention and MLP both read the block's input, each through a LayerNorm of its own. The
  MLP's norm is called ``post_attention_layernorm`` all the same, though it sees nothing of the attention. There is no
  stream between the two and so no ``layer_mid``. A config may turn this off; then the block is sequential and
  ``layer_mid`` exists.
- ``query_key_value`` holds queries, keys and values of a head next to each other, head after head.
- The rotary turns the leading part of each head, ``partial_rotary_factor`` of it, and leaves the rest.
- Norms and projections have biases, the MLP has no gate, and the head is a matrix of its own.

Both sublayers end in a dropout module that stands behind the standard contribution. It does nothing outside training.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="gpt_neox",
    title="GPT-NeoX and Pythia",
    subtitle=(
        "Attention and an ungated MLP side by side, each behind a LayerNorm that reads the block's input, with a "
        "rotary on a part of every head and biases throughout."
    ),
    hue=262,
)
