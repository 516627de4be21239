"""Mistral (``MistralForCausalLM``): Mistral AI's 7B and, with Nvidia, NeMo.

Nothing is declared, since every module, name and sum is Llama's. Two things differ, and both are settled outside the
block's arithmetic.

- ``sliding_window`` is one number for the whole model, without a list of layer types. Where it is set, the model makes
  one mask and gives it to all blocks, so no attention knows of the window by itself; where it is not set, what is left
  is a Llama.
- ``head_dim`` is a key of its own. On NeMo the heads together are narrower than the stream, so ``o_proj`` is not square
  and ``attention_premix`` is not as wide as the residual stream.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="mistral",
    title="Mistral 7B and NeMo",
    subtitle=(
        "Llama's block with few key/value heads and, on the first release, a mask that hides all but the latest few "
        "thousand positions from every block."
    ),
    hue=22,
)
