"""Laguna (``LagunaForCausalLM``, by poolside).

Seen from the stream this is a Llama: two plain sums per block and one tensor out. The departures are in what the
sublayers do.

- ``num_attention_heads_per_layer`` lets blocks differ in query heads; key/value heads and head width stay the same.
  ``model.num_heads`` has to pick one number and repeats the config's; each attention knows its own.
- Between the shared eager attention and ``o_proj`` stands a softplus gate, a number per head or per channel. Head
  outputs are read in front of it and the premix behind it.
- Past the dense first blocks the MLP is a ``LagunaSparseMoeBlock``. It multiplies the routed sum by its scaling factor
  in its own forward, after the experts module has returned, which is why the routed output is declared. Its shared
  expert has the class of the dense blocks' MLP.
"""

from encyclopedia.families.base import Declared, Family

FAMILY = Family(
    model_type="laguna",
    title="Laguna XS, S, M",
    subtitle=(
        "Head counts that change from block to block, a gate between the heads and their projection, and, past a dense "
        "start, experts picked by sigmoid scores next to one that always runs."
    ),
    hue=340,
    classes={"LagunaSparseMoeBlock": Declared(locations={"routed_output": "source.hidden_states_2.output"})},
    arrows={("attention_head_outputs", "attention_premix"): "gate"},
)
