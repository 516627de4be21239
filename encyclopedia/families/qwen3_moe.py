"""Qwen3 with a mixture of experts (``Qwen3MoeForCausalLM``): 30B-A3B, 235B-A22B and what is trained from them.

Nothing is declared. Attention and stream are those of the dense Qwen3: two plain sums, norms on queries and keys, heads
that are wider together than the stream. In the MLP's place stands a ``Qwen3MoeSparseMoeBlock``, whose parts are where
derivation looks for them:

- ``gate`` is the router. In one forward it multiplies, takes a softmax over all experts in float32, keeps the largest
  and, where ``norm_topk_prob`` says so, divides them by their sum. It returns logits, weights and indices; the standard
  logits are its bare product.
- ``experts`` holds all experts in two stacked parameters and sums the weighted slots. There is no shared expert, no
  selection bias and no scaling factor, so its sum is the whole contribution.

The class can leave blocks dense by ``mlp_only_layers`` and ``decoder_sparse_step``. The published configs do not, which
makes their ``intermediate_size`` a number that describes nothing in the model.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="qwen3_moe",
    title="Qwen3 MoE",
    subtitle=(
        "Qwen3's attention, and in every block many narrow experts in the MLP's place, of which a softmax router picks "
        "a few per token and weighs them so that their weights sum to one."
    ),
    hue=304,
)
