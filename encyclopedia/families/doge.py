"""Doge (``DogeForCausalLM``, by SmallDoge).

The module tree is Llama's; two things are not. The block gates the stream it carries: before each add the stream is
multiplied, channel by channel, by a learned parameter of the block (``input_residual``, then
``post_attention_residual``, both ``[hidden_size]``), while what a sublayer adds stays as it is. So the identity is
declared, and the plain sum holds only where both gates are at their initial one. The attention adds a bias per key to
its scores, computed from the values by ``dt_proj`` and ``A``; the scores are read after it, where the shared eager
attention takes its softmax, so nothing about it needs declaring.

With ``is_moe`` the MLP is ``DogeCDMoE``, which returns its hidden states and the router's logits. Its experts are rows
of two embedding tables found by product keys: there is no router and no experts module, so the mixture's values have
no place, and its activation runs on the experts first and on the dense MLP second.
"""

from encyclopedia.families.base import Declared, Family

_NO_MODULES = (
    "product-key routing picks rows of two embedding tables, so there is no router or experts module to read it at"
)

FAMILY = Family(
    model_type="doge",
    title="Doge",
    subtitle=(
        "A pre-norm block that multiplies the residual stream by a learned gate per channel before each add, "
        "with an attention that adds to its scores a bias per key, made from the values."
    ),
    hue=28,
    identity=(
        "post_attention_residual * (input_residual * layers[i].input + self_attn.attention_output)"
        " + mlp.mlp_output == layer_output"
    ),
    stream_gates={"self_attn": "input_residual", "mlp": "post_attention_residual"},
    quirks=("dynamic-mask",),
    classes={
        "DogeCDMoE": Declared(
            like="mixture",
            experts=("down_embed", "up_embed"),
            locations={
                "mlp_activation": "source.self_act_fn_1.output",
                "mlp_neurons": "down_proj.input",
            },
            withdrawn=dict.fromkeys(
                ("router_logits", "expert_weights", "expert_indices", "expert_outputs", "routed_output",
                 "shared_expert_output"),
                _NO_MODULES,
            ),
        ),
    },
)
