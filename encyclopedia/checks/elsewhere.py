"""Names elsewhere: the hook a page shows is run, and nnsight's expression read, on a model without standard names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from nnsight.modeling.transformers import TransformersModel
from torch import nn

from encyclopedia.checks.claims import TOLERANCE, BrokenClaim, Ledger, describe, difference, said
from encyclopedia.hooks import CALL, filled, hook_snippet, nnsight_expression
from encyclopedia.model.places import Placed, ways_held
from encyclopedia.model.readings import Reading
from encyclopedia.model.transformer import Untokenized
from encyclopedia.structure.held import to_layout

#: What a claim of this sort is called.
SORT = "elsewhere"

_HOOK = "a plain PyTorch hook reads it on {module}"
_NNSIGHT = "nnsight without standard names reads it as {expression}"


class Plain(TransformersModel):
    """nnsight's model of a loaded transformers module, without standard names and without a tokenizer."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__(module, task="text-generation")

    def _wrap(self, module: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
        self.pipeline = Untokenized(module)
        return module


def check_elsewhere(
    plain: nn.Module, placed: Sequence[Placed], input_ids: torch.Tensor, ledger: Ledger, *, lenient: bool
) -> list[Placed]:
    """Run every hook and read every expression of ``placed`` on ``plain``, and compare with what was read by name.

    Args:
        plain: the model that the values were read on, or a copy; nothing has wrapped it.
        placed: values read on ``input_ids`` and where the native model has them.
        input_ids: ``[batch, seq]``.
        ledger: where claims that held are noted.
        lenient: a name that does not hold is left out, with the reason.

    Returns:
        ``placed`` with what the run told: how nnsight's tensors are held, and which names were left out.

    Raises:
        BrokenClaim: for the first name that does not hold, unless ``lenient``.
    """
    caught = run_hooks(plain, placed, input_ids)
    read = read_plain(plain, placed, input_ids)
    return [_settled(found, caught.get(position), read[position], ledger, lenient)
            for position, found in enumerate(placed)]


def run_hooks(plain: nn.Module, placed: Sequence[Placed], input_ids: torch.Tensor) -> dict[int, Any]:
    """By position in ``placed``: what the value's hook caught in a forward with all of them, or the error it made."""
    hooked = [position for position, found in enumerate(placed) if found.place.hook is not None]
    try:
        return _run_together(plain, placed, hooked, input_ids)
    except Exception:
        return {position: _or_error(lambda here: _run_together(plain, placed, [here], input_ids)[here], position)
                for position in hooked}


def read_plain(plain: nn.Module, placed: Sequence[Placed], input_ids: torch.Tensor) -> dict[int, Any]:
    """By position in ``placed``: what nnsight reads there in one trace without standard names, or the error it made."""
    model = Plain(plain)
    expressions: dict[int, Any] = {}
    found: dict[int, Any] = {}
    for position, here in enumerate(placed):
        text = filled(nnsight_expression(here.place.module, here.place.location), here.reading.layer or 0, {})
        try:
            if ".source" in text:
                # An operation is served only where the forward was instrumented before the call.
                eval(text.partition(".source")[0] + ".source", {"model": model})
            expressions[position] = compile(text, text, "eval")
        except Exception as error:
            found[position] = error
    try:
        return found | _traced(model, expressions, input_ids)
    except Exception:
        return found | {position: _or_error(lambda at: _traced(model, {at: expressions[at]}, input_ids)[at], position)
                        for position in expressions}


def _run_together(
    plain: nn.Module, placed: Sequence[Placed], chosen: Sequence[int], input_ids: torch.Tensor
) -> dict[int, Any]:
    called = {"model": plain, "input_ids": input_ids, "attention_mask": torch.ones_like(input_ids)}
    running: dict[int, tuple[dict[str, Any], str]] = {}
    try:
        for position in chosen:
            reading, hook = placed[position].reading, placed[position].place.hook
            assert hook is not None
            dims = reading.layout.dims if reading.layout is not None else ()
            sizes = dict(zip(dims, reading.result.shape, strict=True))
            snippet, names = hook_snippet(reading.name, hook, dims), dict(called)
            exec(filled(snippet.register, reading.layer or 0, sizes), names)
            running[position] = names, snippet.remove
        with torch.no_grad():
            exec(CALL, called)
    finally:
        for names, remove in running.values():
            exec(remove, names)
    return {position: names["caught"].get(placed[position].reading.name)
            for position, (names, _) in running.items()}


def _traced(model: Plain, expressions: Mapping[int, Any], input_ids: torch.Tensor) -> dict[int, Any]:
    found: dict[int, Any] = {}
    with torch.no_grad(), model.trace() as tracer:
        with tracer.invoke(input_ids=input_ids, attention_mask=torch.ones_like(input_ids)):
            pass
        for position, expression in expressions.items():
            with tracer.invoke():
                tensor = eval(expression, {"model": model})
                found[position] = tensor.clone() if isinstance(tensor, torch.Tensor) else tensor
    return found


def _or_error(run: Callable[[int], Any], position: int) -> Any:
    try:
        return run(position)
    except Exception as error:
        return error


def _settled(found: Placed, caught: Any, read: Any, ledger: Ledger, lenient: bool) -> Placed:
    reading, place = found.reading, found.place
    if place.hook is not None:
        claim = _HOOK.format(module=place.hook.module)
        reason = _compared(reading, claim, caught, ledger, lenient)
        if reason is not None:
            place = place.model_copy(update={"hook": None, "no_hook": reason})
    held = place.held
    if isinstance(read, torch.Tensor):
        fitting = ways_held(read, reading, held)
        held = held if held in fitting else next(iter(fitting), held)
    claim = _NNSIGHT.format(expression=nnsight_expression(place.module, place.location))
    reason = _compared(reading, claim, _in_layout(read, held, reading), ledger, lenient)
    return replace(found, place=place.model_copy(update={"held": held, "no_nnsight": reason}))


def _in_layout(read: Any, held: str | None, reading: Reading) -> Any:
    if held is None or not isinstance(read, torch.Tensor) or reading.layout is None:
        return read
    sizes = dict(zip(reading.layout.dims, reading.result.shape, strict=True))
    try:
        return to_layout(read, held, reading.layout.dims, sizes)
    except (ValueError, RuntimeError):
        return read


def _compared(reading: Reading, claim: str, found: Any, ledger: Ledger, lenient: bool) -> str | None:
    """Notes that ``found`` is the reading's tensor; else says why it is not, where that is no error."""
    if isinstance(found, torch.Tensor):
        error = difference(reading.result, found)
        if error <= TOLERANCE:
            ledger.held(SORT, reading.host, reading.name, claim, error)
            return None
        shown = f"{describe(found)}, off by {error:.2g}"
    else:
        shown = said(found) if isinstance(found, Exception) else f"a {type(found).__name__}"
    broken = BrokenClaim(SORT, f"{reading.host}.{reading.name}", reading.layer, claim, shown)
    if not lenient:
        raise broken
    return f"no run confirmed that {claim}: found {shown}"


