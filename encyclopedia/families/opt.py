"""OPT (``OPTForCausalLM``, by Meta).

Nothing is declared. One class makes two architectures, and a checkpoint's config says which it is:

- ``do_layer_norm_before``, as all sizes but one have it: a LayerNorm in front of each sublayer, plain sums, a last
  norm.
- OPT-350M has it off. Each sublayer's norm stands behind its add and the stream goes on as the norm leaves it, so no
  sum of contributions gives the block's output and there is no identity. Its tables are narrower than its stream, with
  a ``project_in`` and a ``project_out`` between, and it has no norm after the last block.

Common to both: learned positions, whose table is read with an offset; queries that are scaled ahead of the shared eager
attention, so that the scores are their plain products with the keys; an MLP that is two layers of the block, ``fc1``
and ``fc2``, with a ReLU between them. Inside a block the MLP runs flat over tokens, and its values are served by prompt
and position.

``final_layer_norm`` is the name of a block's second norm and of the decoder's last one.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="opt",
    title="OPT",
    subtitle=(
        "Learned positions with an offset, queries that carry the attention's scale, LayerNorms, biases and a ReLU "
        "MLP; in one size, 350M, the norms stand behind the adds."
    ),
    hue=196,
)
