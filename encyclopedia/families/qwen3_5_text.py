"""Qwen3.5, the text part of the dense sizes (``Qwen3_5ForCausalLM``).

The published models read images too. Their text part is this class; the encoder for images and the head that predicts
several tokens are in the files and not in the model.

No place and no equation is declared. Every block is two plain sums, a delta rule or an attention first and a dense
gated MLP second, and what is inside is where derivation looks for it. Declared are words on two arrows of the diagram,
where a gate stands between two values and is no value itself:

- Full attention: ``q_proj`` writes a query and a gate for each head; the sigmoid of the gate multiplies the head
  outputs in front of ``o_proj``.
- Delta rule (``Qwen3_5GatedDeltaNet``): the head outputs pass a norm with the SiLU of ``in_proj_z`` for a gate before
  ``out_proj``.

The delta rule is Qwen3-Next's with its input projections taken apart. On the smaller sizes a value head has a key head
of its own, on the larger ones several share one; queries and keys are read before they are repeated, so their layout
differs by size. The stream's norms, and those of queries and keys, multiply by one plus their weight.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="qwen3_5_text",
    title="Qwen3.5 (text)",
    subtitle=(
        "Three blocks in four mix positions by a gated delta rule with a state instead of attention, the fourth by "
        "attention with a gate on its heads; the MLP is Llama's."
    ),
    hue=232,
    arrows={
        ("attention_head_outputs", "attention_premix"): "sigmoid gate",
        ("attention_head_outputs", "attention_output"): "norm, gate",
    },
)
