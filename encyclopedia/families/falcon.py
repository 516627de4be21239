"""Falcon (``FalconForCausalLM``, by TII): three decoders under one name.

Two flags of the config choose. Falcon-7B has neither: one LayerNorm feeds attention and MLP side by side, and all query
heads share one key. ``new_decoder_architecture`` (Falcon-40B) gives each of the two its own norm and has several
key/value heads. ``alibi`` (Falcon-RW) is the older, sequential block, with biases and without a rotary.

The attention does its own arithmetic, in another branch for each, so where its interior stands is declared for each.

- Scores are what enters the softmax; the mask is added on the way in. The rotary branch has no dropout behind it, the
  other one has. Under sdpa neither is formed.
- Keys and values are what the cache returns, so that a step of generation has the earlier ones. Falcon-40B repeats them
  to the query heads before it rotates them; there no tensor has them once.
- Head outputs enter ``dense`` as they are, which is the one place that all branches pass.

With side-by-side sublayers the block adds the attention to the tensor that the MLP returned, in place.
"""

from encyclopedia.families.base import Declared, Family

_PLACES = {
    "attention_queries": "source.apply_rotary_pos_emb_0.output[0]",
    "attention_keys": "source.layer_past_update_0.output[0]",
    "attention_values": "source.layer_past_update_0.output[1]",
    "attention_scores": "source.F_softmax_0.input",
    "attention_probabilities": "source.F_softmax_0.output",
    "attention_head_outputs": "dense.input",
}

_REPEATED = (
    "the forward repeats keys and values to all query heads before it rotates them, so no tensor has them once; "
    "repeated, they are in self_attn.source.layer_past_update_0.output"
)

FAMILY = Family(
    model_type="falcon",
    title="Falcon",
    subtitle=(
        "Attention and an ungated MLP side by side on one LayerNorm or two, one key head for all queries or a few, "
        "and, on the oldest, in sequence with distance in the scores."
    ),
    hue=76,
    classes={
        "FalconAttention": Declared(locations=_PLACES, instead={
            "alibi": Declared(locations={
                **_PLACES,
                "attention_queries": "source.query_layer_0.output",
                "attention_scores": "source.F_softmax_1.input",
                "attention_probabilities": "source.self_attention_dropout_0.output",
            }),
            "new_decoder_architecture": Declared(
                locations={name: place for name, place in _PLACES.items()
                           if name not in ("attention_keys", "attention_values")},
                withdrawn=dict.fromkeys(("attention_keys", "attention_values"), _REPEATED),
            ),
        }),
    },
)
