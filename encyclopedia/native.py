"""Recording a forward of the native model with plain PyTorch hooks: what reads are compared with.

Nothing here goes through the standard names or nnsight, and the model recorded must not be wrapped yet.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True)
class Call:
    """One call of a module: its arguments and what it returned."""

    arguments: tuple
    keywords: dict[str, Any]
    output: Any

    @property
    def entering(self) -> Any:
        """The first argument, by position or by name."""
        return self.arguments[0] if self.arguments else next(iter(self.keywords.values()))

    @property
    def leaving(self) -> Any:
        """What was returned, the first element of a tuple."""
        return self.output[0] if isinstance(self.output, tuple) else self.output


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


@dataclass
class NativeRun:
    """A recorded forward.

    Attributes:
        input_ids: ``[batch, seq]``.
        output: what the model returned.
        calls: by module path, the calls in order.
        attention: by module path, the last call of the eager attention function.
    """

    input_ids: torch.Tensor
    output: Any = None
    calls: dict[str, list[Call]] = field(default_factory=dict)
    attention: dict[str, AttentionCall] = field(default_factory=dict)


def record(model: nn.Module, input_ids: torch.Tensor) -> NativeRun:
    """Run ``model`` on ``input_ids`` and record every module's calls and the eager attention's.

    Args:
        model: a causal model, not wrapped by anything, with eager attention.
        input_ids: ``[batch, seq]``.
    """
    run = NativeRun(input_ids)
    paths = {module: path for path, module in model.named_modules()}
    with ExitStack() as stack:
        for module, path in paths.items():
            handle = module.register_forward_hook(_keep(run, path), with_kwargs=True)
            stack.callback(handle.remove)
        stack.enter_context(_attention_recorded(model, paths, run))
        stack.enter_context(torch.no_grad())
        run.output = model(input_ids=input_ids, attention_mask=torch.ones_like(input_ids), use_cache=False)
    return run


def _keep(run: NativeRun, path: str) -> Any:
    def hook(module: nn.Module, arguments: tuple, keywords: dict, output: Any) -> None:
        run.calls.setdefault(path, []).append(Call(arguments, keywords, output))

    return hook


@contextmanager
def _attention_recorded(model: nn.Module, paths: dict[nn.Module, str], run: NativeRun) -> Iterator[None]:
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
            run.attention[paths[module]] = AttentionCall(
                query, key, value, attention_mask, keywords.get("scaling"), others, outputs, pattern)
            return outputs, pattern

        patched.append((file, original))
        vars(file)["eager_attention_forward"] = noting
    try:
        yield
    finally:
        for file, original in patched:
            vars(file)["eager_attention_forward"] = original
