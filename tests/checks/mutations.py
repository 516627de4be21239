"""Deliberately wrong claims, each a small change to what a family, a derivation or the vocabulary says."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

import encyclopedia.checks.meaning.mixture
import encyclopedia.model.availability
import encyclopedia.model.envoys
import encyclopedia.model.transformer
import encyclopedia.structure.derive
import encyclopedia.structure.sizes
import encyclopedia.vocabulary
from encyclopedia.checkpoints import read_family
from encyclopedia.families import Declared, Family
from encyclopedia.model.envoys import Attention, Block, Mixture, Mlp, StandardHost
from encyclopedia.model.locations import root_locations
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.structure.contributions import find_sum
from encyclopedia.structure.parts import Sum
from encyclopedia.structure.sizes import SPELLINGS, SizeSources
from encyclopedia.structure.sublayers import find_sublayers
from encyclopedia.vocabulary import Value

DOGE = "SmallDoge/Doge-260M"
DOGE_MQA = "SmallDoge/Doge-20M"
DOGE_MOE = "SmallDoge/Doge-180M-MoE"
XS = "poolside/Laguna-XS-2.1"
M1 = "poolside/Laguna-M.1"
LLAMA = "HuggingFaceTB/SmolLM2-135M-Instruct"
LLAMA_MHA = "meta-llama/Llama-2-7b-hf"


def reference(model_type: str) -> str:
    """The id of the checkpoint that the family's page opens on."""
    return next(record.id for record in read_family(model_type)[0] if record.reference)


#: Norms on both sides, norms behind only, one norm for two sublayers side by side.
GEMMA2, OLMO2, COHERE = map(reference, ("gemma2", "olmo2", "cohere"))
#: Scaled sums, a shared expert behind a gate, an attention that does its own arithmetic, several streams.
GRANITE, QWEN2_MOE, BLOOM, DEEPSEEK_V4 = map(reference, ("granite", "qwen2_moe", "bloom", "deepseek_v4"))
#: Recurrent mixers: a state-space scan, the delta rule, and an LRU beside blocks of attention.
MAMBA2, QWEN3_NEXT, GRIFFIN = map(reference, ("mamba2", "qwen3_next", "recurrent_gemma"))

#: The attention interface's call, and the eager attention inside it.
CALL = "source.attention_interface_1"
EAGER = f"{CALL}.source"


@dataclass(frozen=True)
class Mutation:
    """One wrong claim.

    Attributes:
        sentence: what it claims.
        checkpoint: whose twin it is claimed of.
        value: what the error has to name.
        change: makes the claim; takes the family and returns the one to check with.
        block: the block the error has to name, or ``None`` for the root.
        writing: whether only writing can tell.
        default: whether the default load has to be checked.
    """

    sentence: str
    checkpoint: str
    value: str
    change: Callable[[Family, pytest.MonkeyPatch], Family]
    block: int | None = 0
    writing: bool = False
    default: bool = False


def use(mutated: Family, patch: pytest.MonkeyPatch) -> Family:
    """Have models standardised by ``mutated``."""
    patch.setattr(encyclopedia.model.transformer, "family", lambda model_type: mutated)
    return mutated


def declaring(native: str, **changes: Any) -> Callable[[Family, pytest.MonkeyPatch], Family]:
    """The family with other locations or withdrawals for one class."""

    def change(declared: Family, patch: pytest.MonkeyPatch) -> Family:
        before = declared.classes.get(native, Declared())
        merged = {key: {**getattr(before, key), **added} for key, added in changes.items()}
        return use(replace(declared, classes={**declared.classes, native: replace(before, **merged)}), patch)

    return change


def saying(**changes: Any) -> Callable[[Family, pytest.MonkeyPatch], Family]:
    """The family with other fields."""
    return lambda declared, patch: use(replace(declared, **changes), patch)


def patching(owner: Any, name: str, replacement: Any) -> Callable[[Family, pytest.MonkeyPatch], Family]:
    """The family as it is, over a derivation that is wrong."""

    def change(declared: Family, patch: pytest.MonkeyPatch) -> Family:
        patch.setattr(owner, name, replacement)
        return declared

    return change


def both(*changes: Callable[[Family, pytest.MonkeyPatch], Family]) -> Callable[[Family, pytest.MonkeyPatch], Family]:
    """One change after another."""

    def change(declared: Family, patch: pytest.MonkeyPatch) -> Family:
        for each in changes:
            declared = each(declared, patch)
        return declared

    return change


def deriving(owner: Any, name: str, replacement: Any) -> Callable[[Family, pytest.MonkeyPatch], Family]:
    """The family as it is, over a structure that is derived anew and wrongly."""

    def change(declared: Family, patch: pytest.MonkeyPatch) -> Family:
        patch.setattr(encyclopedia.structure.derive, "_derived", OrderedDict())
        patch.setattr(owner, name, replacement)
        return declared

    return change


def derived_with(host: str, **fields: Any) -> Callable[[Family, pytest.MonkeyPatch], Family]:
    """The structure with other fields on the sublayers that are ``host``."""

    def wrong(run: Any, recording: Any, found: Any) -> Any:
        sublayers, total = find_sublayers(run, recording, found)
        return tuple(replace(each, **fields) if each.host == host else each for each in sublayers), total

    return deriving(encyclopedia.structure.derive, "find_sublayers", wrong)


def summed_with(host: str, factor: str | None) -> Callable[[Family, pytest.MonkeyPatch], Family]:
    """The structure with another factor in front of what ``host`` adds."""

    def wrong(run: Any, recording: Any, found: Any) -> Any:
        sublayers, total = find_sublayers(run, recording, found)
        assert total is not None
        terms = tuple(replace(term, factor=factor) if term.host == host else term for term in total.terms)
        return sublayers, replace(total, terms=terms)

    return deriving(encyclopedia.structure.derive, "find_sublayers", wrong)


def spelled(name: str, *spellings: str) -> Callable[[Family, pytest.MonkeyPatch], Family]:
    """A size that other attributes are read for."""
    return deriving(encyclopedia.structure.sizes, "SPELLINGS", {**SPELLINGS, name: spellings})


def sized(**sizes: Callable[[Any, dict[str, int]], int]) -> Callable[[Family, pytest.MonkeyPatch], Family]:
    """Sizes computed from the config and the right ones instead."""
    read = SizeSources.read

    def wrong(sources: SizeSources, sublayers: Any, config: Any) -> dict[str, int]:
        found = read(sources, sublayers, config)
        return {**found, **{name: size(config, found) for name, size in sizes.items()}}

    return patching(SizeSources, "read", wrong)


def read_at(
    sentence: str, checkpoint: str, native: str, value: str, location: str, block: int | None = 0,
    writing: bool = False,
) -> Mutation:
    """A value declared at a wrong place."""
    return Mutation(sentence, checkpoint, value, declaring(native, locations={value: location}), block, writing)


def root_read_at(sentence: str, checkpoint: str, value: str, location: str) -> Mutation:
    """A value of the root declared at a wrong place."""

    def wrong(*arguments: Any) -> dict[str, str]:
        return {**root_locations(*arguments), value: location}

    return Mutation(sentence, checkpoint, value, patching(encyclopedia.model.transformer, "root_locations", wrong),
                    None)


def with_axes(sentence: str, checkpoint: str, value: str, dims: str, block: int | None = 0, **more: Any) -> Mutation:
    """A value said to have other axes."""

    def mutated(entry: Value) -> Value:
        if entry.name != value or entry.layout is None:
            return entry
        return replace(entry, layout=replace(entry.layout, dims=tuple(dims.split()), **more))

    def change(declared: Family, patch: pytest.MonkeyPatch) -> Family:
        patch.setattr(encyclopedia.vocabulary, "VOCABULARY", tuple(map(mutated, encyclopedia.vocabulary.VOCABULARY)))
        for host_class in (StandardizedTransformer, Block, Attention, Mlp, Mixture):
            descriptor = vars(host_class).get(value)
            if descriptor is not None:
                patch.setattr(descriptor, "value", mutated(descriptor.value))
        return declared

    return Mutation(sentence, checkpoint, value, change, block)


def withdrawn(sentence: str, checkpoint: str, native: str, value: str, block: int = 0) -> Mutation:
    """A value said not to be served that is."""
    return Mutation(sentence, checkpoint, value, declaring(native, withdrawn={value: "it is said not to exist"}), block)


def identity(sentence: str, checkpoint: str, text: str) -> Mutation:
    """A wrong equation for ``layer_output``."""
    return Mutation(sentence, checkpoint, "layer_output", saying(identity=f"{text} == layer_output"))


def attention_misread(checkpoint: str, native: str, whose: str) -> list[Mutation]:
    """Every place of the attention interior one operation, argument or element off."""

    def at(sentence: str, value: str, location: str, writing: bool = False) -> Mutation:
        return read_at(f"{whose}: {sentence}", checkpoint, native, value, location, writing=writing)

    return [
        at("queries are the second argument after the module", "attention_queries", f"{CALL}.inputs[2]"),
        at("keys are the first argument after the module", "attention_keys", f"{CALL}.inputs[1]"),
        at("keys are the third argument after the module", "attention_keys", f"{CALL}.inputs[3]"),
        at("values are the second argument after the module", "attention_values", f"{CALL}.inputs[2]"),
        at("values are the mask", "attention_values", f"{CALL}.inputs[4]"),
        at("keys are read after they are repeated", "attention_keys", f"{EAGER}.repeat_kv_0.output"),
        at("scores are what the softmax returns", "attention_scores", f"{EAGER}.nn_functional_softmax_0.output"),
        at("scores are read before the mask", "attention_scores", f"{EAGER}.attn_weights_0.output"),
        at("scores are read before the scaling", "attention_scores", f"{EAGER}.torch_matmul_0.output"),
        at("the pattern is what the softmax receives", "attention_probabilities",
           f"{EAGER}.nn_functional_softmax_0.input"),
        at("the pattern is what the softmax returns, before the cast and the dropout", "attention_probabilities",
           f"{EAGER}.nn_functional_softmax_0.output"),
        at("the pattern is what the dropout receives", "attention_probabilities",
           f"{EAGER}.nn_functional_dropout_0.input"),
        at("the pattern is the copy that the attention returns", "attention_probabilities", f"{CALL}.output[1]",
           writing=True),
        at("head outputs are the second of the pair", "attention_head_outputs", f"{CALL}.output[1]"),
        at("head outputs are read before heads and positions change places", "attention_head_outputs",
           f"{EAGER}.attn_output_0.output"),
        at("the premix is what the output projection returns", "attention_premix", "o_proj.output"),
        at("the attention's output is the second of its pair", "attention_output", "output[1]"),
        at("the attention's output is the normed stream it reads", "attention_output", "../input_layernorm.output"),
        at("the attention's output is the norm behind it", "attention_output", "../post_attention_layernorm.output"),
    ]


def stream_misread(checkpoint: str, native: str, whose: str) -> list[Mutation]:
    """The block's own values at a norm's other end, or at the other norm."""

    def at(sentence: str, value: str, location: str) -> Mutation:
        return read_at(f"{whose}: {sentence}", checkpoint, native, value, location)

    return [
        at("the block's input is the normed one", "layer_input", "input_layernorm.output"),
        at("the attention's normed input is the norm's input", "attention_norm_output", "input_layernorm.input"),
        at("the attention's norm is the MLP's", "attention_norm_output", "post_attention_layernorm.output"),
        at("the MLP's norm is the attention's", "mlp_norm_output", "input_layernorm.output"),
        at("the middle of the block is its input", "layer_mid", "input_layernorm.input"),
        at("the middle of the block is the attention's output", "layer_mid", "self_attn.output[0]"),
        at("the MLP reads the stream before its norm", "mlp_input", "post_attention_layernorm.input"),
        at("the block's output is its input", "layer_output", "input"),
    ]


def mlp_misread(checkpoint: str, native: str, whose: str) -> list[Mutation]:
    """A gated MLP's interior, one step off."""

    def at(sentence: str, value: str, location: str) -> Mutation:
        return read_at(f"{whose}: {sentence}", checkpoint, native, value, location)

    return [
        at("neurons are what up_proj returns", "mlp_neurons", "up_proj.output"),
        at("neurons are the activation alone", "mlp_neurons", "gate_proj.output"),
        at("the activation is what it is computed from", "mlp_activation", "gate_proj.output"),
        at("the activation is already multiplied", "mlp_activation", "down_proj.input"),
        at("the MLP's output is the norm in front of it", "mlp_output", "../post_attention_layernorm.output"),
    ]


def mixture_misread(checkpoint: str, whose: str) -> list[Mutation]:
    """A mixture's interior, one step off."""

    def at(sentence: str, value: str, location: str, writing: bool = False) -> Mutation:
        return read_at(f"{whose}: {sentence}", checkpoint, "LagunaSparseMoeBlock", value, location, 1, writing)

    experts = "experts.source.experts_forward_1.source"
    return [
        at("the routed output is read before its scaling", "routed_output", "source.hidden_states_1.output"),
        at("the routed output is what the experts module returns", "routed_output", "experts.output"),
        at("the routed output has the shared expert in it", "routed_output", "source.hidden_states_3.output"),
        at("the routed output is the shared expert's", "routed_output", "shared_experts.output"),
        at("the shared expert's output is the routed experts'", "shared_expert_output", "experts.output"),
        at("expert weights are the experts' second argument", "expert_weights", "experts.inputs[1]"),
        at("expert indices are the experts' third argument", "expert_indices", "experts.inputs[2]"),
        at("expert weights are read before they are normalised", "expert_weights",
           "router.source.routing_weights_0.output"),
        at("router logits are read after the sigmoid", "router_logits", "router.source.torch_sigmoid_0.output"),
        at("router logits carry the selection bias", "router_logits", "router.source.scores_for_selection_0.output"),
        at("router logits are the copy that the router returns", "router_logits", "router.output[0]", writing=True),
        at("expert outputs are read before their weights", "expert_outputs", f"{experts}.proj_out_6.output"),
        at("expert outputs are in the order of the experts", "expert_outputs", f"{experts}.weighted_out_0.output"),
        at("the mixture's output is the shared expert's", "mlp_output", "shared_experts.output"),
        at("an argument that the experts do not take", "expert_weights", "experts.inputs[7]"),
    ]


LOCATIONS = [
    *attention_misread(LLAMA, "LlamaAttention", "Llama"),
    *attention_misread(DOGE, "DogeAttention", "Doge"),
    *attention_misread(XS, "LagunaAttention", "Laguna"),
    read_at("keys are the queries, where there are as many of both", LLAMA_MHA, "LlamaAttention", "attention_keys",
            f"{CALL}.inputs[1]"),
    read_at("queries are the keys, where there are as many of both", LLAMA_MHA, "LlamaAttention", "attention_queries",
            f"{CALL}.inputs[2]"),
    read_at("values are the keys under one key head", DOGE_MQA, "DogeAttention", "attention_values",
            f"{CALL}.inputs[2]"),
    read_at("queries are read before the rotary", XS, "LagunaAttention", "attention_queries",
            "source.query_states_1.output"),
    read_at("keys are read before their norm", DOGE, "DogeAttention", "attention_keys", "source.view_1.output"),
    read_at("the premix is read before the gate", XS, "LagunaAttention", "attention_premix", f"{CALL}.output[0]"),
    read_at("head outputs are read after the gate", M1, "LagunaAttention", "attention_head_outputs", "o_proj.input"),
    read_at("an operation that there is not", LLAMA, "LlamaAttention", "attention_scores",
            f"{EAGER}.nn_functional_softmax_1.input"),
    *stream_misread(LLAMA, "LlamaDecoderLayer", "Llama"),
    *stream_misread(DOGE, "DogeDecoderLayer", "Doge"),
    *mlp_misread(LLAMA, "LlamaMLP", "Llama"),
    *mlp_misread(DOGE, "DogeMLP", "Doge"),
    read_at("the activation of Doge's mixture is the one on its experts", DOGE_MOE, "DogeCDMoE", "mlp_activation",
            "source.self_act_fn_0.output"),
    read_at("the output of Doge's mixture is its router's logits", DOGE_MOE, "DogeCDMoE", "mlp_output", "output[1]"),
    read_at("the output of Doge's mixture is its dense part", DOGE_MOE, "DogeCDMoE", "mlp_output", "down_proj.output"),
    read_at("the neurons of Doge's mixture are what up_proj returns", DOGE_MOE, "DogeCDMoE", "mlp_neurons",
            "up_proj.output"),
    *mixture_misread(XS, "Laguna XS"),
    *mixture_misread(M1, "Laguna M, whose scaling is one"),
    root_read_at("the final norm's output is its input", LLAMA, "final_norm_output", "norm.input"),
    root_read_at("the embeddings are the token ids", DOGE, "token_embeddings", "embed_tokens.input"),
    root_read_at("the embeddings are the normed stream", DOGE, "token_embeddings", "norm.output"),
    root_read_at("the head's output is its input", XS, "lm_head_output", "lm_head.input"),
]

LAYOUTS = [
    with_axes("queries have the sequence before the heads", XS, "attention_queries",
              "batch seq num_heads qk_head_dim"),
    with_axes("queries have a key head each", LLAMA, "attention_queries", "batch num_kv_heads seq qk_head_dim"),
    with_axes("keys are one per query head", DOGE, "attention_keys", "batch num_heads seq qk_head_dim"),
    with_axes("values have the sequence before the heads", DOGE_MQA, "attention_values",
              "batch seq num_kv_heads head_dim"),
    with_axes("values have batch and key heads the other way", LLAMA, "attention_values",
              "num_kv_heads batch seq head_dim"),
    with_axes("scores have the key before the query", LLAMA, "attention_scores", "batch num_heads key query"),
    with_axes("the pattern has the key before the query", DOGE, "attention_probabilities", "batch num_heads key query"),
    with_axes("scores have the query before the heads", XS, "attention_scores", "batch query num_heads key"),
    with_axes("head outputs have heads first", XS, "attention_head_outputs", "batch num_heads seq head_dim"),
    with_axes("the premix has the width before the heads", DOGE, "attention_premix", "batch seq head_dim num_heads"),
    with_axes("neurons are as wide as the stream", LLAMA, "mlp_neurons", "batch seq hidden_size"),
    with_axes("router logits are one per slot", XS, "router_logits", "batch seq top_k", 1),
    with_axes("expert outputs have the slots before the sequence", XS, "expert_outputs",
              "batch top_k seq hidden_size", 1),
    with_axes("expert indices are fractions", M1, "expert_indices", "batch seq top_k", 1, dtype="float"),
    with_axes("the stream has the sequence first", LLAMA, "layer_output", "seq batch hidden_size"),
    with_axes("logits are as wide as the stream", DOGE, "logits", "batch seq hidden_size", None),
    Mutation("there are as many key heads as query heads", LLAMA, "attention_keys",
             sized(num_kv_heads=lambda config, found: found["num_heads"])),
    Mutation("the config's head count holds on every block", XS, "attention_queries",
             sized(num_heads=lambda config, found: config.num_attention_heads), 1),
    Mutation("the neurons are as wide as what the down projection returns", DOGE, "mlp_activation", deriving(
        encyclopedia.structure.sizes, "_written_from",
        lambda path: lambda module, config: module.get_submodule(path).out_features)),
]


def swapped_heads(host: Attention, value: Any, tensor: Any) -> Any:
    """Heads and their width the other way round, in the right shape."""
    if tensor.ndim == 3 and value.name == "attention_premix":
        return tensor.unflatten(-1, (host.head_dim, -1)).transpose(-1, -2)
    return tensor


def swapped_tokens(host: Mixture, value: Any, tensor: Any) -> Any:
    """Flat tokens taken for sequence by batch, in the right shape."""
    layout, tokens = value.layout, host.root.tokens
    if layout is None or tokens is None or tensor.ndim != len(layout.dims) - 1:
        return tensor
    return tensor.unflatten(0, (tokens[1], tokens[0])).transpose(0, 1)


def lost(host: StandardHost, value: Value, tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A write that never arrives."""
    return like


def first_prompt_only(
    host: StandardHost, value: Value, tensor: torch.Tensor, like: torch.Tensor
) -> torch.Tensor:
    """A write that arrives at the first token's row alone."""
    return torch.cat([tensor.reshape(like.shape)[:1], like[1:]])


FOLDING = [
    Mutation("the premix is unpacked with heads and width the other way", LLAMA, "attention_premix",
             patching(Attention, "unfold", swapped_heads)),
    Mutation("the premix of a gated attention is unpacked the other way", XS, "attention_premix",
             patching(Attention, "unfold", swapped_heads)),
    Mutation("flat tokens are unpacked as sequence by batch", XS, "shared_expert_output",
             patching(Mixture, "unfold", swapped_tokens), 1),
    Mutation("a write to a mixture's value is lost", M1, "routed_output", patching(Mixture, "fold", lost), 1,
             writing=True),
    Mutation("a write is lost everywhere", DOGE, "logits", patching(StandardHost, "fold", lost), None,
             writing=True),
    Mutation("a write reaches the first prompt only", LLAMA, "logits",
             patching(StandardHost, "fold", first_prompt_only), None, writing=True),
]

def ungated(run: Any, config: Any) -> Sum:
    """The sum with nothing in front of any term."""
    total = find_sum(run, config)
    assert total is not None
    return replace(total, stream="", terms=tuple(replace(term, factor=None) for term in total.terms))


def gated_once(run: Any, config: Any) -> Sum:
    """The sum with one gate on the stream, and none on a term."""
    total = ungated(run, config)
    return replace(total, stream="input_residual")


_ATTENTION, _MLP = "self_attn.attention_output", "mlp.mlp_output"

IDENTITIES = [
    identity("Doge's stream has no gates", DOGE, f"layers[i].input + {_ATTENTION} + {_MLP}"),
    identity("Doge's stream has its first gate only", DOGE,
             f"input_residual * layers[i].input + {_ATTENTION} + {_MLP}"),
    identity("Doge's stream has its second gate only", DOGE,
             f"post_attention_residual * (layers[i].input + {_ATTENTION}) + {_MLP}"),
    identity("Doge's gates have changed places", DOGE,
             f"input_residual * (post_attention_residual * layers[i].input + {_ATTENTION}) + {_MLP}"),
    identity("Doge's first gate is on the contribution too", DOGE,
             f"post_attention_residual * input_residual * (layers[i].input + {_ATTENTION}) + {_MLP}"),
    identity("Doge's second gate is on the MLP's term too", DOGE_MOE,
             f"post_attention_residual * (input_residual * layers[i].input + {_ATTENTION} + {_MLP})"),
    identity("the mixture of Doge adds nothing", DOGE_MOE,
             f"post_attention_residual * (input_residual * layers[i].input + {_ATTENTION})"),
    identity("Llama's block adds no attention", LLAMA, f"layers[i].input + {_MLP}"),
    identity("Llama's block adds no MLP", LLAMA, f"layers[i].input + {_ATTENTION}"),
    identity("Llama's block passes its input on", LLAMA, "layers[i].input"),
    identity("Laguna's block adds its attention twice", XS, f"layers[i].input + 2 * {_ATTENTION} + {_MLP}"),
    identity("a norm's output is a contribution", LLAMA,
             f"layers[i].input + post_attention_layernorm.output + {_MLP}"),
    identity("a gate that the block has not got", XS, f"input_residual * layers[i].input + {_ATTENTION} + {_MLP}"),
    identity("the next block's input is this one's", LLAMA, f"layers[i + 1].input + {_ATTENTION} + {_MLP}"),
    Mutation("an equation for the middle of the block", LLAMA, "layer_output",
             saying(identity=f"layers[i].input + {_ATTENTION} == layer_mid")),
    Mutation("the gates are declared on each other's sublayer", DOGE, "layer_mid",
             saying(stream_gates={"self_attn": "post_attention_residual", "mlp": "input_residual"})),
    Mutation("one gate is not declared", DOGE, "layer_mid", saying(stream_gates={"self_attn": "input_residual"})),
    Mutation("no gate is declared, and none derived", DOGE_MOE, "layer_mid",
             both(saying(stream_gates={}), patching(Sum, "gates", property(lambda found: None)))),
    Mutation("the gates are derived in each other's place", DOGE, "layer_mid", both(
        saying(stream_gates={}),
        patching(Sum, "gates", property(lambda found: ("post_attention_residual", "input_residual"))))),
    Mutation("the derived sum has lost its gates", DOGE, "layer_output", both(
        saying(identity=None), deriving(encyclopedia.structure.derive, "find_sum", ungated))),
    Mutation("the derived sum has lost its second gate", DOGE_MOE, "layer_output", both(
        saying(identity=None), deriving(encyclopedia.structure.derive, "find_sum", gated_once))),
    Mutation("a gate is declared that the block has not got", LLAMA, "layer_mid",
             saying(stream_gates={"mlp": "input_residual"})),
]


def condition(text: str | None, *names: str) -> Callable[[Any, Any, Any], str | None]:
    """A derivation of conditions that says ``text`` of the places in ``names``."""

    def wrong(location: Any, module: Any, config: Any) -> str | None:
        if str(location) in names and config._attn_implementation != "eager":
            return text
        return load_condition(location, module, config)

    return wrong


load_condition = encyclopedia.model.availability.load_condition


def conditions(sentence: str, checkpoint: str, value: str, owner: Any, name: str, replacement: Any) -> Mutation:
    """What the default load lacks, or why, is wrong."""
    return Mutation(sentence, checkpoint, value, patching(owner, name, replacement), default=True)


AVAILABILITY = [
    withdrawn("Llama has no scores", LLAMA, "LlamaAttention", "attention_scores"),
    withdrawn("Doge has no values to mix", DOGE, "DogeAttention", "attention_values"),
    withdrawn("Doge's mixture has no neurons", DOGE_MOE, "DogeCDMoE", "mlp_neurons"),
    withdrawn("a block has no middle", LLAMA, "LlamaDecoderLayer", "layer_mid"),
    withdrawn("a mixture has no routed output", XS, "LagunaSparseMoeBlock", "routed_output", 1),
    withdrawn("a mixture has no expert outputs", M1, "LagunaSparseMoeBlock", "expert_outputs", 1),
    conditions("the default load has the scores", LLAMA, "attention_scores", encyclopedia.model.envoys,
               "load_condition", lambda location, module, config: None),
    conditions("the default load of Laguna has the scores", XS, "attention_scores", encyclopedia.model.envoys,
               "load_condition", lambda location, module, config: None),
    conditions("the default load has no neurons", DOGE, "mlp_neurons", encyclopedia.model.envoys, "load_condition",
               condition('this load runs sdpa: load with attn_implementation="eager"', "down_proj.input")),
    conditions("the default load has no attention output", LLAMA, "attention_output", encyclopedia.model.envoys,
               "load_condition",
               condition('this load runs sdpa: load with attn_implementation="eager"', "output[0]")),
    conditions("the scores need another load than they do", LLAMA, "attention_queries",
               encyclopedia.model.availability, "NEEDS_EAGER",
               'this load runs {running}: load with attn_implementation="flash_attention_2"'),
    conditions("the scores need the load that lacks them", DOGE, "attention_queries",
               encyclopedia.model.availability, "NEEDS_EAGER",
               'this load runs {running}: load with attn_implementation="sdpa"'),
    conditions("the default load runs another attention than it does", LLAMA, "attention_queries",
               encyclopedia.model.availability, "NEEDS_EAGER",
               'this load runs flex_attention: load with attn_implementation="eager"'),
    conditions("the scores are missing for no reason that helps", DOGE, "attention_queries",
               encyclopedia.model.availability, "NEEDS_EAGER", "this load runs {running}"),
    conditions("support tells another reason than the refusal", LLAMA, "attention_queries", StandardHost, "support",
               lambda host: {name: "it has gone out" if (reason := host.unavailable(name)) else reason
                             for name in host.values()}),
]

SCAN, DELTA = "source.mamba2_chunk_scan_0", "source.torch_chunk_gated_delta_rule_0"

RECURRENT = [
    read_at("Mamba's queries are its keys", MAMBA2, "Mamba2Mixer", "attention_queries", f"{SCAN}.inputs[3]"),
    read_at("Mamba's keys are its queries", MAMBA2, "Mamba2Mixer", "attention_keys", f"{SCAN}.inputs[4]"),
    read_at("Mamba's values are its step sizes", MAMBA2, "Mamba2Mixer", "attention_values", f"{SCAN}.inputs[1]"),
    read_at("Mamba's output is what enters its last projection", MAMBA2, "Mamba2Mixer", "attention_output",
            "out_proj.input"),
    read_at("the delta rule's keys are its queries", QWEN3_NEXT, "Qwen3NextGatedDeltaNet", "attention_keys",
            f"{DELTA}.inputs[0]"),
    read_at("the delta rule's queries are its keys", QWEN3_NEXT, "Qwen3NextGatedDeltaNet", "attention_queries",
            f"{DELTA}.inputs[1]"),
    read_at("the delta rule's decays are its betas", QWEN3_NEXT, "Qwen3NextGatedDeltaNet", "decays",
            f"{DELTA}.inputs[beta]"),
    read_at("the delta rule's betas are its decays", QWEN3_NEXT, "Qwen3NextGatedDeltaNet", "betas",
            f"{DELTA}.inputs[g]"),
    read_at("the delta rule's state is its outputs", QWEN3_NEXT, "Qwen3NextGatedDeltaNet", "attention_head_outputs",
            f"{DELTA}.output[1]"),
    identity("a block with one mixer adds an MLP", MAMBA2, f"layers[i].input + linear_attn.attention_output + {_MLP}"),
    identity("a recurrent block passes its input on", MAMBA2, "layers[i].input"),
]

DERIVED = [
    Mutation("the attention's norm is the one in front of the MLP", GEMMA2, "attention_norm_output",
             derived_with("self_attn", norm="pre_feedforward_layernorm")),
    Mutation("the attention's norm is the one behind it", OLMO2, "attention_norm_output",
             derived_with("self_attn", norm="post_attention_layernorm")),
    Mutation("the MLP's norm is the attention's, where norms stand on both sides", GEMMA2, "mlp_norm_output",
             derived_with("mlp", norm="input_layernorm")),
    Mutation("the norm of two sublayers side by side is a layer of the MLP", COHERE, "mlp_norm_output",
             derived_with("mlp", norm="mlp.act_fn")),
    Mutation("what attention adds is read in front of its second norm", GEMMA2, "layer_mid",
             derived_with("self_attn", contribution="output[0]", post_norm=None)),
    Mutation("what the MLP adds is read in front of its second norm", GEMMA2, "layer_mid",
             derived_with("mlp", contribution="output", post_norm=None)),
    Mutation("what attention adds is read in front of its only norm", OLMO2, "layer_mid",
             derived_with("self_attn", contribution="output[0]", post_norm=None)),
    Mutation("what the MLP adds is read in front of its only norm", OLMO2, "layer_mid",
             derived_with("mlp", contribution="output", post_norm=None)),
    Mutation("what the MLP adds is the norm in front of it", COHERE, "mlp_output",
             derived_with("mlp", contribution="../input_layernorm.output")),
    Mutation("what attention adds is what it returns, stream included", BLOOM, "layer_mid",
             derived_with("self_attn", contribution="output[0]", projection=None)),
    Mutation("the premix enters another projection", GEMMA2, "attention_premix",
             derived_with("self_attn", projection="q_proj")),
    Mutation("the activation is the one behind the up projection", GEMMA2, "mlp_activation",
             derived_with("mlp", activation="up_proj.output")),
    Mutation("sublayers side by side have a stream between them", COHERE, "layer_mid",
             deriving(encyclopedia.structure.derive, "_mid", lambda run, sublayers: "mlp.input")),
    Mutation("the stream between two sublayers is the block's input", OLMO2, "layer_mid",
             deriving(encyclopedia.structure.derive, "_mid", lambda run, sublayers: "self_attn.input")),
    Mutation("a block with several streams has one", DEEPSEEK_V4, "layer_input",
             deriving(encyclopedia.structure.derive, "_streams", lambda run: None)),
    Mutation("a block has one stream more than it carries", DEEPSEEK_V4, "layer_input", deriving(
        encyclopedia.structure.derive, "_streams", lambda run: run.call.leaving.shape[2] + 1)),
    Mutation("a scaled sum is a plain one", GRANITE, "layer_mid", summed_with("self_attn", None)),
    Mutation("a scaled sum has another of the config's factors", GRANITE, "layer_mid",
             summed_with("self_attn", "config.attention_multiplier")),
    Mutation("the second term of a scaled sum has no factor", GRANITE, "layer_mid", summed_with("mlp", None)),
    Mutation("a plain sum is a scaled one", OLMO2, "layer_mid", summed_with("mlp", "config.initializer_range")),
    Mutation("only one of two sublayers side by side is added", COHERE, "layer_output", deriving(
        encyclopedia.structure.derive, "find_sum", lambda run, config: replace(
            total := find_sum(run, config), terms=total.terms[:1]))),
    Mutation("there is an expert for every slot", QWEN2_MOE, "router_logits", spelled("num_experts", "top_k")),
    Mutation("a token is routed to as many experts as there are", QWEN2_MOE, "expert_weights",
             sized(top_k=lambda config, found: found["num_experts"])),
    Mutation("a head is as wide as the stream, where nothing shows its width", BLOOM, "attention_values",
             spelled("head_dim", "hidden_size")),
    Mutation("neurons are counted behind the projection, where it mixes them", BLOOM, "mlp_activation", deriving(
        encyclopedia.structure.sizes, "_written_from",
        lambda path: lambda module, config: module.get_submodule(path).out_features)),
    Mutation("a window's attention has as many key heads as query heads", GEMMA2, "attention_keys",
             sized(num_kv_heads=lambda config, found: found["num_heads"])),
    Mutation("the shared expert's gate is left out", QWEN2_MOE, "routed_output",
             patching(encyclopedia.checks.meaning.mixture, "SHARED_GATES", ())),
    read_at("the shared expert's output is read behind its gate", QWEN2_MOE, "Qwen2MoeSparseMoeBlock",
            "shared_expert_output", "source.shared_expert_output_1.output"),
    read_at("the routed output has the gated shared expert in it", QWEN2_MOE, "Qwen2MoeSparseMoeBlock",
            "routed_output", "source.expert_output_1.output"),
    identity("the norm behind a sublayer counts for nothing", GEMMA2,
             "layers[i].input + self_attn.attention_output + 2 * mlp.mlp_output"),
    identity("a scale on one of two terms", GRANITE,
             f"layers[i].input + layers[i].residual_multiplier * {_ATTENTION} + {_MLP}"),
    identity("a scale on the stream too", GRANITE,
             f"layers[i].residual_multiplier * (layers[i].input + {_ATTENTION} + {_MLP})"),
    identity("sublayers side by side add the MLP twice", COHERE, f"layers[i].input + {_ATTENTION} + 2 * {_MLP}"),
]

OWN = [
    read_at("scores are what the softmax returns, in arithmetic of its own", BLOOM, "BloomAttention",
            "attention_scores", "source.F_softmax_0.output"),
    read_at("the pattern is what the softmax is given, in arithmetic of its own", BLOOM, "BloomAttention",
            "attention_probabilities", "source.F_softmax_0.input"),
    read_at("the pattern is read in front of the dropout, in arithmetic of its own", BLOOM, "BloomAttention",
            "attention_probabilities", "source.F_softmax_0.output"),
    read_at("scores are read in front of the mask, in arithmetic of its own", BLOOM, "BloomAttention",
            "attention_scores", "source.attention_scores_view_0.output"),
    read_at("keys are the values, in arithmetic of its own", BLOOM, "BloomAttention", "attention_keys",
            "source.layer_past_update_0.output[1]"),
    read_at("head outputs are read in front of their transposition, in arithmetic of its own", BLOOM,
            "BloomAttention", "attention_head_outputs", "source.torch_bmm_0.output"),
]

MUTATIONS = [*LOCATIONS, *LAYOUTS, *FOLDING, *IDENTITIES, *AVAILABILITY, *RECURRENT, *DERIVED, *OWN]
