"""gpt-oss (``GptOssForCausalLM``): OpenAI's gpt-oss-20b and gpt-oss-120b.

Nothing is declared. The stream is Llama's, two plain sums per block, and everything that is unusual stands inside the
sublayers, where it is derived.

- Each head owns a learned logit, its sink, that joins the softmax and is dropped behind it. ``attention_scores`` is
  read in front of the sink and ``attention_probabilities`` behind, so a row of probabilities sums to less than one.
- Even blocks attend within a short window, odd blocks to everything. Both stretch their rotary by YaRN, whose factor
  also lengthens queries and keys.
- Every block has a mixture and no shared expert. The router has a bias, and its softmax runs over the chosen logits.
  An expert clamps its two halves, adds one to the second, and has biases of its own, which ``expert_outputs`` contains.
- Attention and mixture both return a pair. The second element of the mixture's is the chosen experts' weights, and on
  a load that keeps the four-bit weights it is the router's logits.

The four-bit load replaces the mixture's class by one whose interior is a kernel. What is derived and checked here holds
for a dequantised load, the class that the config builds.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="gpt_oss",
    title="gpt-oss 20b and 120b",
    subtitle=(
        "Each head may leave part of its attention on a learned sink, every second block sees a short window, and all "
        "MLPs are mixtures whose experts and router carry biases."
    ),
    hue=160,
)
