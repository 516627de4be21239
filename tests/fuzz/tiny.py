"""Small configs of families that differ, each as a page can be made of it."""

from __future__ import annotations

from typing import Any

_PLAIN: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64,
}

TINY: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **_PLAIN, "hidden_act": "silu",
              "rms_norm_eps": 1e-6, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
              "tie_word_embeddings": False, "torch_dtype": "bfloat16"},
    "gpt2": {"model_type": "gpt2", "vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
             "activation_function": "gelu_new"},
    "gemma2": {"model_type": "gemma2", **_PLAIN, "head_dim": 8, "sliding_window": 16, "attn_logit_softcapping": 50.0,
               "final_logit_softcapping": 30.0, "query_pre_attn_scalar": 8,
               "layer_types": ["sliding_attention", "full_attention"]},
    "mixtral": {"model_type": "mixtral", **_PLAIN, "num_local_experts": 4, "num_experts_per_tok": 2},
    "mamba2": {"model_type": "mamba2", "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8,
               "num_heads": 8, "head_dim": 8, "n_groups": 1, "expand": 2, "conv_kernel": 4, "chunk_size": 8},
    "qwen3_next": {"model_type": "qwen3_next", **_PLAIN, "head_dim": 8, "linear_num_key_heads": 2,
                   "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8, "num_experts": 4,
                   "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
                   "layer_types": ["linear_attention", "full_attention"], "decoder_sparse_step": 1},
    "deepseek_v3": {"model_type": "deepseek_v3", **_PLAIN, "num_key_value_heads": 4, "q_lora_rank": 16,
                    "kv_lora_rank": 16, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8,
                    "n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
                    "moe_intermediate_size": 16, "first_k_dense_replace": 1},
    "bloom": {"model_type": "bloom", "vocab_size": 64, "hidden_size": 32, "n_layer": 2, "n_head": 4},
}
