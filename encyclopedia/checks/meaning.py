"""Meaning: each value equals a recomputation that does not share its read path.

A recomputation takes what :mod:`encyclopedia.checks.native` recorded with plain hooks, or other values through the
model's own modules. A value may have several; all have to hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from encyclopedia.checks.claims import TOLERANCE, BrokenClaim, Ledger, describe, difference, said
from encyclopedia.checks.experts import one_slot_at_a_time, scored
from encyclopedia.checks.native import AttentionCall, Call, NativeRun
from encyclopedia.families import Family
from encyclopedia.model.readings import Reading
from encyclopedia.model.structure import (
    DOWN_PROJECTIONS,
    OUTPUT_PROJECTIONS,
    Stack,
    Sublayer,
    child_named,
    find_sublayers,
)

#: Block, host and name of a value.
Key = tuple[int | None, str, str]

#: A recomputation: the claim in words and the tensor expected.
Expected = tuple[str, torch.Tensor]


class NotRead(Exception):
    """A value that a recomputation needs and this load has not got."""


@dataclass(frozen=True)
class Root:
    """What values are recomputed from.

    Attributes:
        model: the native model.
        stack: where its parts are.
        native: what plain hooks recorded.
        values: every reading by block, host and name.
        taken: the values that the recomputation being made has taken.
        found: the sublayers of each block that was looked at.
    """

    model: nn.Module
    stack: Stack
    native: NativeRun
    values: dict[Key, torch.Tensor]
    taken: set[Key] = field(default_factory=set)
    found: dict[int, tuple[Sublayer, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: nn.Module, stack: Stack, native: NativeRun, readings: list[Reading]) -> Root:
        """What ``readings`` on ``model`` are checked from."""
        return cls(model, stack, native, {
            (reading.layer, reading.host, reading.name): reading.result for reading in readings})

    def module(self, name: str) -> nn.Module:
        """The native module under a standard name of the root."""
        return self.model.get_submodule(getattr(self.stack, name))

    def sublayers(self, layer: int) -> tuple[Sublayer, ...]:
        """The sublayers of a block."""
        if layer not in self.found:
            self.found[layer] = find_sublayers(self.model.get_submodule(f"{self.stack.layers}.{layer}"))
        return self.found[layer]

    def value(self, layer: int | None, host: str, name: str) -> torch.Tensor:
        """A value that was read.

        Raises:
            NotRead: where it was not.
        """
        key = (layer, host, name)
        if key not in self.values:
            raise NotRead(name)
        self.taken.add(key)
        return self.values[key]


@dataclass(frozen=True)
class Here:
    """What one block's values are recomputed from.

    Attributes:
        root: the model around it.
        layer: the block's index.
        sublayer: the one whose values are checked, or ``None`` for the block's own.
        sublayers: all of the block.
        family: what the family declares.
    """

    root: Root
    layer: int
    sublayer: Sublayer | None
    sublayers: tuple[Sublayer, ...]
    family: Family

    @property
    def path(self) -> str:
        """The native path of the block, or of the sublayer."""
        block = f"{self.root.stack.layers}.{self.layer}"
        return block if self.sublayer is None else f"{block}.{self.sublayer.name}"

    @property
    def block(self) -> nn.Module:
        return self.root.model.get_submodule(f"{self.root.stack.layers}.{self.layer}")

    @property
    def module(self) -> nn.Module:
        return self.root.model.get_submodule(self.path)

    def value(self, host: str, name: str) -> torch.Tensor:
        """A value read on this block; see :meth:`Root.value`."""
        return self.root.value(self.layer, host, name)

    def has(self, host: str, name: str) -> bool:
        """Whether the value was read on this block."""
        return (self.layer, host, name) in self.root.values

    def other(self, host: str) -> Sublayer | None:
        """The block's sublayer that is ``host``."""
        return next((sublayer for sublayer in self.sublayers if sublayer.host == host), None)

    def gate(self, host: str) -> torch.Tensor | float:
        """What multiplies the stream before the add of ``host``."""
        name = self.family.stream_gates.get(host)
        return 1.0 if name is None else self.block.get_parameter(name)


def check_meaning(root: Root, family: Family, readings: list[Reading], ledger: Ledger) -> None:
    """Check every reading against its recomputations.

    Raises:
        BrokenClaim: for one that is not equal, or a value that has no recomputation at all. A wrong value also breaks
            what is recomputed from it, so of several the first is raised whose recomputation took none of the others.
    """
    broken: dict[Key, tuple[set[Key], BrokenClaim]] = {}
    for reading in readings:
        try:
            check_value(root, family, reading, ledger)
        except BrokenClaim as claim:
            key = (reading.layer, reading.host, reading.name)
            broken[key] = (root.taken - {key}, claim)
    if broken:
        claims = [claim for _, claim in broken.values()]
        raise next((claim for taken, claim in broken.values() if not taken & broken.keys()), claims[0])


@torch.no_grad()
def check_value(root: Root, family: Family, reading: Reading, ledger: Ledger) -> None:
    """Check one reading against its recomputations.

    Raises:
        BrokenClaim: where one is not equal or cannot be made, or there is none.
    """
    layer, host, name, found = reading.layer, reading.host, reading.name, reading.result
    held = 0
    root.taken.clear()
    for text, expected in _recomputed(root, family, layer, host, name):
        error = difference(expected, found)
        if not error <= TOLERANCE:
            raise BrokenClaim("meaning", name, layer, f"{text} ({describe(expected)})",
                              f"{describe(found)}, off by {error:.2e} of the largest magnitude")
        ledger.held("meaning", host, name, text, error)
        held += 1
        root.taken.clear()
    if not held:
        raise BrokenClaim("meaning", name, layer, "an independent recomputation", "none")


def _recomputed(root: Root, family: Family, layer: int | None, host: str, name: str) -> Iterator[Expected]:
    """The recomputations of a value for which everything they need was read."""
    try:
        if layer is None:
            yield from _root(root, name)
        else:
            sublayers = root.sublayers(layer)
            sublayer = next((found for found in sublayers if found.host == host), None)
            yield from _at_block(Here(root, layer, sublayer, sublayers, family), host, name)
    except NotRead:
        return
    except (AttributeError, LookupError, RuntimeError, TypeError, AssertionError) as error:
        raise BrokenClaim("meaning", name, layer, "a recomputation of it", said(error)) from error


def _root(root: Root, name: str) -> Iterator[Expected]:
    ids = root.native.input_ids
    depth = len(list(root.module("layers").children()))
    if name == "input_ids":
        yield "the token ids the model was called with", ids
    elif name == "attention_mask":
        yield "the mask the model was called with", torch.ones_like(ids)
    elif name == "input_size":
        yield "the shape of the token ids", torch.tensor(ids.shape)
    elif name == "token_embeddings":
        yield "the embedding module's output under a plain hook", root.native.calls[root.stack.embed_tokens][-1].output
    elif name == "final_norm_output":
        last = root.value(depth - 1, "layer", "layer_output")
        yield "the final norm of the last block's layer_output", root.module("norm")(last)
    elif name == "lm_head_output":
        yield "the head of final_norm_output", root.module("lm_head")(root.value(None, "model", "final_norm_output"))
    elif name == "logits":
        yield "the logits the model returns when nothing traces it", root.native.output.logits
    elif name == "next_token_probs":
        yield "the softmax of the last position's logits", root.native.output.logits[:, -1].softmax(-1)


def _at_block(here: Here, host: str, name: str) -> Iterator[Expected]:
    found = RECOMPUTED[host].get(name)
    if found is not None:
        yield from found(here)


def _layer_input(here: Here) -> Iterator[Expected]:
    yield "what a plain hook sees enter the block", here.root.native.calls[here.path][-1].entering
    if here.layer:
        yield "the block before's layer_output", here.root.value(here.layer - 1, "layer", "layer_output")


def _normed(host: str, stream: str, text: str) -> Callable[[Here], Iterator[Expected]]:
    def recompute(here: Here) -> Iterator[Expected]:
        sublayer = here.other(host)
        assert sublayer is not None
        call = here.root.native.calls[f"{here.path}.{sublayer.name}"][-1]
        yield f"what a plain hook sees enter {sublayer.name}", _hidden_states(call)
        if sublayer.norm is not None and here.has("layer", stream):
            yield text, here.block.get_submodule(sublayer.norm)(here.value("layer", stream))

    return recompute


def _hidden_states(call: Call) -> torch.Tensor:
    return call.keywords.get("hidden_states", call.entering)


def _layer_mid(here: Here) -> Iterator[Expected]:
    stream = here.gate("self_attn") * here.value("layer", "layer_input")
    yield "the stream after the attention's add", stream + here.value("self_attn", "attention_output")
    leaving = here.value("layer", "layer_output") - here.value("mlp", "mlp_output")
    yield "layer_output without the MLP's term", leaving / here.gate("mlp")


def _mlp_input(here: Here) -> Iterator[Expected]:
    sublayer = here.other("mlp")
    assert sublayer is not None
    yield "what a plain hook sees enter the MLP", here.root.native.calls[f"{here.path}.{sublayer.name}"][-1].entering


def _layer_output(here: Here) -> Iterator[Expected]:
    yield "what a plain hook sees leave the block", here.root.native.calls[here.path][-1].leaving


def _call(here: Here) -> AttentionCall:
    return here.root.native.attention[here.path]


def _taken(part: str) -> Callable[[Here], Iterator[Expected]]:
    def recompute(here: Here) -> Iterator[Expected]:
        yield f"the {part} that the eager attention function is called with", getattr(_call(here), part)

    return recompute


def _repeated(tensor: torch.Tensor, heads: int) -> torch.Tensor:
    return tensor.repeat_interleave(heads // tensor.shape[1], dim=1)


def _scores(here: Here) -> Iterator[Expected]:
    call = _call(here)
    found = here.value("self_attn", "attention_scores")
    if not call.others.get("softcap") and call.others.get("s_aux") is None and call.scaling is not None:
        product = call.query @ _repeated(call.key, call.query.shape[1]).transpose(-1, -2) * call.scaling
        yield "query · key, scaled, plus the mask", product if call.mask is None else product + call.mask
    else:
        pattern = here.value("self_attn", "attention_probabilities")
        yield "scores whose softmax is the pattern", torch.where(found.softmax(-1).isclose(pattern), found, torch.inf)


def _probabilities(here: Here) -> Iterator[Expected]:
    yield "the softmax of attention_scores", here.value("self_attn", "attention_scores").float().softmax(-1)
    pattern = _call(here).pattern
    if pattern is not None:
        yield "the pattern that the eager attention function returns", pattern


def _head_outputs(here: Here) -> Iterator[Expected]:
    pattern, values = (here.value("self_attn", f"attention_{name}") for name in ("probabilities", "values"))
    mixed = pattern.to(values.dtype) @ _repeated(values, pattern.shape[1])
    yield "attention_probabilities times attention_values, repeated to the query heads", mixed.transpose(1, 2)


def _premix(here: Here) -> Iterator[Expected]:
    projection = child_named(here.module, OUTPUT_PROJECTIONS)
    entering = here.root.native.calls[f"{here.path}.{projection}"][-1].entering
    yield f"what a plain hook sees enter {projection}", entering.unflatten(-1, (-1, _head_width(here)))


def _head_width(here: Here) -> int:
    return here.value("self_attn", "attention_premix").shape[-1]


def _attention_output(here: Here) -> Iterator[Expected]:
    yield "what a plain hook sees leave the attention", here.root.native.calls[here.path][-1].leaving
    projection = child_named(here.module, OUTPUT_PROJECTIONS)
    if projection is not None and here.has("self_attn", "attention_premix"):
        premix = here.value("self_attn", "attention_premix").flatten(-2)
        yield f"{projection} of attention_premix", here.module.get_submodule(projection)(premix)


def _activation(here: Here) -> Iterator[Expected]:
    mlp, entering = here.module, here.value("layer", "mlp_input")
    gate = child_named(mlp, ("gate_proj", "w1"))
    act = child_named(mlp, ("act_fn", "activation_fn", "act"))
    assert act is not None
    if gate is not None:
        yield f"{act} of {gate} of mlp_input", mlp.get_submodule(act)(mlp.get_submodule(gate)(entering))
    else:
        yield f"what a plain hook sees leave {act}", here.root.native.calls[f"{here.path}.{act}"][-1].output


def _neurons(here: Here) -> Iterator[Expected]:
    mlp, down = here.module, child_named(here.module, DOWN_PROJECTIONS)
    yield f"what a plain hook sees enter {down}", here.root.native.calls[f"{here.path}.{down}"][-1].entering
    up = child_named(mlp, ("up_proj", "w3"))
    if up is not None and here.has("mlp", "mlp_activation"):
        times = mlp.get_submodule(up)(here.value("layer", "mlp_input"))
        yield f"mlp_activation times {up} of mlp_input", here.value("mlp", "mlp_activation") * times


def _mlp_output(here: Here) -> Iterator[Expected]:
    yield "what a plain hook sees leave the MLP", here.root.native.calls[here.path][-1].leaving
    mlp, down = here.module, child_named(here.module, DOWN_PROJECTIONS)
    if here.has("mlp", "routed_output"):
        routed = here.value("mlp", "routed_output")
        shared = here.has("mlp", "shared_expert_output")
        yield ("routed_output plus shared_expert_output" if shared else "routed_output",
               routed + here.value("mlp", "shared_expert_output") if shared else routed)
    elif down is not None and not _declared_mixture(here):
        yield f"{down} of mlp_neurons", mlp.get_submodule(down)(here.value("mlp", "mlp_neurons"))


def _declared_mixture(here: Here) -> bool:
    declared = here.family.classes.get(type(here.module).__name__)
    return declared is not None and declared.like == "mixture"


def _flat(here: Here) -> torch.Tensor:
    return here.value("layer", "mlp_input").flatten(0, 1)


def _router(here: Here) -> nn.Module:
    assert here.sublayer is not None
    assert here.sublayer.mixture is not None
    return here.module.get_submodule(here.sublayer.mixture.router)


def _router_logits(here: Here) -> Iterator[Expected]:
    router = _router(here)
    weight, bias = (router._parameters.get(name) for name in ("weight", "bias"))
    assert weight is not None
    logits = F.linear(_flat(here), weight, bias)
    yield "the router's weight times mlp_input", logits.unflatten(0, here.value("layer", "mlp_input").shape[:2])


def _routed(name: str) -> Callable[[Here], Iterator[Expected]]:
    def recompute(here: Here) -> Iterator[Expected]:
        found = here.value("mlp", name)
        parts = _router(here)(_flat(here))
        alike = [part.unflatten(0, found.shape[:2]) for part in parts if isinstance(part, torch.Tensor)
                 and part.shape[-1] == found.shape[-1] and part.is_floating_point() == found.is_floating_point()]
        if alike:
            yield "what the router returns when it is called by itself", alike[-1]
        formula = scored(_router(here), here.value("mlp", "router_logits"), parts)
        if formula is not None:
            text, weights, indices = formula
            yield text, weights if name == "expert_weights" else indices

    return recompute


def _expert_outputs(here: Here) -> Iterator[Expected]:
    assert here.sublayer is not None
    assert here.sublayer.mixture is not None
    experts = here.module.get_submodule(here.sublayer.mixture.experts)
    weights, indices = here.value("mlp", "expert_weights"), here.value("mlp", "expert_indices")
    slots = one_slot_at_a_time(experts, _flat(here), indices.flatten(0, 1), weights.flatten(0, 1))
    yield "the experts' own loop, one routing slot at a time", slots.unflatten(0, weights.shape[:2])


def _routed_output(here: Here) -> Iterator[Expected]:
    scale = getattr(here.module, "routed_scaling_factor", None)
    total = here.value("mlp", "expert_outputs").sum(dim=2)
    if scale is None:
        yield "the sum of expert_outputs over the slots", total
    else:
        yield "the sum of expert_outputs over the slots, times the routed scaling factor", total * scale


def _shared_expert_output(here: Here) -> Iterator[Expected]:
    assert here.sublayer is not None
    assert here.sublayer.mixture is not None
    assert here.sublayer.mixture.shared is not None
    shared = here.module.get_submodule(here.sublayer.mixture.shared)
    yield "the shared expert called on mlp_input by itself", shared(here.value("layer", "mlp_input"))


RECOMPUTED: dict[str, dict[str, Callable[[Here], Iterator[Expected]]]] = {
    "layer": {
        "layer_input": _layer_input,
        "attention_norm_output": _normed("self_attn", "layer_input", "the norm of layer_input"),
        "layer_mid": _layer_mid,
        "mlp_norm_output": _normed("mlp", "layer_mid", "the norm of layer_mid"),
        "mlp_input": _mlp_input,
        "layer_output": _layer_output,
    },
    "self_attn": {
        "attention_queries": _taken("query"),
        "attention_keys": _taken("key"),
        "attention_values": _taken("value"),
        "attention_scores": _scores,
        "attention_probabilities": _probabilities,
        "attention_head_outputs": _head_outputs,
        "attention_premix": _premix,
        "attention_output": _attention_output,
    },
    "mlp": {
        "mlp_activation": _activation,
        "mlp_neurons": _neurons,
        "mlp_output": _mlp_output,
        "router_logits": _router_logits,
        "expert_weights": _routed("expert_weights"),
        "expert_indices": _routed("expert_indices"),
        "expert_outputs": _expert_outputs,
        "routed_output": _routed_output,
        "shared_expert_output": _shared_expert_output,
    },
}
