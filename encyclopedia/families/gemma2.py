"""Gemma 2 (``Gemma2ForCausalLM``, by Google).

Nothing is declared. Every departure from a plain Llama block is seen in a forward:

- Four norms per block, two around each sublayer. What reaches the stream is the output of the second one, so the
  contributions are read at ``post_attention_layernorm`` and ``post_feedforward_layernorm``, and
  ``pre_feedforward_layernorm`` is the norm in front of the MLP. The norms multiply by one plus their weight.
- A tanh bounds the scores in front of the mask and another one the logits behind the head. The eager attention that
  the shared interface picks has the first; sdpa has no room for it, and transformers refuses that load.
- Blocks alternate between a window and all of the past, starting with a window.
- Scores are divided by the root of ``query_pre_attn_scalar``, which is the head's width on two of the sizes and the
  stream's width per query head on the third.
- The embedding module multiplies its rows by the root of the stream's width before it returns them, and the head reads
  the same table without that factor.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="gemma2",
    title="Gemma 2",
    subtitle=(
        "Each sublayer stands between two norms and adds what the second one returns; scores and logits pass a tanh "
        "cap, and every other block sees a window only."
    ),
    hue=262,
)
