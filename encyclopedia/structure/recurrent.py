"""A recurrent mixer's values: which recurrence it runs, where its forward passes the tensors, and how it holds them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from encyclopedia.structure.kernels import (
    CHUNK_SCAN,
    DELTA_RULE,
    LINEAR_UNIT,
    KernelCall,
    calls_of,
    find_kernel_call,
)
from encyclopedia.structure.operations import operations_of, returns_tuple
from encyclopedia.vocabulary import values_of

HOST = "linear_attn"


#: How a cache is asked for a state and given one: the operations, and the position of the state among the arguments.
_CACHED = (
    ("cache_get_recurrent_state", "cache_update_recurrent_state", 0),
    ("cache_get_linear_cache", "cache_set_linear_cache", 1),
)

#: Where each size is found on a mixer, the first that is there; ``config.`` looks it up in the module's config.
_SIZES: Mapping[str, tuple[str, ...]] = {
    "heads": ("num_v_heads", "num_heads", "num_attention_heads", "n_mamba_heads", "config.num_heads"),
    "key_heads": ("num_k_heads",),
    "key_dim": ("head_k_dim", "head_dim"),
    "value_dim": ("head_v_dim", "head_dim"),
    "head_dim": ("head_dim", "mamba_head_dim"),
    "groups": ("n_groups",),
    "state_dim": ("ssm_state_size",),
    "channels": ("lru_width", "attention_hidden_size", "intermediate_size"),
}

_NOT_LATER = "not in a step of one token from a cache, which runs {step} instead"
_NEEDS_CACHE = "only in a call that keeps a cache (use_cache=True)"
_GOES_ON = "only in a call that goes on from a cache; the first call finds none"
_ZERO_FIRST = "only in a call that keeps a cache (use_cache=True), and zero where the call is given none to go on from"
_STEP_ONLY = (
    "only in a call that goes on from a cache, and used only where it is of one token; "
    "{kernel} starts from zero whatever the cache holds"
)

_NO_STATES = "{kernel} keeps the states between its tokens to itself"
_WITHDRAWN: Mapping[str, Mapping[str, str]] = {
    "scan": {
        "attention_head_outputs": "{kernel} multiplies by the gate before it returns",
        "decays": "{kernel} makes them itself, out of A and a step size per channel",
        "betas": "a selective scan adds to its state and replaces nothing",
    },
    "ssd": {
        "decays": "{kernel} makes them itself, out of A and a step size per head",
        "betas": "a state-space mixer adds to its state and replaces nothing",
    },
    "lightning": {
        "decays": "they are a constant per head, the exponential of -slope_rate, and no tensor of the call",
        "betas": "lightning attention adds to its state and replaces nothing",
    },
    "mlstm": {
        "decays": "{kernel} makes them itself, out of the forget gate's input",
        "betas": "an mLSTM adds to its state and replaces nothing; its input gate is the argument igate of {kernel}",
        "state_input": "an mLSTM's state is three tensors; they are c_initial, n_initial and m_initial of {kernel}",
        "state_output": "an mLSTM's state is three tensors; they are the second element of what {kernel} returns",
    },
    "wkv": {
        "attention_queries": "RWKV reads its average as it is; the receptance is a gate on it",
        "decays": "they are a parameter per channel, time_decay, and no tensor of the call",
        "betas": "RWKV adds to its state and replaces nothing",
        "state_input": "the state is three tensors (numerator, denominator, maximum); they are state of {kernel}",
        "state_output": "the state is three tensors (numerator, denominator, maximum), which {kernel} returns second",
    },
    "lru": {
        "attention_queries": "an RG-LRU's state is its output, and nothing selects from it",
        "attention_keys": "an RG-LRU writes each channel into the state's own channel",
        "attention_head_outputs": "an RG-LRU's state is its output; read states",
        "betas": "an RG-LRU adds to its state and replaces nothing",
    },
}
_NO_CALL = "{mixer} calls {kernel} once per head, so no call has the whole tensor"
_NO_RECURRENCE = {
    "convolution": "{mixer} is a gated convolution, whose memory is its last inputs",
    "other": "{mixer} calls no recurrence that is known by its arguments",
}
_NEVER_HANDED_OVER = "{mixer} hands no such tensor over"


@dataclass(frozen=True)
class Recurrent:
    """A recurrent mixer's values.

    Attributes:
        flavour: a key of :data:`encyclopedia.vocabulary.FLAVOURS`, which says the values' layouts.
        kernel: the operation that runs the recurrence over a sequence, or ``None`` where a child module does or the
            forward itself.
        holder: path, from the mixer, of the module whose forward calls it; ``""`` for the mixer itself.
        locations: by value, where it is read from the mixer.
        held: by value, how the model holds it, where that is not its layout: a pattern of
            :mod:`encyclopedia.structure.held`.
        sizes: lengths of the layouts' axes by name.
        conditions: by value, on which calls alone it is there.
        later: the values that a first call has not got, because they come from an earlier one.
        withdrawn: the host's other values, with the reason why they are not served.
    """

    flavour: str
    kernel: str | None
    holder: str
    locations: Mapping[str, str]
    held: Mapping[str, str]
    sizes: Mapping[str, int]
    conditions: Mapping[str, str]
    later: tuple[str, ...]
    withdrawn: Mapping[str, str]


def recurrent_values(mixer: nn.Module) -> Recurrent:
    """The values of a recurrent mixer, derived from its forward and its attributes without running it.

    Args:
        mixer: a module that mixes positions and is no softmax attention; its parameters may be on the meta device.
    """
    call = find_kernel_call(mixer)
    found = _Found(mixer)
    if call is None:
        _without_kernel(found)
    elif call.looped:
        found.flavour = "head_scan"
        found.holder = call.holder
        found.states("batch heads head_dim state_dim", call)
    else:
        _with_kernel(found, call)
    return found.finish(call)


class _Found:
    """The values of a mixer while they are being gathered."""

    def __init__(self, mixer: nn.Module) -> None:
        self.mixer = mixer
        self.flavour = "other"
        self.holder = ""
        self.kernel: str | None = None
        self.locations = {"attention_output": "output[0]" if returns_tuple(type(mixer).forward) else "output"}
        self.held: dict[str, str] = {}
        self.conditions: dict[str, str] = {}
        self.later: list[str] = []

    @property
    def operations(self) -> tuple[str, ...]:
        return operations_of(type(self.mixer.get_submodule(self.holder)).forward)

    @property
    def inside(self) -> str:
        """The path to the operations of the holder's forward."""
        return f"{self.holder}.source." if self.holder else "source."

    def add(self, name: str, location: str, pattern: str, condition: str | None = None) -> None:
        self.locations[name] = location
        self.held[name] = pattern
        if condition is not None:
            self.conditions[name] = condition

    def states(self, pattern: str, call: KernelCall | None) -> None:
        """The states that a cache hands in and takes."""
        for get, update, position in _CACHED:
            if f"{get}_0" in self.operations:
                takes_one = call is None or any("initial" in name for name in call.parameters)
                condition = _GOES_ON if takes_one else _STEP_ONLY
                self.add("state_input", f"{self.inside}{get}_0.output", pattern,
                         condition.format(kernel=call.label if call else ""))
                self.later.append("state_input")
                condition = _NEEDS_CACHE
                if call is not None and call.step is not None and self._only_beside(call, update.split("_", 1)[1]):
                    condition += f", and {_NOT_LATER.format(step=call.step)}"
                self.add("state_output", f"{self.inside}{update}_0.inputs[{position}]", pattern, condition)

    def _only_beside(self, call: KernelCall, method: str) -> bool:
        """Whether ``method`` of the cache is called only where the kernel is, and not where its step twin is."""
        branches = [branch for branch in call.branches if not branch.loop]
        holder = self.mixer.get_submodule(self.holder)
        return any(isinstance(node.func, ast.Attribute) and node.func.attr == method
                   and list(around[: len(branches)]) == branches for node, around in calls_of(holder))

    def finish(self, call: KernelCall | None) -> Recurrent:
        table = values_of(HOST, self.flavour)
        patterns = {}
        for name, pattern in self.held.items():
            layout = table[name].layout
            if layout is not None and pattern != " ".join(layout.dims):
                patterns[name] = pattern
        words = {"mixer": type(self.mixer).__name__, "kernel": call.label if call else "its forward"}
        reasons = _WITHDRAWN.get(self.flavour, {})
        withdrawn = {}
        for name in values_of(HOST):
            if name in self.locations:
                continue
            if self.flavour == "head_scan" and name != "states":
                reason = reasons.get(name, _NO_CALL)
            elif name in reasons:
                reason = reasons[name]
            elif self.flavour in _NO_RECURRENCE:
                reason = _NO_RECURRENCE[self.flavour]
            else:
                reason = _NO_STATES if name == "states" else _NEVER_HANDED_OVER
            withdrawn[name] = reason.format(**words)
        axes = {axis for value in table.values() if value.layout is not None for axis in value.layout.dims}
        sizes = mixer_sizes(self.mixer.get_submodule(self.holder), self.mixer)
        return Recurrent(self.flavour, self.kernel, self.holder, self.locations, patterns,
                         {axis: size for axis, size in sizes.items() if axis in axes}, self.conditions,
                         tuple(self.later), withdrawn)


def _with_kernel(found: _Found, call: KernelCall) -> None:
    kernel = call.kernel
    found.flavour, found.holder = kernel.flavour, call.holder
    if call.child is None:
        found.kernel = [name for name in found.operations if re.fullmatch(rf"{call.name}_\d+", name)][-1]
        place = f"{found.inside}{found.kernel}"
    else:
        place = f"{found.holder}.{call.child}" if found.holder else call.child
    condition = None if call.step is None else _NOT_LATER.format(step=call.step)
    sizes = mixer_sizes(found.mixer.get_submodule(call.holder), found.mixer)
    grouped = sizes.get("key_heads", sizes.get("heads")) != sizes.get("heads")
    if kernel is DELTA_RULE:
        found.flavour = "grouped_delta" if grouped else "key_delta" if decays_by_key(call.function) else "delta"
    for name, (parameter, pattern) in kernel.arguments.items():
        handle = call.argument(parameter)
        if handle is not None:
            layout = values_of(HOST, found.flavour)[name].layout
            if kernel is DELTA_RULE and layout is not None:
                pattern = " ".join(layout.dims)
            found.add(name, f"{place}.{handle}", pattern, condition)
    for name, (handle, pattern) in kernel.returns.items():
        found.add(name, f"{place}.{handle}", pattern, condition)
    if kernel is LINEAR_UNIT:
        found.conditions["state_input"] = _ZERO_FIRST
        found.later.append("state_input")
    if kernel is CHUNK_SCAN:
        # What the function returns is a tuple only where the state is asked for; the reshape behind it never is.
        after = found.operations[found.operations.index(str(found.kernel)) + 1:]
        flat = next((name for name in after if re.search(r"_(?:reshape|view)_\d+$", name)), None)
        if flat is not None:
            found.add("attention_head_outputs", f"{found.inside}{flat}.output", "batch seq (heads head_dim)", condition)
    found.states({"scan": "batch channels state_dim", "ssd": "batch heads head_dim state_dim"}.get(
        found.flavour, "batch heads key_dim value_dim"), call)


def decays_by_key(kernel: Callable) -> bool:
    """Whether a delta rule's function takes a decay per head and key channel, and not one per head.

    Tried on the function itself, the one in plain PyTorch where a library's stands in for it.
    """
    plain = inspect.unwrap(kernel)
    batch, seq, heads, key_dim, value_dim = 1, 3, 2, 4, 5
    query, value = torch.zeros(batch, seq, heads, key_dim), torch.zeros(batch, seq, heads, value_dim)
    per_head = torch.zeros(batch, seq, heads)
    try:
        outputs, _ = plain(query, query, value, g=per_head, beta=per_head, chunk_size=2)
    except (RuntimeError, IndexError, ValueError):
        return True
    return outputs.shape != value.shape


def _without_kernel(found: _Found) -> None:
    """The values of a mixer that computes its recurrence, if it has one, in its own forward."""
    for holder, module in found.mixer.named_modules():
        operations = operations_of(type(module).forward)
        heads = {name: f"{name}_states_transpose_0" for name in ("query", "key", "value")}
        if "cache_get_linear_cache_0" in operations and set(heads.values()) <= set(operations):
            found.flavour, found.holder = "lightning", holder
            for name, value, width in (("query", "attention_queries", "key_dim"), ("key", "attention_keys", "key_dim"),
                                       ("value", "attention_values", "value_dim")):
                found.add(value, f"{found.inside}{heads[name]}.output", f"batch heads seq {width}")
            found.add("attention_head_outputs", f"{found.inside}attn_output_transpose_0.output",
                      "batch seq heads value_dim")
            found.states("batch heads key_dim value_dim", None)
            return
        if any(name.startswith("causal_conv1d_fn_") for name in operations):
            found.flavour, found.holder = "convolution", holder
            return


def mixer_sizes(holder: nn.Module, mixer: nn.Module) -> dict[str, int]:
    """Lengths of a mixer's axes by standard name, read off the attributes of the module that runs its recurrence."""
    found: dict[str, int] = {}
    for name, attributes in _SIZES.items():
        for module in (holder, mixer):
            sizes = [size for attribute in attributes if isinstance(size := _attribute(module, attribute), int)]
            if sizes:
                found[name] = sizes[0]
                break
    heads = found.get("heads")
    for name, whole in (("key_dim", "qk_dim"), ("value_dim", "v_dim")):
        width = getattr(mixer, whole, None)
        if name not in found and heads is not None and isinstance(width, int):
            found[name] = width // heads
    if "groups" not in found and "state_dim" in found:
        found["groups"] = 1
    return found


def _attribute(module: nn.Module, path: str) -> Any:
    found: Any = module
    for name in path.split("."):
        found = getattr(found, name, None)
    return found
