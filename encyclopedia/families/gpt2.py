"""GPT-2 (``GPT2LMHeadModel``, by OpenAI): four sizes of one architecture.

Nothing is declared: all of it is read off the model. Next to a Llama, what to know is this.

- Positions are rows of a second table, ``wpe``, added to the tokens' before block 0. Queries and keys carry none of
  their own, so the embedding module's output is not what enters the first block.
- Norms are LayerNorms with gains and biases, and every projection of a block has a bias. A component's share of the
  stream therefore comes in two parts, what it makes of its input and what it adds regardless.
- Projections are ``Conv1D`` modules, whose weight is ``[in, out]``: the transpose of a ``Linear``'s. ``c_attn`` holds
  queries, keys and values side by side, all heads of one before the first head of the next.
- The MLP has no gate, and the head is the token table.

Two switches of the config would change the attention (``scale_attn_by_inverse_layer_idx`` divides a block's scores by
its number, ``reorder_and_upcast_attn`` leaves the shared eager attention). OpenAI's checkpoints set neither.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="gpt2",
    title="GPT-2",
    subtitle=(
        "Pre-norm sublayers and plain sums, with learned position vectors in place of a rotary, LayerNorms, biases "
        "everywhere, an MLP without a gate and the token table for a head."
    ),
    hue=162,
)
