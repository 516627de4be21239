"""Where each standard value is read, derived from the structure."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping

from torch import nn

from encyclopedia.location import Location
from encyclopedia.structure.operations import operations_of
from encyclopedia.structure.parts import CONTRIBUTIONS, Kind, Mixture, Sublayer
from encyclopedia.structure.stack import Stack


def root_locations(stack: Stack, names: Mapping[str, str]) -> dict[str, str]:
    """The root's values.

    Args:
        stack: where the standard parts are.
        names: by part, the name it is reached by.
    """
    found = {
        "logits": "output.logits",
        "token_embeddings": f"{names['embed_tokens']}.output",
        "lm_head_output": f"{names['lm_head']}.output",
        "next_token_probs": "derived",
        "input_ids": "input",
        "attention_mask": "input",
        "input_size": "derived",
    }
    if stack.norm is not None:
        found["final_norm_output"] = f"{names['norm']}.output"
    return found


def block_locations(kind: Kind) -> dict[str, str]:
    """A block's values, from its sublayers and the norms around them."""
    found = {"layer_input": "input", "layer_output": "output[0]" if kind.returns_tuple else "output"}
    mixer = kind.sublayer("self_attn") or kind.sublayer("linear_attn")
    mlp = kind.sublayer("mlp")
    if mixer is not None and mixer.norm is not None:
        found["attention_norm_output"] = f"{mixer.norm}.output"
    if mlp is not None:
        found["mlp_input"] = f"{mlp.first}.input"
        if mlp.norm is not None:
            found["mlp_norm_output"] = f"{mlp.norm}.output"
    if kind.mid is not None:
        found["layer_mid"] = kind.mid
    return found


def sublayer_locations(sublayer: Sublayer) -> dict[str, str]:
    """The values of a sublayer's host."""
    if sublayer.host == "self_attn":
        return attention_locations(sublayer)
    if sublayer.mixture is not None:
        return mixture_locations(sublayer, sublayer.mixture)
    if sublayer.host == "mlp":
        return mlp_locations(sublayer)
    return {CONTRIBUTIONS[sublayer.host]: sublayer.contribution}


def entering(sublayer: Sublayer) -> str | None:
    """Where the writing layer's input is read from the sublayer's host."""
    if sublayer.projection is None:
        return None
    return f"{sublayer.projection}.input" if sublayer.projection else "input"


def attention_locations(sublayer: Sublayer) -> dict[str, str]:
    """A softmax attention's values, the interior where its forward calls transformers' attention interface."""
    found = {"attention_output": sublayer.contribution}
    premix = entering(sublayer)
    if premix is not None:
        found["attention_premix"] = premix
    holder = sublayer.module.get_submodule(sublayer.interior)
    calls = [name for name in operations_of(type(holder).forward) if name.startswith("attention_interface_")]
    interface = next((name for name in reversed(calls) if name.rpartition("_")[2].isdigit()), None)
    eager = eager_attention(holder)
    if interface is None or eager is None:
        return found
    place = f"{sublayer.interior}.source.{interface}" if sublayer.interior else f"source.{interface}"
    found |= {
        "attention_queries": f"{place}.inputs[1]",
        "attention_keys": f"{place}.inputs[2]",
        "attention_values": f"{place}.inputs[3]",
        "attention_head_outputs": f"{place}.output[0]",
    }
    return found | {name: f"{place}.source.{inside}" for name, inside in pattern_locations(eager).items()}


def pattern_locations(eager: Callable) -> dict[str, str]:
    """Scores and probabilities inside an eager attention function.

    Scores are what enters the softmax. Where a column of sinks is put beside them first, they are the weights as last
    bound before that.
    """
    inside = operations_of(eager)
    softmax = next((name for name in inside if "softmax" in name), None)
    dropout = next((name for name in inside if "dropout" in name), None)
    found = {}
    if softmax is not None:
        before = inside[: inside.index(softmax)]
        joined = next((place for place, name in enumerate(before) if name.startswith("torch_cat_")), None)
        bound = [name for name in before[:joined] if name.startswith("attn_weights_")] if joined is not None else []
        found["attention_scores"] = f"{bound[-1]}.output" if bound else f"{softmax}.input"
    if dropout is not None:
        found["attention_probabilities"] = f"{dropout}.output"
    return found


def eager_attention(attention: nn.Module) -> Callable | None:
    """The eager attention function that this module's file passes to the interface."""
    return vars(sys.modules[type(attention).__module__]).get("eager_attention_forward")


def mlp_locations(sublayer: Sublayer) -> dict[str, str]:
    """A dense MLP's values."""
    found = {"mlp_output": sublayer.contribution}
    if sublayer.activation is not None:
        found["mlp_activation"] = sublayer.activation
    neurons = entering(sublayer)
    if neurons is not None:
        found["mlp_neurons"] = neurons
    return found


def mixture_locations(sublayer: Sublayer, parts: Mixture) -> dict[str, str]:
    """A mixture's values; the router is reached by its standard name."""
    experts = sublayer.module.get_submodule(parts.experts)
    found = {"mlp_output": sublayer.contribution, "routed_output": f"{parts.experts}.output"}
    if parts.shared is not None:
        found["shared_expert_output"] = f"{parts.shared}.output"
    arguments = [name for name in inspect.signature(_own_forward(experts)).parameters if name != "self"]
    for position, argument in enumerate(arguments):
        if "index" in argument or "indices" in argument:
            found["expert_indices"] = f"{parts.experts}.inputs[{position}]"
        elif "weight" in argument or "score" in argument:
            found["expert_weights"] = f"{parts.experts}.inputs[{position}]"
    router = sublayer.module.get_submodule(parts.router)
    projection = next((name for name in operations_of(type(router).forward) if "linear" in name), None)
    if projection is not None:
        found["router_logits"] = f"router.source.{projection}.output"
    elif type(router) is nn.Linear:
        found["router_logits"] = "router.output"
    dispatch = [name for name in operations_of(type(experts).forward) if name.startswith("experts_forward_")]
    if dispatch:
        found["expert_outputs"] = f"{parts.experts}.source.{dispatch[-1]}.source.weighted_out_view_0.output"
    return found


def _own_forward(experts: nn.Module) -> Callable:
    return inspect.unwrap(type(experts).forward)


def parse_all(places: dict[str, str]) -> dict[str, Location]:
    """``places`` with every location parsed."""
    return {name: Location.parse(text) for name, text in places.items()}
