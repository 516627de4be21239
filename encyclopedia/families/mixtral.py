"""Mixtral (``MixtralForCausalLM``): Mistral AI's 8x7B and 8x22B.

Nothing is declared. From the stream this is Mistral's block: two plain sums, the same attention. In the MLP's place
stands a ``MixtralSparseMoeBlock`` on every block, whose parts are where derivation looks for them:

- ``gate`` is the router. It multiplies, takes a softmax over all experts in float32, keeps the best and divides by
  their sum, all inside its own forward, and returns logits, weights and indices in this order. The standard logits are
  its product; the softmax is not applied to them.
- ``experts`` holds every expert's weights in two stacked parameters and sums the weighted slots by itself, so what it
  returns is the mixture's whole output. There is no shared expert, no bias and no scaling factor.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="mixtral",
    title="Mixtral 8x7B and 8x22B",
    subtitle=(
        "Mistral's block with the MLP replaced, everywhere, by experts of full width, of which a softmax router "
        "picks a few per token and weighs them so that their weights sum to one."
    ),
    hue=262,
)
