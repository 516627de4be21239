"""Recurrences: the functions that run one over a sequence, and the call of one in a mixer's forward.

A recurrence is known by its function's parameters, which several families share because they all stand in for the same
library kernels: ``chunk_gated_delta_rule`` and ``chunk_kda`` of flash-linear-attention, ``selective_scan_fn`` and
``mamba_chunk_scan_combined`` of mamba-ssm. Where its arguments come from, and whether they are passed by position or
by name, is read off the call in the mixer's forward.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nnsight.intervention.source import decorator_chain
from torch import nn


@dataclass(frozen=True)
class Kernel:
    """A recurrence, as the function that runs it over a whole sequence takes and returns it.

    Attributes:
        flavour: a key of :data:`encyclopedia.vocabulary.FLAVOURS`.
        parameters: names that its function has, and no other kernel's function has all of.
        arguments: by value, the parameter that takes it and how it is held.
        returns: by value, the location of what the function returns, from its call, and how it is held.
    """

    flavour: str
    parameters: frozenset[str]
    arguments: Mapping[str, tuple[str, str]]
    returns: Mapping[str, tuple[str, str]] = field(default_factory=dict)


DELTA_RULE = Kernel(
    "delta",
    frozenset({"query", "key", "value", "g", "beta", "chunk_size"}),
    {
        "attention_queries": ("query", "batch seq heads key_dim"),
        "attention_keys": ("key", "batch seq heads key_dim"),
        "attention_values": ("value", "batch seq heads value_dim"),
        "decays": ("g", "batch seq heads"),
        "betas": ("beta", "batch seq heads"),
    },
    {"attention_head_outputs": ("output[0]", "batch seq heads value_dim")},
)

SELECTIVE_SCAN = Kernel(
    "scan",
    frozenset({"hidden_states", "dt", "A", "B", "C", "return_last_state"}),
    {
        "attention_queries": ("C", "batch state_dim seq"),
        "attention_keys": ("B", "batch state_dim seq"),
        "attention_values": ("hidden_states", "batch channels seq"),
    },
)

CHUNK_SCAN = Kernel(
    "ssd",
    frozenset({"hidden_states", "dt", "A", "B", "C", "chunk_size"}),
    {
        "attention_queries": ("C", "batch seq groups state_dim"),
        "attention_keys": ("B", "batch seq groups state_dim"),
        "attention_values": ("hidden_states", "batch seq heads head_dim"),
    },
)

MATRIX_MEMORY = Kernel(
    "mlstm",
    frozenset({"query", "key", "value", "igate", "fgate"}),
    {
        "attention_queries": ("query", "batch heads seq key_dim"),
        "attention_keys": ("key", "batch heads seq key_dim"),
        "attention_values": ("value", "batch heads seq value_dim"),
    },
    {"attention_head_outputs": ("output[0]", "batch heads seq value_dim")},
)

WEIGHTED_AVERAGE = Kernel(
    "wkv",
    frozenset({"time_decay", "time_first", "key", "value"}),
    {
        "attention_keys": ("key", "batch seq channels"),
        "attention_values": ("value", "batch seq channels"),
    },
    {"attention_head_outputs": ("output[0]", "batch seq channels")},
)

LINEAR_UNIT = Kernel(
    "lru",
    frozenset({"hidden_states", "recurrent_gate", "reset", "recurrent_states"}),
    {
        "attention_values": ("hidden_states", "batch seq channels"),
        "decays": ("recurrent_gate", "batch seq channels"),
        "state_input": ("recurrent_states", "batch channels"),
    },
    {
        "states": ("output[0]", "batch seq channels"),
        "state_output": ("output[1]", "batch channels"),
    },
)

KERNELS = (DELTA_RULE, SELECTIVE_SCAN, CHUNK_SCAN, MATRIX_MEMORY, WEIGHTED_AVERAGE, LINEAR_UNIT)


@dataclass(frozen=True)
class Branch:
    """A branch or loop of a forward: the line of its statement, which part of it, and whether it is a loop."""

    line: int
    part: str
    loop: bool


@dataclass(frozen=True)
class KernelCall:
    """The call of a kernel in a forward.

    Attributes:
        kernel: which recurrence.
        holder: path, from the mixer, of the module whose forward makes the call.
        name: the operation, without its number: the function's name as the forward spells it.
        function: the function; a child module's forward where it is a module that is called.
        child: the child's name where it is a module.
        node: the call.
        branches: the loops and branches of the forward that it stands in, outermost first.
        step: the function that runs in its place for one token from a cache, or ``None``.
    """

    kernel: Kernel
    holder: str
    name: str
    function: Callable
    child: str | None
    node: ast.Call
    branches: tuple[Branch, ...]
    step: str | None

    @property
    def looped(self) -> bool:
        """Whether the call stands in a loop."""
        return any(branch.loop for branch in self.branches)

    @property
    def label(self) -> str:
        """What is called, for a sentence."""
        return self.child or self.name

    @property
    def parameters(self) -> tuple[str, ...]:
        """The function's parameters, without ``self``."""
        return tuple(name for name in inspect.signature(self.function).parameters if name != "self")

    def argument(self, parameter: str) -> str | None:
        """The handle that reads ``parameter`` of the call, or ``None`` where the call does not pass it."""
        if any(keyword.arg == parameter for keyword in self.node.keywords):
            return f"inputs[{parameter}]"
        position = self.parameters.index(parameter)
        return f"inputs[{position}]" if position < len(self.node.args) else None


def find_kernel_call(mixer: nn.Module) -> KernelCall | None:
    """The call in ``mixer``'s forward, or in that of a module inside it, that runs a recurrence over a sequence."""
    for holder, module in mixer.named_modules():
        for call in _calls(holder, module):
            return call
    return None


def _calls(holder: str, module: nn.Module) -> Iterator[KernelCall]:
    forward, _ = decorator_chain(type(module).forward)
    step: str | None = None
    for node, branches in calls_of(module):
        called = _called(module, forward, node)
        if called is None:
            continue
        name, function, child = called
        try:
            parameters = set(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            continue
        kernel = next((kernel for kernel in KERNELS if kernel.parameters <= parameters), None)
        if kernel is not None:
            yield KernelCall(kernel, holder, name, function, child, node, branches, step)
        elif _is_step(parameters):
            step = name


def _is_step(parameters: set[str]) -> bool:
    """Whether a function with these parameters is a kernel's twin for one token from a cache."""
    return {"query", "key", "value", "g", "beta"} <= parameters or {"state", "dt", "A", "B", "C"} <= parameters


def calls_of(module: nn.Module) -> Iterator[tuple[ast.Call, tuple[Branch, ...]]]:
    """The calls in a module's forward in the order of the source, each with the branches it stands in."""
    forward, _ = decorator_chain(type(module).forward)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(forward.__code__)))
    except (OSError, TypeError, AttributeError):
        return
    yield from _nodes_in(tree, ())


def _nodes_in(tree: ast.AST, branches: tuple[Branch, ...]) -> Iterator[tuple[ast.Call, tuple[Branch, ...]]]:
    for name, found in ast.iter_fields(tree):
        inside = branches
        if isinstance(tree, ast.If | ast.For | ast.While) and name in ("body", "orelse"):
            inside = (*branches, Branch(tree.lineno, name, not isinstance(tree, ast.If)))
        for child in found if isinstance(found, list) else [found]:
            if isinstance(child, ast.Call):
                yield child, inside
            if isinstance(child, ast.AST):
                yield from _nodes_in(child, inside)


def _called(module: nn.Module, forward: Any, node: ast.Call) -> tuple[str, Callable, str | None] | None:
    """The operation's name, the function and the child module of a call of a global, a method or a child."""
    function = node.func
    if isinstance(function, ast.Name):
        found = forward.__globals__.get(function.id)
        return None if found is None or isinstance(found, type) or not callable(found) else (function.id, found, None)
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "self":
        name = f"self_{function.attr}"
        children = dict(module.named_children())
        if function.attr in children:
            return name, type(children[function.attr]).forward, function.attr
        found = getattr(type(module), function.attr, None)
        return (name, found, None) if callable(found) else None
    return None
