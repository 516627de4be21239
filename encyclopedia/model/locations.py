"""Where each standard value is read, derived from the native modules."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable

from torch import nn

from encyclopedia.location import Location
from encyclopedia.model.operations import operations_of, returns_tuple
from encyclopedia.model.structure import DOWN_PROJECTIONS, OUTPUT_PROJECTIONS, Mixture, Sublayer, child_named


def root_locations() -> dict[str, str]:
    """The root's values; the children are reached by their standard names."""
    return {
        "logits": "output.logits",
        "token_embeddings": "embed_tokens.output",
        "final_norm_output": "norm.output",
        "lm_head_output": "lm_head.output",
        "next_token_probs": "derived",
        "input_ids": "input",
        "attention_mask": "input",
        "input_size": "derived",
    }


def own_output(module: nn.Module) -> str:
    """The location of a module's own output tensor."""
    return "output[0]" if returns_tuple(type(module).forward) else "output"


def block_locations(block: nn.Module, sublayers: tuple[Sublayer, ...]) -> dict[str, str]:
    """A block's values, from its sublayers and the norms around them."""
    found = {"layer_input": "input", "layer_output": own_output(block)}
    attention = next((sublayer for sublayer in sublayers if sublayer.host == "self_attn"), None)
    mlp = next((sublayer for sublayer in sublayers if sublayer.host == "mlp"), None)
    if attention is not None and attention.norm is not None:
        found["attention_norm_output"] = f"{attention.norm}.output"
    if mlp is not None:
        found["mlp_input"] = f"{mlp.name}.input"
        if mlp.norm is not None:
            found["mlp_norm_output"] = f"{mlp.norm}.output"
        if sublayers.index(mlp) > 0:
            found["layer_mid"] = f"{mlp.norm}.input" if mlp.norm is not None else f"{mlp.name}.input"
    return found


def attention_locations(attention: nn.Module) -> dict[str, str]:
    """A softmax attention's values, the interior where its forward calls transformers' attention interface."""
    found = {"attention_output": own_output(attention)}
    projection = child_named(attention, OUTPUT_PROJECTIONS)
    if projection is not None:
        found["attention_premix"] = f"{projection}.input"
    calls = [name for name in operations_of(type(attention).forward) if name.startswith("attention_interface_")]
    interface = next((name for name in reversed(calls) if name.rpartition("_")[2].isdigit()), None)
    if interface is None:
        return found
    place = f"source.{interface}"
    found |= {
        "attention_queries": f"{place}.inputs[1]",
        "attention_keys": f"{place}.inputs[2]",
        "attention_values": f"{place}.inputs[3]",
        "attention_head_outputs": f"{place}.output[0]",
    }
    inside = operations_of(eager_attention(attention))
    softmax = next((name for name in inside if "softmax" in name), None)
    dropout = next((name for name in inside if "dropout" in name), None)
    if softmax is not None:
        found["attention_scores"] = f"{place}.source.{softmax}.input"
    if dropout is not None:
        found["attention_probabilities"] = f"{place}.source.{dropout}.output"
    return found


def eager_attention(attention: nn.Module) -> Callable:
    """The eager attention function that this module's file passes to the interface."""
    return vars(sys.modules[type(attention).__module__])["eager_attention_forward"]


def mlp_locations(mlp: nn.Module) -> dict[str, str]:
    """A dense MLP's values."""
    found = {"mlp_output": own_output(mlp)}
    activation = child_named(mlp, ("act_fn", "activation_fn", "act"))
    down = child_named(mlp, DOWN_PROJECTIONS)
    if activation is not None:
        found["mlp_activation"] = f"{activation}.output"
    if down is not None:
        found["mlp_neurons"] = f"{down}.input"
    return found


def mixture_locations(module: nn.Module, parts: Mixture) -> dict[str, str]:
    """A mixture's values; the router is reached by its standard name."""
    experts = module.get_submodule(parts.experts)
    found = {"mlp_output": own_output(module), "routed_output": f"{parts.experts}.output"}
    if parts.shared is not None:
        found["shared_expert_output"] = f"{parts.shared}.output"
    arguments = [name for name in inspect.signature(_own_forward(experts)).parameters if name != "self"]
    for position, argument in enumerate(arguments):
        if "index" in argument:
            found["expert_indices"] = f"{parts.experts}.inputs[{position}]"
        elif "weight" in argument:
            found["expert_weights"] = f"{parts.experts}.inputs[{position}]"
    projection = next((name for name in operations_of(type(module.get_submodule(parts.router)).forward)
                       if "linear" in name), None)
    if projection is not None:
        found["router_logits"] = f"router.source.{projection}.output"
    dispatch = [name for name in operations_of(type(experts).forward) if name.startswith("experts_forward_")]
    if dispatch:
        found["expert_outputs"] = f"{parts.experts}.source.{dispatch[-1]}.source.weighted_out_view_0.output"
    return found


def _own_forward(experts: nn.Module) -> Callable:
    return inspect.unwrap(type(experts).forward)


def parse_all(places: dict[str, str]) -> dict[str, Location]:
    """``places`` with every location parsed."""
    return {name: Location.parse(text) for name, text in places.items()}
