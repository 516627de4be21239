"""The sublayers of a block, from a recorded forward: what stands where, and which norms stand around it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import nn
from transformers.activations import ACT2CLS

from encyclopedia.native import Call, NativeRun
from encyclopedia.structure.block import BlockRun, same
from encyclopedia.structure.mixing import mixing_of
from encyclopedia.structure.mixture import find_mixture
from encyclopedia.structure.parts import Sublayer, Sum, Term
from encyclopedia.structure.recurrent import recurrent_values
from encyclopedia.structure.stack import is_norm

_ACTIVATIONS = tuple({each if isinstance(each, type) else each[0] for each in ACT2CLS.values()})


@dataclass(frozen=True)
class _Mover:
    """A module of the block that takes the stream and returns something of its width; loose layers count as one."""

    host: str
    first: Call
    last: Call


def find_sublayers(run: BlockRun, recording: NativeRun, found: Sum | None) -> tuple[tuple[Sublayer, ...], Sum | None]:
    """The sublayers of a block in forward order, and the sum with each term's host.

    Args:
        run: the block's part of a recorded forward.
        recording: the whole forward.
        found: what the block's output is the sum of, or ``None``.

    Returns:
        The sublayers that have a standard host, one of each at most, and the sum.
    """
    movers = _with_hosts(_movers(run), run)
    owners = {} if found is None else {term.path: _owner(run, term, movers) for term in found.terms}
    served: dict[str, _Mover] = {}

    def by_rank(mover: _Mover) -> tuple[bool, bool, int]:
        return run.relative(mover.last) != mover.host, mover not in owners.values(), -_weight(run, mover)

    for mover in sorted(movers, key=by_rank):
        served.setdefault(mover.host, mover)
    for path, owner in owners.items():
        # What two movers of one host make together is the served one's contribution.
        if owner is not None and owner not in served.values() and served[owner.host] not in owners.values():
            owners[path] = served[owner.host]
    sublayers = []
    for mover in sorted(served.values(), key=lambda mover: mover.first.began):
        term = next((term for term in found.terms if owners[term.path] is mover), None) if found is not None else None
        sublayers.append(_sublayer(run, recording, mover, term))
    if found is not None:
        hosts = {owners[term.path]: term for term in reversed(found.terms)}
        found = replace(found, terms=tuple(
            replace(term, host=owner.host) if (owner := owners[term.path]) is not None
            and owner in served.values() and hosts[owner] is term else term for term in found.terms))
    return tuple(sublayers), found


def _with_hosts(movers: list[_Mover], run: BlockRun) -> list[_Mover]:
    """The movers, where one that mixes positions by no known recurrence beside a mixer proper stands as the MLP."""
    def is_known(mover: _Mover) -> bool:
        return mover.host == "self_attn" or (
            mover.host == "linear_attn" and recurrent_values(run.module(mover.last)).flavour != "other")

    known = [is_known(mover) for mover in movers]
    if not any(known):
        return movers
    return [replace(mover, host="mlp") if mover.host == "linear_attn" and not sure else mover
            for mover, sure in zip(movers, known, strict=True)]


def _movers(run: BlockRun) -> list[_Mover]:
    found = []
    opened: Call | None = None
    for call in _last_calls(run):
        module = run.module(call)
        if is_norm(module) or not any(parameter.ndim > 1 for parameter in module.parameters()):
            continue
        entering, leaving = run.entering(call), run.leaving(call)
        if entering is not None and leaving is None and _is_layer(module):
            opened = opened or call
        elif entering is None and leaving is not None and _is_layer(module) and opened is not None:
            found.append(_Mover("mlp", opened, call))
            opened = None
        elif found and same(entering, run.leaving(found[-1].last)):
            # What works on another sublayer's output alone stands behind it.
            continue
        elif entering is not None and leaving is not None and not _is_layer(module):
            found.append(_Mover(_host_of(run, call), call, call))
    return found


def _last_calls(run: BlockRun) -> list[Call]:
    return list({call.path: call for call in run.children}.values())


def _is_layer(module: nn.Module) -> bool:
    """Whether ``module`` is one plain linear layer."""
    weight = getattr(module, "weight", None)
    return not list(module.children()) and isinstance(weight, torch.Tensor) and weight.ndim == 2


def _host_of(run: BlockRun, call: Call) -> str:
    mixing = mixing_of(run, call)
    if not mixing.mixes:
        return "mlp"
    return "self_attn" if mixing.softmax else "linear_attn"


def _weight(run: BlockRun, mover: _Mover) -> int:
    """How many parameters a mover has."""
    return sum(parameter.numel() for parameter in run.module(mover.last).parameters())


def _owner(run: BlockRun, term: Term, movers: list[_Mover]) -> _Mover | None:
    """The mover whose contribution ``term`` is: the one that holds it, or the last in front of a norm that does."""
    top = term.path.split(".")[0]
    holding = [mover for mover in movers if run.relative(mover.last).split(".")[0] == top]
    if holding:
        return holding[0]
    call = next(call for call in run.calls if run.relative(call) == term.path)
    before = [mover for mover in movers if mover.last.ended < call.began]
    behind = bool(before) and (is_norm(run.module(call)) or same(run.entering(call), run.leaving(before[-1].last)))
    return before[-1] if behind else None


def _sublayer(run: BlockRun, recording: NativeRun, mover: _Mover, term: Term | None) -> Sublayer:
    name, first = run.relative(mover.last), run.relative(mover.first)
    module = run.module(mover.last)
    norm = run.norm_before(mover.first)
    contribution, post_norm, inner = run.output_location(mover.last), None, None
    if term is not None and term.path != name:
        if term.path.startswith(f"{name}."):
            inner = term.path.removeprefix(f"{name}.")
            contribution = f"{inner}.{term.location}"
        else:
            contribution = f"../{term.path}.{term.location}"
            post_norm = term.path
    return Sublayer(
        host=mover.host,
        name=name,
        first=first,
        module=module,
        norm=None if norm is None else run.relative(norm),
        post_norm=post_norm,
        contribution=contribution,
        projection="" if name != first else inner or _projection(run, mover.last),
        interior=_interior(recording, mover.last),
        activation=_activation(run, mover),
        mixture=find_mixture(module),
    )


def _projection(run: BlockRun, call: Call) -> str | None:
    """The linear layer, in the module that was called, that wrote what the module returned."""
    leaving = run.leaving(call)
    for inner in reversed(run.calls):
        if inner.path.startswith(f"{call.path}.") and same(run.leaving(inner), leaving):
            module = run.module(inner)
            if not list(module.children()) and any(parameter.ndim > 1 for parameter in module.parameters()):
                return inner.path.removeprefix(f"{call.path}.")
    return None


def _interior(recording: NativeRun, call: Call) -> str:
    inside = [path for path in recording.attention if path.startswith(f"{call.path}.")]
    return inside[0].removeprefix(f"{call.path}.") if inside else ""


def _activation(run: BlockRun, mover: _Mover) -> str | None:
    """Where the activation's output is read from the mover's host: the one activation called in it, if there is one."""
    loose = mover.first is not mover.last
    calls = []
    for call in run.calls:
        within = call.path.startswith(f"{mover.last.path}.")
        between = mover.first.ended < call.began and call.ended < mover.last.began and "." not in run.relative(call)
        if between if loose else within:
            calls.append(call)
    known = [call for call in calls if isinstance(run.module(call), _ACTIVATIONS)]
    found = [(f"../{run.relative(call)}" if loose else call.path.removeprefix(f"{mover.last.path}."), call)
             for call in known or [call for call in calls if _acts(run.module(call), call)]]
    places = {place for place, _ in found}
    if len(found) != 1 or len(places) != 1:
        return None
    output = found[0][1].output
    return f"{found[0][0]}.output" if isinstance(output, torch.Tensor) else None


def _acts(module: nn.Module, call: Call) -> bool:
    """Whether a module of another class does as an activation: no parts, no parameters, same shape, a change."""
    if any(True for _ in module.children()) or any(True for _ in module.parameters()):
        return False
    given, left = call.entering, call.output
    return (isinstance(given, torch.Tensor) and isinstance(left, torch.Tensor) and given.shape == left.shape
            and not same(given, left))
