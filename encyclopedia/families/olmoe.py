"""OLMoE (``OlmoeForCausalLM``, by the Allen Institute for AI).

Nothing is declared. The block is Llama's with two changes, both seen in a forward:

- The MLP of every block is a mixture without a shared expert. Its router is a softmax over all experts of which the
  largest few are used as they are (``norm_topk_prob`` is off), so the weights of a token sum to less than one and to a
  different number on every token. The experts' sum is the contribution; nothing is added or scaled behind it.
- ``q_norm`` and ``k_norm`` stand between the projections and the cut into heads, one norm over all heads together.

``clip_qkv`` would bound queries, keys and values in the attention's own forward; no recorded checkpoint sets it.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="olmoe",
    title="OLMoE",
    subtitle=(
        "Every MLP is a mixture of small experts whose softmax weights are used without renormalising, and queries and "
        "keys are normalised over all heads at once."
    ),
    hue=96,
)
