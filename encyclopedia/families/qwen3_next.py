"""Qwen3-Next (``Qwen3NextForCausalLM``): Qwen's hybrid of gated delta rules and gated attention, 80B-A3B.

No place and no equation is declared: every block is two plain sums, and each mixer, router and state is where
derivation looks for it. What is declared are words on three arrows of the diagram, where a gate stands between two
values and is no value itself:

- Full attention: ``q_proj`` writes a query and a gate for each head. The sigmoid of the gate multiplies the head
  outputs in front of ``o_proj``, so head outputs and premix differ.
- Delta rule (``Qwen3NextGatedDeltaNet``): the head outputs pass a norm with a SiLU gate from ``in_proj_qkvz`` before
  ``out_proj``. Queries, keys and values are the arguments of the kernel, behind the convolution; the kernel itself
  makes queries and keys unit vectors. One key head serves several value heads, and is read before it is repeated.
- Mixture: ``shared_expert_output`` is what the shared expert returns. The sigmoid of ``shared_expert_gate`` scales it
  on its way into the sum, so the routed output is read off the experts and not as a difference.

The gain of the stream's norms is one plus their weight; the delta rule's inner norm multiplies by its weight as it is.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="qwen3_next",
    title="Qwen3-Next",
    subtitle=(
        "Three blocks in four mix positions by a gated delta rule instead of attention, the fourth by attention with a "
        "gate on its heads, and a mixture with a gated shared expert follows in each."
    ),
    hue=250,
    arrows={
        ("attention_head_outputs", "attention_premix"): "sigmoid gate",
        ("attention_head_outputs", "attention_output"): "norm, gate",
        ("shared_expert_output", "mlp_output"): "sigmoid gate",
    },
)
