"""Recording a forward of the native model with plain PyTorch hooks.

Structure is derived from such a recording, and reads are compared with one. Nothing here goes through the standard
names or nnsight, and the model recorded must not be wrapped yet.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

_SOFTMAXES = (torch.ops.aten._softmax, torch.ops.aten._safe_softmax)

#: The operations that are noted, each with the position of its first operand.
_NOTED = {torch.ops.aten.bmm: 0, torch.ops.aten.baddbmm: 1, **dict.fromkeys(_SOFTMAXES, 0)}


@dataclass(eq=False)
class Call:
    """One call of a module.

    Attributes:
        path: the module's path from the model.
        arguments: as passed, tensors copied before anything could change them.
        keywords: the same by name.
        output: what it returned, tensors copied.
        began: the call's place in the order in which calls began.
        ended: its place in the order in which they returned.
    """

    path: str
    arguments: tuple
    keywords: dict[str, Any]
    output: Any = None
    began: int = 0
    ended: int = 0

    @property
    def entering(self) -> Any:
        """The first argument, by position or by name."""
        return self.arguments[0] if self.arguments else next(iter(self.keywords.values()))

    @property
    def leaving(self) -> Any:
        """What was returned, the first element of a tuple."""
        return self.output[0] if isinstance(self.output, tuple | list) else self.output

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The tensors among the arguments, by position first."""
        return [each for each in (*self.arguments, *self.keywords.values()) if isinstance(each, torch.Tensor)]


@dataclass(frozen=True)
class AttentionCall:
    """One call of the eager attention function.

    Attributes:
        query, key, value: ``[batch, heads, seq, width]``, key and value with their own number of heads.
        mask: added to the scores, or ``None``.
        scaling: multiplies the scores.
        others: further keywords, such as a softcap or sinks.
        outputs: ``[batch, seq, heads, head_dim]``.
        pattern: ``[batch, heads, query, key]``, as returned beside the outputs.
    """

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    mask: torch.Tensor | None
    scaling: float | None
    others: dict[str, Any]
    outputs: torch.Tensor
    pattern: torch.Tensor | None


@dataclass(frozen=True)
class Product:
    """One matrix product between activations, with its operands and result as the kernel had them."""

    left: torch.Tensor
    right: torch.Tensor


@dataclass
class Arithmetic:
    """What a module's own forward did with positions, apart from its children's.

    Attributes:
        softmaxes: what entered and what left each softmax.
        before: the products ahead of the first softmax.
        after: the products behind it.
    """

    softmaxes: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    before: list[Product] = field(default_factory=list)
    after: list[Product] = field(default_factory=list)


@dataclass
class NativeRun:
    """A recorded forward.

    Attributes:
        input_ids: ``[batch, seq]``.
        output: what the model returned.
        calls: by module path, the calls in order.
        attention: by module path, the last call of the eager attention function.
        arithmetic: by module path, the softmaxes and products of the last call of a module that takes a softmax.
    """

    input_ids: torch.Tensor
    output: Any = None
    calls: dict[str, list[Call]] = field(default_factory=dict)
    attention: dict[str, AttentionCall] = field(default_factory=dict)
    arithmetic: dict[str, Arithmetic] = field(default_factory=dict)

    def under(self, path: str) -> list[Call]:
        """The calls of the modules below ``path``, in the order they began."""
        prefix = f"{path}." if path else ""
        found = [call for name, calls in self.calls.items() if name.startswith(prefix) and name != path
                 for call in calls]
        return sorted(found, key=lambda call: call.began)


def record(model: nn.Module, input_ids: torch.Tensor) -> NativeRun:
    """Run ``model`` on ``input_ids`` and record every module's calls and the eager attention's.

    Args:
        model: a causal model, not wrapped by anything, with eager attention.
        input_ids: ``[batch, seq]``.
    """
    run = NativeRun(input_ids)
    paths = {module: path for path, module in model.named_modules()}
    with ExitStack() as stack:
        running: list[Call] = []
        order = count()
        for module, path in paths.items():
            for handle in (module.register_forward_pre_hook(_begin(running, order, path), with_kwargs=True),
                           module.register_forward_hook(_end(run, running, order), always_call=False)):
                stack.callback(handle.remove)
        stack.enter_context(_attention_recorded(paths, run))
        stack.enter_context(torch.no_grad())
        stack.enter_context(_ArithmeticRecorded(run, running))
        run.output = model(input_ids=input_ids, attention_mask=torch.ones_like(input_ids), use_cache=False)
    return run


class _ArithmeticRecorded(TorchDispatchMode):
    """Notes softmaxes and batched products by the module whose forward is running."""

    def __init__(self, run: NativeRun, running: list[Call]) -> None:
        super().__init__()
        self.run, self.running = run, running

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        result = operation(*arguments, **(keywords or {}))
        packet = operation.overloadpacket
        if not self.running or packet not in _NOTED:
            return result
        path = self.running[-1].path
        if packet in _SOFTMAXES:
            self.run.arithmetic.setdefault(path, Arithmetic()).softmaxes.append((arguments[0].clone(), result.clone()))
            return result
        found = self.run.arithmetic.setdefault(path, Arithmetic())
        left, right = arguments[_NOTED[packet]: _NOTED[packet] + 2]
        (found.after if found.softmaxes else found.before).append(Product(left.clone(), right.clone()))
        return result


def _begin(running: list[Call], order: Iterator[int], path: str) -> Any:
    def hook(module: nn.Module, arguments: tuple, keywords: dict) -> None:
        running.append(Call(path, _copied(arguments), _copied(keywords), began=next(order)))

    return hook


def _end(run: NativeRun, running: list[Call], order: Iterator[int]) -> Any:
    def hook(module: nn.Module, arguments: tuple, output: Any) -> None:
        call = running.pop()
        call.output, call.ended = _copied(output), next(order)
        run.calls.setdefault(call.path, []).append(call)

    return hook


def _copied(value: Any) -> Any:
    """``value`` with its tensors copied, those directly in a tuple or a dict too."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if type(value) in (tuple, list):
        return type(value)(_copied(each) for each in value)
    if type(value) is dict:
        return {name: _copied(each) for name, each in value.items()}
    return value


@contextmanager
def _attention_recorded(paths: dict[nn.Module, str], run: NativeRun) -> Iterator[None]:
    """For a while, the eager attention functions of the model's files note what they are called with."""
    files = {type(module).__module__ for module in paths}
    patched = []
    for name in files:
        file = sys.modules[name]
        original = getattr(file, "eager_attention_forward", None)
        if original is None:
            continue

        def noting(module: nn.Module, query: Any, key: Any, value: Any, attention_mask: Any = None, *rest: Any,
                   original: Any = original, **keywords: Any) -> Any:
            outputs, pattern = original(module, query, key, value, attention_mask, *rest, **keywords)
            others = {name: kept for name, kept in keywords.items() if name != "scaling"}
            run.attention[paths.get(module, "")] = AttentionCall(
                query, key, value, attention_mask, keywords.get("scaling"), others, outputs, pattern)
            return outputs, pattern

        patched.append((file, original))
        vars(file)["eager_attention_forward"] = noting
    try:
        yield
    finally:
        for file, original in patched:
            vars(file)["eager_attention_forward"] = original
