"""GLM-4.5 (``Glm4MoeForCausalLM``): Z.ai's GLM-4.5, 4.6, 4.7 and GLM-4.5-Air.

Nothing is declared. Two plain sums per block, one tensor out; what differs from a Llama is derived from the sublayers.

- Queries, keys and values have biases, the output projection has none. The larger models also norm queries and keys,
  head by head; Air does not (``use_qk_norm``).
- Half of a head's channels are rotated, in halves of that half; the others never see the position.
- Past the dense first blocks the MLP is a ``Glm4MoeMoE`` in DeepSeek-V3's manner: a float32 router that chooses by
  sigmoids plus a stored bias and weighs by the sigmoids alone, and a shared expert beside the routed ones. The scaling
  factor is in the weights, so the routed output is the experts module's own. The groups of experts that the code knows
  are one group on every checkpoint, which is no limit.

A checkpoint's block for predicting a second token is left out by transformers when it loads.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="glm4_moe",
    title="GLM-4.5 to GLM-4.7",
    subtitle=(
        "Biased queries, keys and values, half of each head rotated, and past a dense start experts picked by biased "
        "sigmoids next to one that always runs."
    ),
    hue=12,
)
