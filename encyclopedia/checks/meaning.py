"""Meaning: each value equals a recomputation that does not share its read path.

A recomputation takes what :mod:`encyclopedia.native` recorded with plain hooks, or other values through the
model's own modules. A value may have several; all have to hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from encyclopedia.checks import recurrent
from encyclopedia.checks.claims import TOLERANCE, BrokenClaim, Ledger, describe, difference, said
from encyclopedia.checks.experts import one_slot_at_a_time, scored
from encyclopedia.checks.identity import stream_gates
from encyclopedia.checks.recurrent import KernelRun, MixerRun
from encyclopedia.families import Declared, Family
from encyclopedia.location import Location
from encyclopedia.model.readings import Reading
from encyclopedia.native import Arithmetic, AttentionCall, Call, NativeRun
from encyclopedia.structure.block import same
from encyclopedia.structure.parts import CONTRIBUTIONS, Kind, Structure, Sublayer
from encyclopedia.structure.recurrent import recurrent_values
from encyclopedia.structure.stack import Stack

#: Block, host and name of a value.
Key = tuple[int | None, str, str]

#: A recomputation: the claim in words and the tensor expected.
Expected = tuple[str, torch.Tensor]


#: Children of a mixture that gate its shared expert.
SHARED_GATES = ("shared_expert_gate", "shared_gate")


class NotRead(Exception):
    """A value that a recomputation needs and this load has not got."""


@dataclass(frozen=True)
class Root:
    """What values are recomputed from.

    Attributes:
        model: the native model.
        structure: what it is made of.
        native: what plain hooks recorded.
        values: every reading by block, host and name.
        kernels: by path, the calls of the recurrent mixers' kernels.
        lenient: whether only the first recomputation of a value has to hold.
        taken: the values that the recomputation being made has taken.
    """

    model: nn.Module
    structure: Structure
    native: NativeRun
    values: dict[Key, torch.Tensor]
    kernels: Mapping[str, list[KernelRun]] = field(default_factory=dict)
    lenient: bool = False
    taken: set[Key] = field(default_factory=set)

    @classmethod
    def of(cls, model: nn.Module, structure: Structure, native: NativeRun, readings: list[Reading],
           kernels: Mapping[str, list[KernelRun]], lenient: bool = False) -> Root:
        """What ``readings`` on ``model`` are checked from."""
        return cls(model, structure, native, {
            (reading.layer, reading.host, reading.name): reading.result for reading in readings}, kernels, lenient)

    @property
    def stack(self) -> Stack:
        """Where the model's standard parts are."""
        return self.structure.stack

    def module(self, name: str) -> nn.Module:
        """The native module under a standard name of the root."""
        return self.model.get_submodule(getattr(self.stack, name))

    def call(self, path: str) -> Call:
        """The last call of a module.

        Raises:
            NotRead: where it was not called.
        """
        if path not in self.native.calls:
            raise NotRead(path)
        return self.native.calls[path][-1]

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
        kind: the block's kind.
        family: what the family declares.
    """

    root: Root
    layer: int
    sublayer: Sublayer | None
    kind: Kind
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
        return self.kind.sublayer(host)

    @property
    def mixer(self) -> str:
        """The host that mixes positions."""
        return "self_attn" if self.kind.sublayer("self_attn") is not None else "linear_attn"

    @property
    def normed_mixer(self) -> str:
        """The host that mixes positions; of two that share a norm, the one that the norm is found in front of."""
        return next((sublayer.host for sublayer in self.kind.sublayers
                     if sublayer.host in ("self_attn", "linear_attn") and sublayer.norm is not None), self.mixer)

    def factor(self, host: str) -> float:
        """What multiplies the contribution of ``host`` before its add."""
        expression = None if self.kind.sum is None else self.kind.sum.factor(host)
        return 1.0 if expression is None else self.evaluated(expression)

    def evaluated(self, expression: str) -> Any:
        """The number or parameter that an expression of the identity reads on this block."""
        config: Any = self.root.model.config
        names = {**dict(self.block.named_parameters(recurse=False)), **dict(self.block.named_buffers(recurse=False)),
                 "config": SimpleNamespace(**config.to_dict()),
                 "layers": {self.layer: self.block}, "i": self.layer}
        return eval(expression, {"__builtins__": {}}, names)

    def gate(self, host: str) -> torch.Tensor | float:
        """What multiplies the stream before the add of ``host``."""
        name = stream_gates(self.family, self.kind).get(host)
        return 1.0 if name is None else self.evaluated(name)


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
        error = difference(_unflattened(expected, found), found)
        if not error <= TOLERANCE and held and root.lenient:
            continue
        if not error <= TOLERANCE:
            raise BrokenClaim("meaning", name, layer, f"{text} ({describe(expected)})",
                              f"{describe(found)}, off by {error:.2e} of the largest magnitude")
        ledger.held("meaning", host, name, text, error)
        held += 1
        root.taken.clear()
    if not held:
        raise BrokenClaim("meaning", name, layer, "an independent recomputation", "none")


def _unflattened(expected: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
    """``expected`` in the shape of ``found``, where it is the same but flat over tokens."""
    flat = expected.ndim == found.ndim - 1 and expected.shape == (found.shape[0] * found.shape[1], *found.shape[2:])
    return expected.reshape(found.shape) if flat else expected


def _recomputed(root: Root, family: Family, layer: int | None, host: str, name: str) -> Iterator[Expected]:
    """The recomputations of a value for which everything they need was read."""
    try:
        if layer is None:
            yield from _root(root, name)
        else:
            kind = root.structure.kind_of(layer)
            yield from _at_block(Here(root, layer, kind.sublayer(host), kind, family), host, name)
    except NotRead:
        return
    except (AttributeError, LookupError, NameError, RuntimeError, TypeError, ValueError, AssertionError) as error:
        raise BrokenClaim("meaning", name, layer, "a recomputation of it", said(error)) from error


def _root(root: Root, name: str) -> Iterator[Expected]:
    ids = root.native.input_ids
    depth = root.structure.depth
    if name == "input_ids":
        yield "the token ids the model was called with", ids
    elif name == "attention_mask":
        yield "the mask the model was called with", torch.ones_like(ids)
    elif name == "input_size":
        yield "the shape of the token ids", torch.tensor(ids.shape)
    elif name == "token_embeddings":
        yield "the embedding module's output under a plain hook", root.native.calls[root.stack.embed_tokens][-1].output
    elif name == "final_norm_output":
        assert root.stack.norm is not None
        call = root.call(root.stack.norm)
        head, stream = root.call(root.stack.lm_head), root.call(f"{root.stack.layers}.{depth - 1}").leaving
        if same(_hidden_states(head), call.leaving):
            yield "what a plain hook sees enter the head", _hidden_states(head)
        if same(_hidden_states(call), stream):
            last = root.value(depth - 1, "layer", "layer_output")
            yield "the final norm of the last block's layer_output", root.module("norm")(last)
    elif name == "lm_head_output":
        call = root.call(root.stack.lm_head)
        yield "what a plain hook sees leave the head", call.leaving
        if root.stack.norm is not None and same(_hidden_states(call), root.call(root.stack.norm).leaving):
            yield "the head of final_norm_output", root.module("lm_head")(
                root.value(None, "model", "final_norm_output"))
    elif name == "logits":
        yield "the logits the model returns when nothing traces it", root.native.output.logits
    elif name == "next_token_probs":
        yield "the softmax of the last position's logits", root.native.output.logits[:, -1].softmax(-1)


def _at_block(here: Here, host: str, name: str) -> Iterator[Expected]:
    found = RECOMPUTED.get(host, {}).get(name)
    if found is not None:
        yield from found(here)


def _layer_input(here: Here) -> Iterator[Expected]:
    call = here.root.call(here.path)
    yield "what a plain hook sees enter the block", call.entering
    if here.layer and same(call.entering, here.root.call(f"{here.root.stack.layers}.{here.layer - 1}").leaving):
        yield "the block before's layer_output", here.root.value(here.layer - 1, "layer", "layer_output")


def _normed(host: str | None, stream: str, text: str) -> Callable[[Here], Iterator[Expected]]:
    def recompute(here: Here) -> Iterator[Expected]:
        sublayer = here.other(host or here.normed_mixer)
        assert sublayer is not None
        assert sublayer.norm is not None
        call = here.root.call(f"{here.path}.{sublayer.first}")
        yield f"what a plain hook sees enter {sublayer.first}", _hidden_states(call)
        normed = here.root.call(f"{here.path}.{sublayer.norm}")
        if stream == "layer_mid" or same(_hidden_states(normed), here.root.call(here.path).entering):
            yield text, here.block.get_submodule(sublayer.norm)(here.value("layer", stream))

    return recompute


def _hidden_states(call: Call) -> torch.Tensor:
    return call.keywords.get("hidden_states", call.entering)


def _layer_mid(here: Here) -> Iterator[Expected]:
    *mixers, last = (sublayer.host for sublayer in here.kind.sublayers)
    stream = here.value("layer", "layer_input")
    for host in mixers:
        stream = here.gate(host) * stream + here.factor(host) * here.value(host, CONTRIBUTIONS[host])
    yield "the stream after the add in front of the last sublayer", stream
    found = here.kind.sum
    # With norms behind the adds there is neither a sum nor an identity, and nothing can be taken off the output.
    plain = here.family.identity is not None if found is None else (
        len(found.terms) == len(mixers) + 1 and found.common is None)
    if plain:
        leaving = here.value("layer", "layer_output") - here.factor(last) * here.value(last, CONTRIBUTIONS[last])
        yield "layer_output without the last sublayer's term", leaving / here.gate(last)


def _mlp_input(here: Here) -> Iterator[Expected]:
    sublayer = here.other("mlp")
    assert sublayer is not None
    yield "what a plain hook sees enter the MLP", _hidden_states(here.root.call(f"{here.path}.{sublayer.first}"))


def _layer_output(here: Here) -> Iterator[Expected]:
    yield "what a plain hook sees leave the block", here.root.call(here.path).leaving


def _call(here: Here) -> AttentionCall:
    assert here.sublayer is not None
    path = f"{here.path}.{here.sublayer.interior}" if here.sublayer.interior else here.path
    if path not in here.root.native.attention:
        raise NotRead(path)
    return here.root.native.attention[path]


def _taken(part: str, name: str) -> Callable[[Here], Iterator[Expected]]:
    def recompute(here: Here) -> Iterator[Expected]:
        if not _has_call(here):
            yield from _operand(here, part, here.value("self_attn", name))
            return
        yield f"the {part} that the eager attention function is called with", getattr(_call(here), part)

    return recompute


def _has_call(here: Here) -> bool:
    try:
        _call(here)
    except NotRead:
        return False
    return True


def _own(here: Here) -> Arithmetic:
    """The softmax and products of an attention that does its own arithmetic."""
    inside = [found for path, found in here.root.native.arithmetic.items()
              if (path == here.path or path.startswith(f"{here.path}.")) and found.softmaxes]
    if not inside:
        raise NotRead("a softmax")
    return inside[0]


def _operand(here: Here, part: str, found: torch.Tensor) -> Iterator[Expected]:
    """What the products around the softmax were given, in the layout of ``found``; repeated heads once."""
    own = _own(here)
    if not (own.before and own.after):
        raise NotRead("the products around the softmax")
    given = {"query": own.before[-1].left, "key": own.before[-1].right.transpose(-1, -2),
             "value": own.after[0].right}[part]
    batch, heads = found.shape[0], found.shape[1]
    given = given.reshape(batch, -1, *given.shape[-2:])
    if given.shape[1] != heads:
        repeated = given.unflatten(1, (heads, -1))
        given = repeated[:, :, 0]
    text = {"query": "the left operand of the product ahead of the softmax",
            "key": "the right operand of the product ahead of the softmax",
            "value": "the right operand of the product behind the softmax"}[part]
    yield text, given


def _repeated(tensor: torch.Tensor, heads: int) -> torch.Tensor:
    return tensor.repeat_interleave(heads // tensor.shape[1], dim=1)


def _scores(here: Here) -> Iterator[Expected]:
    if not _has_call(here):
        yield "what enters the softmax", _own(here).softmaxes[-1][0].reshape(
            here.value("self_attn", "attention_scores").shape)
        return
    call = _call(here)
    if call.scaling is None:
        raise NotRead("the factor of the scores")
    product = call.query @ _repeated(call.key, call.query.shape[1]).transpose(-1, -2) * call.scaling
    softcap = call.others.get("softcap")
    capped = "" if not softcap else ", capped"
    product = product if not softcap else softcap * torch.tanh(product / softcap)
    masked = "" if call.mask is None else ", plus the mask"
    yield f"query · key, scaled{capped}{masked}", product if call.mask is None else product + call.mask


def _probabilities(here: Here) -> Iterator[Expected]:
    pattern = _call(here).pattern if _has_call(here) else None
    if not _has_call(here):
        yield "what leaves the softmax", _own(here).softmaxes[-1][1].reshape(
            here.value("self_attn", "attention_probabilities").shape)
    if pattern is not None:
        yield "the pattern that the eager attention function returns", pattern
    scores = here.value("self_attn", "attention_scores").float()
    sinks = _sinks(here)
    if sinks is None:
        yield "the softmax of attention_scores", scores.softmax(-1)
    else:
        beside = sinks.reshape(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        yield ("the softmax of attention_scores beside a column of sinks, which is dropped",
               torch.cat([scores, beside], dim=-1).softmax(-1)[..., :-1])


def _sinks(here: Here) -> torch.Tensor | None:
    """The heads' sinks, which take a share of the softmax, or ``None``."""
    given = _call(here).others.get("s_aux") if _has_call(here) else None
    own = here.module._parameters.get("sinks")
    return given if given is not None else own


def _head_outputs(here: Here) -> Iterator[Expected]:
    if _has_call(here):
        yield "what the eager attention function returns", _call(here).outputs
    elif _own(here).after:
        mixing = _own(here).after[0]
        batch, seq, heads, width = here.value("self_attn", "attention_head_outputs").shape
        product = (mixing.left @ mixing.right).reshape(batch, heads, seq, width)
        yield "the product behind the softmax", product.transpose(1, 2)
    pattern, values = (here.value("self_attn", f"attention_{name}") for name in ("probabilities", "values"))
    mixed = pattern.to(values.dtype) @ _repeated(values, pattern.shape[1])
    yield "attention_probabilities times attention_values, repeated to the query heads", mixed.transpose(1, 2)


def _premix(here: Here) -> Iterator[Expected]:
    name, call = _writing(here, "attention_premix")
    width = here.value("self_attn", "attention_premix").shape[-1]
    yield f"what a plain hook sees enter {name}", call.entering.unflatten(-1, (-1, width))


def _module_at(path: str, location: str) -> str:
    """The path of the module that a location of the host at ``path`` names."""
    steps = path.split(".")
    for step in Location.parse(location).modules:
        steps = steps[:-1] if step == ".." else [*steps, step]
    return ".".join(steps)


def _writing(here: Here, name: str) -> tuple[str, Call]:
    """The layer that writes the sublayer's output, which ``name`` enters: its name and its call."""
    assert here.sublayer is not None
    declared = here.family.classes.get(type(here.module).__name__, Declared()).locations.get(name)
    if declared is not None and declared.endswith(".input"):
        path = _module_at(here.path, declared)
        return path.rpartition(".")[2], here.root.call(path)
    if here.sublayer.projection is None:
        raise NotRead("the output projection")
    path = f"{here.path}.{here.sublayer.projection}" if here.sublayer.projection else here.path
    return path.rpartition(".")[2], here.root.call(path)


def _contribution(written_from: str) -> Callable[[Here], Iterator[Expected]]:
    """What a sublayer adds: as a hook sees it, and rebuilt from what enters its writing layer."""

    def recompute(here: Here) -> Iterator[Expected]:
        assert here.sublayer is not None
        module = _module_at(here.path, here.sublayer.contribution)
        yield "what a plain hook sees leave it", here.root.call(module).leaving
        host = here.sublayer.host
        writer = here.sublayer.on(here.block).writer
        if writer is not None and here.has(host, written_from) and not _declared_mixture(here) and _alone(here):
            entering = here.value(host, written_from)
            entering = entering.flatten(-2) if entering.ndim == 4 else entering
            rebuilt = writer(entering)
            post_norm = here.sublayer.post_norm
            behind = f", through {post_norm}" if post_norm is not None else ""
            rebuilt = rebuilt if post_norm is None else here.block.get_submodule(post_norm)(rebuilt)
            yield f"{_writing(here, written_from)[0]} of {written_from}{behind}", rebuilt

    return recompute


def _activation(here: Here) -> Iterator[Expected]:
    mlp = here.module
    gate = child_named(mlp, ("gate_proj", "w1"))
    act = child_named(mlp, ("act_fn", "activation_fn", "act"))
    if gate is not None and act is not None:
        call = here.root.call(f"{here.path}.{act}")
        yield f"{act} of what a plain hook sees enter it", mlp.get_submodule(act)(call.entering)
        if same(call.entering, here.root.call(f"{here.path}.{gate}").output):
            entering = here.value("layer", "mlp_input")
            yield f"{act} of {gate} of mlp_input", mlp.get_submodule(act)(mlp.get_submodule(gate)(entering))
    else:
        assert here.sublayer is not None
        assert here.sublayer.activation is not None
        path = _module_at(here.path, here.sublayer.activation)
        yield f"what a plain hook sees leave {path.rpartition('.')[2]}", here.root.call(path).output


def child_named(module: nn.Module, names: tuple[str, ...]) -> str | None:
    """The first of ``names`` that is a child of ``module``."""
    children = dict(module.named_children())
    return next((name for name in names if name in children), None)


def _alone(here: Here) -> bool:
    """Whether the norm behind the sublayer reads what the sublayer returned and nothing besides."""
    assert here.sublayer is not None
    if here.sublayer.post_norm is None:
        return True
    behind = here.root.call(f"{here.path.rpartition('.')[0]}.{here.sublayer.post_norm}")
    return same(_hidden_states(behind), here.root.call(here.path).leaving)


def _neurons(here: Here) -> Iterator[Expected]:
    name, call = _writing(here, "mlp_neurons")
    yield f"what a plain hook sees enter {name}", call.entering
    gate, up = child_named(here.module, ("gate_proj", "w1")), child_named(here.module, ("up_proj", "w3"))
    if gate is not None and up is not None and here.has("mlp", "mlp_activation"):
        times = here.module.get_submodule(up)(here.value("layer", "mlp_input"))
        yield f"mlp_activation times {up} of mlp_input", here.value("mlp", "mlp_activation") * times


def _mlp_output(here: Here) -> Iterator[Expected]:
    yield from _contribution("mlp_neurons")(here)
    if here.has("mlp", "routed_output"):
        yield _routed_and_shared(here)


def _routed_and_shared(here: Here) -> Expected:
    routed = here.value("mlp", "routed_output")
    if not here.has("mlp", "shared_expert_output"):
        return "routed_output", routed
    shared = here.value("mlp", "shared_expert_output")
    gated = ", through its gate" if child_named(here.module, SHARED_GATES) is not None else ""
    return f"routed_output plus shared_expert_output{gated}", routed + _shared_gate(here) * shared


def _shared_gate(here: Here) -> torch.Tensor | float:
    """What multiplies the shared expert's output: the sigmoid of its gate where it has one, else one."""
    gate = child_named(here.module, SHARED_GATES)
    if gate is None:
        return 1.0
    return here.module.get_submodule(gate)(_hidden_states(here.root.call(here.path))).sigmoid()


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
    flat = _flat(here)
    logits = F.linear(flat.to(weight.dtype), weight, bias)
    yield "the router's weight times mlp_input", logits.unflatten(0, here.value("layer", "mlp_input").shape[:2])


def _routed(name: str) -> Callable[[Here], Iterator[Expected]]:
    def recompute(here: Here) -> Iterator[Expected]:
        found = here.value("mlp", name)
        assert here.sublayer is not None
        assert here.sublayer.mixture is not None
        returned = here.root.call(f"{here.path}.{here.sublayer.mixture.router}").output
        parts = [part for part in (returned if isinstance(returned, tuple) else (returned,))
                 if isinstance(part, torch.Tensor) and part.ndim == 2]
        alike = [part.unflatten(0, found.shape[:2]) for part in parts if isinstance(part, torch.Tensor)
                 and part.shape[-1] == found.shape[-1] and part.is_floating_point() == found.is_floating_point()]
        if alike:
            yield "what a plain hook sees leave the router", alike[-1]
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
    assert here.sublayer is not None
    assert here.sublayer.mixture is not None
    parts = here.sublayer.mixture
    whole = here.root.call(here.path).leaving
    if parts.shared is None:
        yield "what a plain hook sees leave the mixture, which has no shared expert", whole
    else:
        shared = here.root.call(f"{here.path}.{parts.shared}").leaving.reshape(whole.shape) * _shared_gate(here)
        yield "what a plain hook sees leave the mixture, less the shared expert's part", whole - shared
    scale = getattr(here.module, "routed_scaling_factor", None)
    total = here.value("mlp", "expert_outputs").sum(dim=2)
    if scale is not None and same(total * scale, here.value("mlp", "routed_output")):
        yield "the sum of expert_outputs over the slots, times the routed scaling factor", total * scale
    else:
        yield "the sum of expert_outputs over the slots", total


def _shared_expert_output(here: Here) -> Iterator[Expected]:
    assert here.sublayer is not None
    assert here.sublayer.mixture is not None
    assert here.sublayer.mixture.shared is not None
    yield ("what a plain hook sees leave the shared expert",
           here.root.call(f"{here.path}.{here.sublayer.mixture.shared}").leaving)
    shared = here.module.get_submodule(here.sublayer.mixture.shared)
    yield "the shared expert called on mlp_input by itself", shared(here.value("layer", "mlp_input"))


def _recurrent(name: str) -> Callable[[Here], Iterator[Expected]]:
    def recompute(here: Here) -> Iterator[Expected]:
        run = MixerRun(here.module, recurrent_values(here.module), here.path, here.root.native.calls,
                       here.root.kernels.get(here.path, []), partial(here.value, "linear_attn"))
        yield from recurrent.recomputed(run, name)

    return recompute


def _mixed(here: Here) -> Iterator[Expected]:
    """What a recurrent mixer adds: where that is its own output, rebuilt from what enters its last projection."""
    assert here.sublayer is not None
    own = here.sublayer.post_norm is None and _module_at(here.path, here.sublayer.contribution) == here.path
    yield from _recurrent("attention_output")(here) if own else _contribution("attention_premix")(here)


RECOMPUTED: dict[str, dict[str, Callable[[Here], Iterator[Expected]]]] = {
    "layer": {
        "layer_input": _layer_input,
        "attention_norm_output": _normed(None, "layer_input", "the norm of layer_input"),
        "layer_mid": _layer_mid,
        "mlp_norm_output": _normed("mlp", "layer_mid", "the norm of layer_mid"),
        "mlp_input": _mlp_input,
        "layer_output": _layer_output,
    },
    "self_attn": {
        "attention_queries": _taken("query", "attention_queries"),
        "attention_keys": _taken("key", "attention_keys"),
        "attention_values": _taken("value", "attention_values"),
        "attention_scores": _scores,
        "attention_probabilities": _probabilities,
        "attention_head_outputs": _head_outputs,
        "attention_premix": _premix,
        "attention_output": _contribution("attention_premix"),
    },
    "linear_attn": {
        **{name: _recurrent(name) for name in recurrent.RECOMPUTED},
        "attention_output": _mixed,
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
