"""Granite 4.0 hybrids (``GraniteMoeHybridForCausalLM``, by IBM).

Llama's block with Mamba-2 mixers in the place of most attentions and with Granite's constants: one on the embeddings,
one on everything that is added to the stream (``residual_multiplier``), one in the attention's scores and one that the
logits are divided by. The identity has the second in it and is derived.

- Mamba-2 mixers end in a gated norm over their heads. It is inside the mixer, where no measurement of the block's norms
  looks, so the quirk is declared.
- Blocks with experts have two modules that read the same norm: ``block_sparse_moe``, which is the MLP here, and
  ``shared_mlp``, whose output the block adds beside it. ``mlp_output`` is the mixture's alone; the identity of such a
  block has a third term. On the checkpoints without experts ``shared_mlp`` is the MLP.
- The MLP's two halves lie in one projection, ``input_linear``, the gate first.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="granitemoehybrid",
    title="Granite 4.0 hybrids",
    subtitle=(
        "Mamba-2 mixers with an attention without positions here and there, and one constant that scales whatever a "
        "sublayer adds to the stream."
    ),
    hue=226,
    quirks=("inner-norms",),
)
