"""The vocabulary: every standard value once, with its host, layout, meaning and role.

Families relocate, add or withdraw values; none of them redefines what a name means. The names are
nnterp's, so that code written with them runs here by changing the import.

This module is data: it imports neither torch nor a model.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


class Role(StrEnum):
    """What a value, module or part does in the block; one colour each on a page."""

    STREAM = "stream"
    ATTENTION = "attention"
    MLP = "mlp"
    NORM = "norm"


@dataclass(frozen=True)
class Layout:
    """Named axes of a value, in order; ``batch`` is axis 0.

    Attributes:
        name: the layout's name, such as ``Queries``.
        dims: the axes' names, such as ``("batch", "num_heads", "seq", "qk_head_dim")``.
        dtype: ``float`` or ``int``, the kind of number the tensor holds.
    """

    name: str
    dims: tuple[str, ...]
    dtype: str = "float"

    def __str__(self) -> str:
        return f"{self.name} [{' '.join(self.dims)}]"


RESIDUAL = Layout("Residual", ("batch", "seq", "hidden_size"))
STREAMS = Layout("Streams", ("batch", "seq", "streams", "hidden_size"))
LOGITS = Layout("Logits", ("batch", "seq", "vocab_size"))
NEXT_TOKEN_PROBS = Layout("NextTokenProbs", ("batch", "vocab_size"))
TOKENS = Layout("Tokens", ("batch", "seq"), dtype="int")
QUERIES = Layout("Queries", ("batch", "num_heads", "seq", "qk_head_dim"))
KEYS = Layout("Keys", ("batch", "num_kv_heads", "seq", "qk_head_dim"))
VALUES = Layout("Values", ("batch", "num_kv_heads", "seq", "head_dim"))
PATTERN = Layout("Pattern", ("batch", "num_heads", "query", "key"))
HEAD_OUTPUTS = Layout("HeadOutputs", ("batch", "seq", "num_heads", "head_dim"))
NEURONS = Layout("Neurons", ("batch", "seq", "intermediate_size"))
ROUTER_LOGITS = Layout("RouterLogits", ("batch", "seq", "num_experts"))
EXPERT_WEIGHTS = Layout("ExpertWeights", ("batch", "seq", "top_k"))
EXPERT_INDICES = Layout("ExpertIndices", ("batch", "seq", "top_k"), dtype="int")
EXPERT_OUTPUTS = Layout("ExpertOutputs", ("batch", "seq", "top_k", "hidden_size"))

LINEAR_QK = Layout("LinearQK", ("batch", "seq", "heads", "key_dim"))
GROUPED_QK = Layout("GroupedQK", ("batch", "seq", "key_heads", "key_dim"))
LINEAR_V = Layout("LinearV", ("batch", "seq", "heads", "value_dim"))
GATES = Layout("Gates", ("batch", "seq", "heads"))
KEY_GATES = Layout("KeyGates", ("batch", "seq", "heads", "key_dim"))
STATE = Layout("State", ("batch", "heads", "key_dim", "value_dim"))
STATES = Layout("States", ("batch", "seq", "heads", "key_dim", "value_dim"))
SCAN_QK = Layout("ScanQK", ("batch", "seq", "groups", "state_dim"))
SCAN_VALUES = Layout("ScanValues", ("batch", "seq", "channels"))
SCAN_STATE = Layout("ScanState", ("batch", "channels", "state_dim"))
SSD_QUERIES = Layout("SSDQueries", ("batch", "seq", "groups", "state_dim"))
SSD_KEYS = Layout("SSDKeys", ("batch", "seq", "groups", "state_dim"))
SSD_VALUES = Layout("SSDValues", ("batch", "seq", "heads", "head_dim"))
SSD_HEAD_OUTPUTS = Layout("SSDHeadOutputs", ("batch", "seq", "heads", "head_dim"))
SSD_STATE = Layout("SSDState", ("batch", "heads", "head_dim", "state_dim"))
CHANNELS = Layout("Channels", ("batch", "seq", "channels"))
CHANNEL_STATE = Layout("ChannelState", ("batch", "channels"))

#: Hosts by the name their values are grouped under, with the expression that reaches one.
HOSTS = {
    "model": "model",
    "layer": "model.layers[i]",
    "self_attn": "model.layers[i].self_attn",
    "linear_attn": "model.layers[i].linear_attn",
    "mlp": "model.layers[i].mlp",
}

#: The parts of a mixture of experts, each a panel of the diagram.
PARTS = ("router", "experts", "shared")


@dataclass(frozen=True)
class Value:
    """One standard value.

    Attributes:
        name: the attribute that reads it inside a trace.
        host: a key of :data:`HOSTS`.
        layout: its axes; ``None`` for a plain Python value.
        description: what it is, in one sentence without a full stop.
        role: the colour it carries on a page.
        made_from: the values of the same host it is computed from.
        by: the operation that makes it from them, as a label on the diagram's arrow.
        part: the mixture's part it belongs to, or ``None``.
        writable: whether assigning to it inside a trace makes sense.
    """

    name: str
    host: str
    layout: Layout | None
    description: str
    role: Role
    made_from: tuple[str, ...] = field(default=())
    by: str | None = None
    part: str | None = None
    writable: bool = True


_ROOT = (
    Value("logits", "model", LOGITS,
          "What the model returns, a row per position it was asked for (all in a plain call, the last in generation)",
          Role.STREAM),
    Value("token_embeddings", "model", RESIDUAL,
          "The embedding table's rows for the input; a family may still scale or add to them before the first block",
          Role.STREAM),
    Value("final_norm_output", "model", RESIDUAL, "The stream after the last norm, as the head reads it", Role.NORM),
    Value("lm_head_output", "model", LOGITS, "The unembedding's product, untouched by later caps and scales",
          Role.STREAM),
    Value("next_token_probs", "model", NEXT_TOKEN_PROBS,
          "The distribution over the next token, the softmax of the last position's logits (read only)",
          Role.STREAM, writable=False),
    Value("input_ids", "model", TOKENS, "The token ids of this call", Role.STREAM),
    Value("attention_mask", "model", TOKENS,
          "Which positions of this call are real (one) and which are padding (zero)", Role.STREAM),
    Value("input_size", "model", None, "Batch size and sequence length of this call (read only)", Role.STREAM,
          writable=False),
)

_LAYER = (
    Value("layer_input", "layer", RESIDUAL, "The stream as it enters the block", Role.STREAM),
    Value("attention_norm_output", "layer", RESIDUAL, "The normed stream that the attention reads", Role.NORM),
    Value("layer_mid", "layer", RESIDUAL,
          "The stream between the two sublayers; assigning it changes what the next norm reads, not the stream",
          Role.STREAM),
    Value("mlp_norm_output", "layer", RESIDUAL, "The normed stream that the MLP reads", Role.NORM),
    Value("mlp_input", "layer", RESIDUAL,
          "The first argument of the MLP's forward, often the same tensor as mlp_norm_output", Role.MLP),
    Value("layer_output", "layer", RESIDUAL, "The stream as it leaves the block, always as one tensor", Role.STREAM),
)

_ATTENTION = (
    Value("attention_queries", "self_attn", QUERIES,
          "The queries the attention scores are computed from, after any norm and rotary", Role.ATTENTION),
    Value("attention_keys", "self_attn", KEYS,
          "The keys a query may meet, after any norm and rotary, cached ones included; not repeated to the heads",
          Role.ATTENTION),
    Value("attention_values", "self_attn", VALUES,
          "The values that are mixed, cached ones included; not repeated to the heads", Role.ATTENTION),
    Value("attention_scores", "self_attn", PATTERN,
          "Query-key products with every factor and term (scale, mask, bias) in them, about to enter the softmax",
          Role.ATTENTION, made_from=("attention_queries", "attention_keys"), by="q · k"),
    Value("attention_premix", "self_attn", HEAD_OUTPUTS,
          "The heads after any gate, on the doorstep of the output projection",
          Role.ATTENTION, made_from=("attention_head_outputs",)),
    Value("attention_output", "self_attn", RESIDUAL, "The attention's contribution to the residual stream",
          Role.ATTENTION, made_from=("attention_premix",)),
    Value("attention_probabilities", "self_attn", PATTERN,
          "Softmaxed scores in the dtype, and after the dropout, in which they multiply the values",
          Role.ATTENTION, made_from=("attention_scores",), by="softmax"),
    Value("attention_head_outputs", "self_attn", HEAD_OUTPUTS,
          "What each head gathers from the values, ahead of any gate and of the output projection",
          Role.ATTENTION, made_from=("attention_probabilities", "attention_values")),
)

_RECURRENT = (
    Value("attention_queries", "linear_attn", LINEAR_QK,
          "What reads the state at each token (C in a Mamba), before any norm or scale the recurrence itself applies",
          Role.ATTENTION),
    Value("attention_keys", "linear_attn", LINEAR_QK,
          "Where in the state a token is written (B in a Mamba), before any norm the recurrence itself applies",
          Role.ATTENTION),
    Value("attention_values", "linear_attn", LINEAR_V, "What a token writes into the state (x in a Mamba)",
          Role.ATTENTION),
    Value("decays", "linear_attn", GATES,
          "How much of the state outlives a token: the factor's logarithm in a delta rule, the factor itself in an "
          "RG-LRU", Role.ATTENTION),
    Value("betas", "linear_attn", GATES,
          "How far a token's value replaces what the state returns for its key: not at all at zero, wholly at one",
          Role.ATTENTION),
    Value("state_input", "linear_attn", STATE, "The state an earlier call left, as this call finds it",
          Role.ATTENTION),
    Value("states", "linear_attn", STATES, "The state after every token", Role.ATTENTION,
          made_from=("attention_keys", "attention_values", "decays", "betas", "state_input")),
    Value("state_output", "linear_attn", STATE, "The state after the last token, as it is kept for the next call",
          Role.ATTENTION, made_from=("states",)),
    Value("attention_head_outputs", "linear_attn", LINEAR_V,
          "What is read out of the state (a Mamba's skip D included), ahead of any gate, norm and output projection",
          Role.ATTENTION, made_from=("attention_queries", "states")),
    Value("attention_output", "linear_attn", RESIDUAL, "The mixer's contribution to the residual stream",
          Role.ATTENTION, made_from=("attention_head_outputs",)),
)

_MLP = (
    Value("mlp_activation", "mlp", NEURONS, "The output of the activation function", Role.MLP),
    Value("mlp_neurons", "mlp", NEURONS,
          "One number per neuron, about to be written out by the neuron's column of the down projection",
          Role.MLP, made_from=("mlp_activation",)),
    Value("router_logits", "mlp", ROUTER_LOGITS,
          "Raw preference for every expert, ahead of any sigmoid or softmax", Role.MLP,
          part="router"),
    Value("expert_weights", "mlp", EXPERT_WEIGHTS,
          "How much each slot counts in the routed sum (a scale common to all may follow)", Role.MLP,
          made_from=("router_logits",), part="router"),
    Value("expert_indices", "mlp", EXPERT_INDICES, "Numbers of the chosen experts, slot by slot", Role.MLP,
          made_from=("router_logits",), part="router"),
    Value("expert_outputs", "mlp", EXPERT_OUTPUTS,
          "What every slot adds to the routed sum, its weight included", Role.MLP,
          made_from=("expert_weights", "expert_indices"), part="experts"),
    Value("routed_output", "mlp", RESIDUAL, "The routed experts' sum, with any routed scaling applied", Role.MLP,
          made_from=("expert_outputs",), part="experts"),
    Value("shared_expert_output", "mlp", RESIDUAL, "The output of the expert every token visits", Role.MLP,
          part="shared"),
    Value("mlp_output", "mlp", RESIDUAL, "The MLP's contribution to the residual stream", Role.MLP,
          made_from=("mlp_neurons", "routed_output", "shared_expert_output")),
)

#: The one table, in the order a host prints its values.
VOCABULARY: tuple[Value, ...] = (*_ROOT, *_LAYER, *_ATTENTION, *_RECURRENT, *_MLP)

_DELTA = {
    "attention_queries": LINEAR_QK,
    "attention_keys": LINEAR_QK,
    "attention_values": LINEAR_V,
    "decays": GATES,
    "betas": GATES,
    "state_input": STATE,
    "state_output": STATE,
    "attention_head_outputs": LINEAR_V,
    "attention_output": RESIDUAL,
}

#: The layouts of a recurrent mixer's values by its flavour; a value that a flavour does not list is not there.
#:
#: ``delta``: a gated delta rule, one decay per head.
#: ``grouped_delta``: the same with fewer query and key heads than value heads.
#: ``key_delta``: a delta rule with a decay per head and key channel.
#: ``lightning``: linear attention with a fixed decay per head.
#: ``mlstm``: the matrix memory of an xLSTM.
#: ``scan``: the selective scan of Mamba-1; ``head_scan`` runs it once per head.
#: ``ssd``: the state-space dual form of Mamba-2.
#: ``wkv``: the weighted key-value average of RWKV.
#: ``lru``: a real-gated linear recurrent unit, whose state is its output.
#: ``convolution``: a short gated convolution, whose state is its last inputs.
#: ``other``: anything else.
FLAVOURS: Mapping[str, Mapping[str, Layout]] = {
    "delta": _DELTA,
    "grouped_delta": {**_DELTA, "attention_queries": GROUPED_QK, "attention_keys": GROUPED_QK},
    "key_delta": {**_DELTA, "decays": KEY_GATES},
    "lightning": {name: layout for name, layout in _DELTA.items() if name not in ("decays", "betas")},
    "mlstm": {
        "attention_queries": LINEAR_QK,
        "attention_keys": LINEAR_QK,
        "attention_values": LINEAR_V,
        "attention_head_outputs": LINEAR_V,
        "attention_output": RESIDUAL,
    },
    "scan": {
        "attention_queries": SCAN_QK,
        "attention_keys": SCAN_QK,
        "attention_values": SCAN_VALUES,
        "state_input": SCAN_STATE,
        "state_output": SCAN_STATE,
        "attention_output": RESIDUAL,
    },
    "head_scan": {"state_input": SSD_STATE, "state_output": SSD_STATE, "attention_output": RESIDUAL},
    "ssd": {
        "attention_queries": SSD_QUERIES,
        "attention_keys": SSD_KEYS,
        "attention_values": SSD_VALUES,
        "state_input": SSD_STATE,
        "state_output": SSD_STATE,
        "attention_head_outputs": SSD_HEAD_OUTPUTS,
        "attention_output": RESIDUAL,
    },
    "wkv": {
        "attention_keys": CHANNELS,
        "attention_values": CHANNELS,
        "attention_head_outputs": CHANNELS,
        "attention_output": RESIDUAL,
    },
    "lru": {
        "attention_values": CHANNELS,
        "decays": CHANNELS,
        "state_input": CHANNEL_STATE,
        "states": CHANNELS,
        "state_output": CHANNEL_STATE,
        "attention_output": RESIDUAL,
    },
    "convolution": {"attention_output": RESIDUAL},
    "other": {"attention_output": RESIDUAL},
}


def values_of(host: str, flavour: str | None = None) -> dict[str, Value]:
    """The standard values of ``host``, by name, in table order.

    Args:
        host: a key of :data:`HOSTS`.
        flavour: a key of :data:`FLAVOURS` for a recurrent mixer: the values it has, in its layouts. A value made from
            one that the flavour lacks is made from what that one is made from.

    Raises:
        KeyError: for a flavour that is not in the table.
    """
    table = {value.name: value for value in VOCABULARY if value.host == host}
    if flavour is None:
        return table
    layouts = FLAVOURS[flavour]
    return {
        name: replace(value, layout=layouts[name], made_from=sources_of(value, table, layouts))
        for name, value in table.items() if name in layouts
    }


def sources_of(value: Value, table: Mapping[str, Value], present: Container[str]) -> tuple[str, ...]:
    """The present values that ``value`` is made from; one that is absent stands for what it is made from itself.

    Args:
        value: one of ``table``.
        table: values by name; a source that is not in it ends there.
        present: names of those that are there.
    """
    found: dict[str, None] = {}
    for name in value.made_from:
        if name in present:
            found[name] = None
        elif name in table:
            found |= dict.fromkeys(sources_of(table[name], table, present))
    return tuple(found)
