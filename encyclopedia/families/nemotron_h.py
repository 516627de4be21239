"""Nemotron-H (``NemotronHForCausalLM``, by NVIDIA): Nemotron-H, Nemotron Nano 2 and Nemotron 3 Nano.

A block is one norm and one mixer, and ``layers_block_type`` says which: a Mamba-2, a softmax attention, an MLP or a
mixture. The native child is called ``mixer`` in all of them; here it is ``linear_attn``, ``self_attn`` or ``mlp`` by
what it does. Every block is a plain sum of its input and one contribution, so nothing is declared for the stream.

- The Mamba-2 mixers end in a gated norm over groups of heads, as in the Mamba-2 family. It is inside the mixer, where
  no measurement of the block's norms looks, so the quirk is declared.
- The attention has no rotary and no other notion of position; order comes from the Mamba-2 blocks.
- MLPs, experts and the shared expert have no gate: a squared ReLU stands between two projections, and the activation is
  the neurons.
- The router's weights carry ``routed_scaling_factor`` when they reach the experts, so the experts' output is the routed
  output as it is.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="nemotron_h",
    title="Nemotron-H, Nano 2 and 3",
    subtitle=(
        "A block is one sublayer only, most of them Mamba-2 mixers or MLPs with a squared ReLU and a few of them "
        "attentions, none of which is told positions."
    ),
    hue=78,
    quirks=("inner-norms",),
)
