"""BLOOM (``BloomForCausalLM``, by BigScience).

The stream is Llama's: two plain sums per block. Where things are read is not, so most of it is declared.

- A sublayer is handed the stream and adds its result to it itself. What its module returns is therefore the stream
  behind the add; the contributions are what leaves ``dense`` and ``dense_4h_to_h``, which the derivation finds.
- The attention does its own arithmetic, whatever attention a load asks for. Scores are a batched product with ALiBi's
  bias in it, flat over heads; they are read where they enter the softmax, one line further, with the mask added and in
  the usual shape. Head outputs are read where the heads are put side by side.
- Keys and values are what the cache returns, so that a step of generation has the earlier ones. A forward with
  ``use_cache=False`` has no such call and serves neither.
- ``query_key_value`` is fused by head. No position enters the stream: distance is in the scores only.
- ``word_embeddings_layernorm`` stands between the table and block 0.
"""

from encyclopedia.families.base import Declared, Family

FAMILY = Family(
    model_type="bloom",
    title="BLOOM",
    subtitle=(
        "No position in stream, queries or keys: a fixed slope per head lowers the scores with distance. A LayerNorm "
        "follows the embedding, and each sublayer adds itself to the stream."
    ),
    hue=96,
    arrows={
        ("attention_queries", "attention_scores"): "q·k + slope",
        ("attention_keys", "attention_scores"): "q·k + slope",
    },
    classes={
        "BloomAttention": Declared(locations={
            "attention_queries": "source.self__reshape_0.output[0]",
            "attention_keys": "source.layer_past_update_0.output[0]",
            "attention_values": "source.layer_past_update_0.output[1]",
            "attention_scores": "source.F_softmax_0.input",
            "attention_probabilities": "attention_dropout.output",
            "attention_head_outputs": "source.self__merge_heads_0.output",
        }),
    },
)
