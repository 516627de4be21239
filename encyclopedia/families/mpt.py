"""MPT (``MptForCausalLM``): MosaicML's 7B, StoryWriter and 30B.

The attention does its own arithmetic and calls no shared interface, so where its interior stands is declared:

- ``Wqkv`` returns queries, keys and values side by side, clipped first where ``clip_qkv`` says so. They are read as the
  forward binds them, split into heads. Nothing rotates them.
- The config switches the cache off, so a plain forward has no call of one to read keys and values at. They are bound in
  front of it; in a step of generation they are the new token's alone.
- Scores are what enters the softmax. Products, ALiBi's slopes and the mask are in them by then. The pattern is read
  behind the dropout, and head outputs where the heads have been moved behind the positions, in front of ``out_proj``.

The MLP is given the stream as a second argument and adds it before it returns. What the module returns is therefore the
block's output, and what it contributes is read at ``down_proj``. That is derived.
"""

from encyclopedia.families.base import Declared, Family

FAMILY = Family(
    model_type="mpt",
    title="MPT",
    subtitle=(
        "LayerNorms without a bias, an MLP of two matrices that adds the stream to its output by itself, and distance "
        "taken off the scores in place of any position embedding."
    ),
    hue=142,
    classes={
        "MptAttention": Declared(locations={
            "attention_queries": "source.query_states_0.output",
            "attention_keys": "source.key_states_0.output",
            "attention_values": "source.value_states_0.output",
            "attention_scores": "source.nn_functional_softmax_0.input",
            "attention_probabilities": "source.nn_functional_dropout_0.output",
            "attention_head_outputs": "source.context_states_permute_0.output",
        }),
    },
    arrows={
        ("attention_queries", "attention_scores"): "q·k − distance",
        ("attention_keys", "attention_scores"): "q·k − distance",
    },
)
