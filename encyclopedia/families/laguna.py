"""Laguna (``LagunaForCausalLM``, by poolside).

Llama's tree and Llama's block: each sublayer's output is added to the stream and the block returns one tensor, so the
plain sum is the identity. What differs lies inside the sublayers.

- The attention has its own number of query heads on each block (``num_attention_heads_per_layer``) over the same
  key/value heads everywhere. A block's count is read off its module; the config's single number is the root's.
- Queries and keys are normed before the rotary. After the shared eager attention a softplus gate, one per head or one
  per channel, multiplies the head outputs on their way into ``o_proj``: head outputs are read before it, the premix
  after it.
- From some block on the MLP is a mixture (``LagunaSparseMoeBlock``). It scales the experts' sum after the experts
  module has returned, in its own forward, so the routed output is declared there. The shared expert is a
  ``LagunaMLP``, as the dense blocks' MLP is.
"""

from encyclopedia.families.base import Declared, Family

FAMILY = Family(
    model_type="laguna",
    title="Laguna XS, S, M",
    subtitle=(
        "A pre-norm block whose attention may have another number of query heads on each block and gates the heads "
        "before the output projection; after the first blocks a sigmoid-routed mixture runs beside a shared expert."
    ),
    hue=340,
    classes={"LagunaSparseMoeBlock": Declared(locations={"routed_output": "source.hidden_states_2.output"})},
    arrows={("attention_head_outputs", "attention_premix"): "gate"},
)
