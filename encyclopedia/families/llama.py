"""Llama (``LlamaForCausalLM``): Meta's Llama 2, 3.1 and 3.2, and Hugging Face's SmolLM2.

Nothing is declared. The other families are described by how they depart from this block, so whatever their modules
leave out is what stands here: two sublayers, each behind an RMSNorm, whose outputs are added to the stream as they are;
a shared eager attention in which all of the interior is read; a gated MLP whose neurons enter ``down_proj``.

What differs between the checkpoints is in their configs, and is read off the modules: how many key/value heads the
query heads share, how the rotary is scaled, whether the head is the embedding table.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="llama",
    title="Llama 2, 3 and SmolLM2",
    subtitle=(
        "The plain pre-norm block that the others are compared with: attention and a gated MLP, each behind an "
        "RMSNorm, add their outputs to the stream unchanged."
    ),
    hue=218,
)
