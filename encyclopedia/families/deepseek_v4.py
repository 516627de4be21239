"""DeepSeek-V4 (``DeepseekV4ForCausalLM``): DeepSeek's V4-Flash and V4-Pro.

The block carries several residual streams, ``[batch, seq, streams, hidden_size]``. In front of each sublayer a
hyper-connection (``attn_hc``, ``ffn_hc``) weighs the streams into the one tensor that the norm and the sublayer read,
and gives the numbers for the way back: how much of the sublayer's output each stream gets, and a doubly stochastic
matrix that mixes the streams. These depend on the token. ``layer_input`` and ``layer_output`` are the streams,
contributions are single tensors, and no plain sum holds.

Withdrawn is what has no place in the usual layouts. Keys and values are one tensor, and except on blocks with a window
alone it also holds entries that a compressor made of several tokens each. There are then more keys than positions, and
a pattern's last axis is no sequence; on window blocks all are served. Queries and head outputs are as usual. Heads are
turned back by the query's own position and projected in two steps, the first by groups of heads, so that what enters
the last projection is no head any more.

The first blocks take each token's experts from a table over token ids; their routers decide only the weights.
"""

from encyclopedia.families.base import Declared, Family

_COMPRESSED = dict.fromkeys(
    ("attention_keys", "attention_values", "attention_scores", "attention_probabilities"),
    "behind the tokens' own keys stand entries that each compress several tokens, so there are more keys than "
    "positions; source.attention_interface_1 has them all",
)

FAMILY = Family(
    model_type="deepseek_v4",
    title="DeepSeek-V4 Flash and Pro",
    subtitle=(
        "Several residual streams that each sublayer reads and rewrites in proportions of its own, one tensor for keys "
        "and values, distant tokens compressed, and experts picked by token id in the first blocks."
    ),
    hue=252,
    identity=(
        "ffn_hc.output[0][..., None] * mlp.mlp_output[..., None, :] + ffn_hc.output[1].mT @ ("
        "attn_hc.output[0][..., None] * self_attn.attention_output[..., None, :]"
        " + attn_hc.output[1].mT @ layers[i].input) == layer_output"
    ),
    classes={
        "DeepseekV4DecoderLayer": Declared(
            withdrawn={"layer_mid": "between the sublayers there are several streams, which are at ffn_hc.input"},
        ),
        "DeepseekV4Attention": Declared(
            withdrawn={
                "attention_premix": "the output projection comes in two steps, and the second reads groups of heads "
                "that the first has mixed; the heads as the first reads them are at source.attn_output_0.output",
            },
            withdrawn_on=dict.fromkeys(("compressed_sparse_attention", "heavily_compressed_attention"), _COMPRESSED),
        ),
    },
)
