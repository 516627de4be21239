"""What a block does with the residual stream: who reads it, what multiplies it, how many there are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from encyclopedia.capture.quirks.evidence import Evidence, TwinBlock
from encyclopedia.native import Call
from encyclopedia.structure.block import BlockRun, same
from encyclopedia.structure.parts import Kind, Sublayer
from encyclopedia.structure.stack import is_norm

#: Largest rest of a fit, in units of the target's largest entry, and smallest weight that belongs to a term.
_EXACT = 1e-4
_PRESENT = 1e-2


def parallel_sublayers(evidence: Evidence) -> bool:
    """Whether an MLP reads the block's own input, as the attention or the recurrent mixer does."""
    return any(_reads_input(block, sublayer) for block in evidence.blocks for sublayer in block.sublayers[1:]
               if sublayer.host == "mlp" and block.sublayers[0].host != "mlp" and len(block.sublayers) == 2)


def two_mixers(evidence: Evidence) -> bool:
    """Whether one block has a softmax attention and a recurrent mixer."""
    return any({"self_attn", "linear_attn"} <= {sublayer.host for sublayer in kind.sublayers
                                                if not evidence.is_declared_mixture(sublayer)}
               for kind in evidence.structure.kinds)


def single_sublayer(evidence: Evidence) -> bool:
    """Whether one contribution and the block's input are all that a block's output is the sum of."""
    return any(len(kind.sublayers) == 1 and kind.sum is not None and len(kind.sum.terms) == 1
               for kind in evidence.structure.kinds)


def gated_stream(evidence: Evidence) -> bool:
    """Whether the measured sum multiplies the stream by something that is not one in the full model."""
    return bool(evidence.family.stream_gates) or any(
        kind.sum is not None and kind.sum.stream and _multiplies(evidence, kind, kind.sum.stream)
        for kind in evidence.structure.kinds)


def scaled_contributions(evidence: Evidence) -> bool:
    """Whether the measured sum multiplies a contribution by a constant that is not one in the full model."""
    return any(term.factor is not None and _is_constant(term.factor) and _multiplies(evidence, kind, term.factor)
               for kind in evidence.structure.kinds if kind.sum is not None for term in kind.sum.terms)


def normalised_stream(evidence: Evidence) -> bool:
    """Whether what a norm returned goes on as the stream: as the block's output, or as a term of the add."""
    return any(_leaves_a_norm(block.run) or _adds_to_a_norm(block) for block in evidence.blocks)


def parallel_streams(evidence: Evidence) -> bool:
    """Whether what leaves a block has a stream-wide tensor several times over."""
    width = evidence.twin.config.hidden_size
    return any(isinstance(block.run.call.leaving, torch.Tensor) and block.run.call.leaving.ndim == 4
               and block.run.call.leaving.shape[-1] == width for block in evidence.blocks)


def looped_blocks(evidence: Evidence) -> bool:
    """Whether a forward calls a block more than once."""
    return any(len(evidence.run.calls[block.run.path]) > 1 for block in evidence.blocks)


def uncalled_modules(evidence: Evidence) -> bool:
    """Whether a block has a child with weight matrices that a forward on token ids does not call."""
    return any(not _is_called(block.run, name, child) for block in evidence.blocks
               for name, child in block.run.block.named_children())


def _is_called(run: BlockRun, name: str, child: nn.Module) -> bool:
    matrices = any(parameter.ndim > 1 for parameter in child.parameters())
    return not matrices or any(run.relative(call) == name or run.relative(call).startswith(f"{name}.")
                               for call in run.calls)


def _reads_input(block: TwinBlock, sublayer: Sublayer) -> bool:
    entry = sublayer.norm or sublayer.first
    call = next((call for call in reversed(block.run.calls) if block.run.relative(call) == entry), None)
    return call is not None and same(block.run.entering(call), block.run.stream)


def _is_constant(factor: str) -> bool:
    return all(name.startswith(("config.", "layers[i].")) for name in factor.split(" * "))


def _multiplies(evidence: Evidence, kind: Kind, factor: str) -> bool:
    """Whether a factor is more than ones in the full model; a parameter always is."""
    values = [_value(evidence, kind, name) for name in re.split(r" \* ", factor)]
    return any(value is None or value != 1 for value in values)


def _value(evidence: Evidence, kind: Kind, name: str) -> Any:
    for prefix, holder in (("layers[i].", kind.block), ("config.", evidence.model.config)):
        if name.startswith(prefix):
            return getattr(holder, name.removeprefix(prefix), None)
    return None


def _leaves_a_norm(run: BlockRun) -> bool:
    leaving = run.call.leaving[0] if isinstance(run.call.leaving, list) else run.call.leaving
    output = run.as_stream(leaving)
    return any(is_norm(run.module(call)) and same(run.leaving(call), output) for call in run.calls)


def _adds_to_a_norm(block: TwinBlock) -> bool:
    run = block.run
    if len(block.sublayers) != 2 or run.stream is None:
        return False
    first, second = block.sublayers
    added, norm = block.call_of(first), _call(run, first.norm)
    target = _call(run, second.norm or second.first)
    if added is None or norm is None or target is None or run.entering(target) is None:
        return False
    entries = [run.stream, run.leaving(norm), run.leaving(added)]
    if any(entry is None for entry in entries):
        return False
    weights, rest = _fitted(entries, run.entering(target))
    return rest <= _EXACT and abs(weights[0]) < _PRESENT < min(abs(weights[1]), abs(weights[2]))


def _call(run: BlockRun, name: str | None) -> Call | None:
    return next((call for call in reversed(run.calls) if run.relative(call) == name), None)


def _fitted(entries: list[Any], target: Any) -> tuple[list[float], float]:
    """The number that multiplies each entry in the best sum, and that sum's largest error."""
    columns = torch.stack([entry.double().flatten() for entry in entries], dim=-1)
    aim = target.double().flatten()
    solution = torch.linalg.lstsq(columns, aim[:, None]).solution[:, 0]
    return solution.tolist(), float((columns @ solution - aim).abs().max() / aim.abs().max())


def post_norms(evidence: Evidence) -> bool:
    """Whether a sublayer reads the stream without a norm in front and has one behind it."""
    return any(_is_normed(block, sublayer) and sublayer.norm is None for block, sublayer in _sublayers(evidence))


def sandwich_norms(evidence: Evidence) -> bool:
    """Whether a sublayer has a norm in front of it and one behind it."""
    return any(_is_normed(block, sublayer) and sublayer.norm is not None for block, sublayer in _sublayers(evidence))


def _sublayers(evidence: Evidence) -> Iterator[tuple[TwinBlock, Sublayer]]:
    return ((block, sublayer) for block in evidence.blocks for sublayer in block.sublayers)


def _is_normed(block: TwinBlock, sublayer: Sublayer) -> bool:
    """Whether a norm stands behind a sublayer: in the measured sum, or where there is none, on what it returned."""
    if block.kind.sum is not None:
        return sublayer.post_norm is not None and is_norm(block.run.block.get_submodule(sublayer.post_norm))
    call = block.call_of(sublayer)
    return call is not None and block.run.leaving(call) is not None and any(
        is_norm(block.run.module(child)) and same(block.run.entering(child), block.run.leaving(call))
        for child in block.run.children)


DETECTORS: Mapping[str, Callable[[Evidence], bool]] = {
    "parallel-sublayers": parallel_sublayers,
    "two-mixers": two_mixers,
    "single-sublayer": single_sublayer,
    "gated-stream": gated_stream,
    "scaled-contributions": scaled_contributions,
    "normalised-stream": normalised_stream,
    "parallel-streams": parallel_streams,
    "looped-blocks": looped_blocks,
    "uncalled-modules": uncalled_modules,
    "post-norms": post_norms,
    "sandwich-norms": sandwich_norms,
}
