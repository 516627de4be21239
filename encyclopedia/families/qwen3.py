"""Qwen3, the dense sizes (``Qwen3ForCausalLM``, by Alibaba's Qwen team).

Nothing is declared. The stream, the norms around it, the MLP and the shared eager attention are Llama's, and every
value is where derivation looks for it. Two things differ, both inside the attention.

- ``q_norm`` and ``k_norm`` are RMSNorms over a head's width, one gain for all heads, and stand between projection and
  rotation. The standard queries and keys are arguments of the attention's call, so they have norm, gain and rotation
  behind them. The biases that Qwen2 has on its projections are gone.
- ``head_dim`` is a key of its own and the same on every size. On some sizes the heads side by side are wider than the
  stream, so ``o_proj`` is not square and ``hidden_size // num_attention_heads`` is not the width of a head.

``attention_bias`` and ``use_sliding_window`` exist and are off in the published configs. Whether head and embedding
table are one matrix differs by size and is read off the modules.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="qwen3",
    title="Qwen3",
    subtitle=(
        "Llama's block with an RMSNorm on every query and key head in front of the rotation, and heads that can be "
        "wider together than the stream they write to."
    ),
    hue=282,
)
