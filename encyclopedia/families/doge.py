"""Doge (``DogeForCausalLM``, by SmallDoge).

The modules are named and nested as in Llama; the block's arithmetic is its own. Two trained vectors per block act on
the stream itself: ``input_residual`` on the way to the attention's sum and ``post_attention_residual`` on the way to
the MLP's. What is added is left as the sublayer made it. A stream with trained gates is not a plain sum of what was
added to it, so the identity is declared. (A model fresh from its config has ones there and would hide the difference;
the checks move every parameter first.) The bonus that each key gets from its values through ``dt_proj`` and ``A``
enters by the mask argument of the shared eager attention, so the scores have it where they are read anyway.

Checkpoints with ``is_moe`` have a ``DogeCDMoE`` in the MLP's place, which returns a pair. Its experts are rows of two
embedding tables, picked inside the forward. The six values of a mixture have no place there, and since the activation
function runs on the experts before it runs on the dense part, the activation is the second call's.
"""

from encyclopedia.families.base import Declared, Family

_NO_MODULES = (
    "experts here are rows of two embedding tables, picked inside the forward; no module holds this value"
)

FAMILY = Family(
    model_type="doge",
    title="Doge",
    subtitle=(
        "Two trained vectors per block shrink or stretch the stream's channels on the way to each sum, and every key "
        "enters the softmax with a bonus read off its values."
    ),
    hue=28,
    identity=(
        "post_attention_residual * (input_residual * layers[i].input + self_attn.attention_output)"
        " + mlp.mlp_output == layer_output"
    ),
    stream_gates={"self_attn": "input_residual", "mlp": "post_attention_residual"},
    quirks=("dynamic-mask",),
    arrows={
        ("attention_queries", "attention_scores"): "q·k + bias",
        ("attention_keys", "attention_scores"): "q·k + bias",
    },
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
