"""Falcon-H1 (``FalconH1ForCausalLM``, by the Technology Innovation Institute).

Every block runs a Mamba-2 mixer and a softmax attention side by side on the same normed stream and adds both, each
times a constant, before an ordinary MLP. Constants stand in a dozen more places, and three declarations follow.

- With two mixers in front of the MLP no single one is the norm's reader or the first summand. The stream between, and
  the norm in front of both, are where they are in a Llama and declared.
- The MLP multiplies inside: the gate in front of the activation, and what leaves ``down_proj``. Neurons are therefore
  read where they enter ``down_proj``; they reach the stream times the second constant.

The mixers' outputs are served as they return them, without the constants, which belong to the block and stand in its
identity.
"""

from encyclopedia.families.base import Declared, Family

FAMILY = Family(
    model_type="falcon_h1",
    title="Falcon-H1",
    subtitle=(
        "Each block runs a Mamba-2 mixer and an attention side by side on one normed stream, and constants scale "
        "almost everything that is added, from the embeddings to the logits."
    ),
    hue=18,
    classes={
        "FalconH1DecoderLayer": Declared(locations={
            "attention_norm_output": "input_layernorm.output",
            "layer_mid": "pre_ff_layernorm.input",
        }),
        "FalconH1MLP": Declared(locations={"mlp_neurons": "down_proj.input"}),
    },
)
