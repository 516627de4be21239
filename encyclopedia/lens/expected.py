"""Which hooks are taken for a standard value by what their names mean in TransformerLens.

A comparison finds the hooks that hold a value by their numbers. These are the ones that somebody looks for first, so
where one of them holds something else, that is said.
"""

from __future__ import annotations

#: By host and value, ``{i}`` standing for the block's index; the first that holds the value is the one to use.
EXPECTED: dict[tuple[str, str], tuple[str, ...]] = {
    ("model", "token_embeddings"): ("hook_embed",),
    ("model", "final_norm_output"): ("ln_final.hook_out", "ln_final.hook_normalized"),
    ("model", "lm_head_output"): ("unembed.hook_out",),
    ("model", "logits"): ("unembed.hook_out",),
    ("model", "input_ids"): ("embed.hook_in",),
    ("layer", "layer_input"): ("blocks.{i}.hook_resid_pre",),
    ("layer", "attention_norm_output"): ("blocks.{i}.ln1.hook_out", "blocks.{i}.ln1.hook_normalized"),
    ("layer", "layer_mid"): ("blocks.{i}.hook_resid_mid",),
    ("layer", "mlp_norm_output"): ("blocks.{i}.ln2.hook_out", "blocks.{i}.ln2.hook_normalized"),
    ("layer", "mlp_input"): ("blocks.{i}.mlp.hook_in",),
    ("layer", "layer_output"): ("blocks.{i}.hook_resid_post",),
    ("self_attn", "attention_queries"): ("blocks.{i}.attn.hook_q", "blocks.{i}.attn.hook_rot_q"),
    ("self_attn", "attention_keys"): ("blocks.{i}.attn.hook_k", "blocks.{i}.attn.hook_rot_k"),
    ("self_attn", "attention_values"): ("blocks.{i}.attn.hook_v",),
    ("self_attn", "attention_scores"): ("blocks.{i}.attn.hook_attn_scores",),
    ("self_attn", "attention_probabilities"): ("blocks.{i}.attn.hook_pattern",),
    ("self_attn", "attention_head_outputs"): ("blocks.{i}.attn.hook_z",),
    ("self_attn", "attention_premix"): ("blocks.{i}.attn.hook_z",),
    ("self_attn", "attention_output"): ("blocks.{i}.hook_attn_out",),
    ("mlp", "mlp_activation"): ("blocks.{i}.mlp.hook_post",),
    ("mlp", "mlp_neurons"): ("blocks.{i}.mlp.hook_post",),
    ("mlp", "router_logits"): ("blocks.{i}.mlp.hook_router_scores", "blocks.{i}.mlp.gate.hook_out"),
    ("mlp", "expert_weights"): ("blocks.{i}.mlp.hook_expert_weights", "blocks.{i}.mlp.gate.hook_expert_weights"),
    ("mlp", "expert_indices"): ("blocks.{i}.mlp.hook_expert_indices", "blocks.{i}.mlp.gate.hook_expert_indices"),
    ("mlp", "mlp_output"): ("blocks.{i}.hook_mlp_out",),
}
