"""DeepSeek-V3 (``DeepseekV3ForCausalLM``): DeepSeek's V3 and R1, and Moonshot's Moonlight.

Nothing is declared. The stream is Llama's: two norms, two plain sums, one tensor out. Both sublayers are another
matter, and all of it is found in the modules.

- Keys and values of all heads are unfolded by ``kv_b_proj`` from one normed latent per token. Beside the latent each
  token has a single rotated key that all heads share; it is a part of the output of ``kv_a_proj_with_mqa``. The shared
  attention is given keys and values after the unfolding, so that is how the standard values are read, and a head's
  queries and keys (``qk_head_dim``) are wider than its values (``head_dim``). The cache holds latents.
- V3 makes its queries from a normed latent of their own, Moonlight from the stream directly (``q_lora_rank`` is null).
- Past the dense first blocks an MLP is a ``DeepseekV3MoE``. Its router works in float32. It chooses by sigmoids plus a
  stored bias, on V3 within the groups of experts that score best, and its weights contain the scaling factor, so the
  routed output is the experts module's own.

A checkpoint's multi-token prediction block is left out by transformers when it loads; no page shows it.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="deepseek_v3",
    title="DeepSeek V3, R1 and Moonlight",
    subtitle=(
        "All heads unfold their keys and values from one latent per token, and past a dense start experts are picked "
        "by biased sigmoids, on V3 within the best groups, next to one that always runs."
    ),
    hue=232,
)
