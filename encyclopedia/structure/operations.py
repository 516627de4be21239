"""What a forward calls, by nnsight's operation names, without running it."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable

import torch
from nnsight.intervention.source import SourceNotAvailable, compiled, decorator_chain


def operations_of(function: Callable) -> tuple[str, ...]:
    """nnsight's names of the operations in ``function``, in execution order; empty where it has no Python source."""
    try:
        return compiled(decorator_chain(function)[0]).names
    except SourceNotAvailable:
        return ()


def calls_interface(operation: str, interface: str) -> bool:
    """Whether ``operation`` is a call (or binding) of the local name ``interface``."""
    return re.fullmatch(rf"{interface}_\d+", operation) is not None


def undecorated(experts_class: type[torch.nn.Module]) -> Callable:
    """The experts' own forward under transformers' dispatching wrapper."""
    return getattr(experts_class.forward, "__wrapped__", experts_class.forward)


def returns_tuple(function: Callable) -> bool:
    """Whether every ``return`` of ``function`` spells a tuple.

    Args:
        function: a Python function, possibly decorated; decorators that call it are looked through.
    """
    function, _ = decorator_chain(function)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function.__code__)))
    definition = tree.body[0]
    returns = [node.value for node in ast.walk(definition) if isinstance(node, ast.Return)]
    return bool(returns) and all(isinstance(value, ast.Tuple) for value in returns)


def only_without(function: Callable, operation: str) -> str | None:
    """The attention implementation under which ``function`` passes ``operation`` over, ``None`` where under none.

    A forward that does its own arithmetic may ask which implementation the load runs; ``operation`` then stands in the
    branch for the others.
    """
    known = compiled(decorator_chain(function)[0])
    line = known.lines.get(operation)
    for node in ast.walk(ast.parse(known.source)):
        if not isinstance(node, ast.If) or line is None or "_attn_implementation" not in ast.unparse(node.test):
            continue
        passed = [each.value for each in ast.walk(node.test)
                  if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        if node.orelse and node.orelse[0].lineno <= line <= (node.orelse[-1].end_lineno or line):
            return next(iter(passed), None)
    return None
