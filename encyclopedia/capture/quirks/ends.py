"""The stream's two ends: what is made of the embeddings before the first block, and of the logits after the head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from encyclopedia.capture.quirks.evidence import Evidence
from encyclopedia.native import Call
from encyclopedia.structure.block import same
from encyclopedia.structure.stack import is_norm

#: How far a factor strays from one, or a fit from its target, before it counts.
_OFF = 1e-3


@dataclass(frozen=True)
class _Beginning:
    """How the first block's input is made.

    Attributes:
        factor: what multiplies the token's row of the embedding table.
        positions: whether a vector per position is added to it.
        normed: whether a norm stands behind.
    """

    factor: float
    positions: bool
    normed: bool


def embedding_scale(evidence: Evidence) -> bool:
    """Whether differences between the first block's inputs are a multiple of those between rows of the table."""
    beginning = _beginning(evidence)
    return beginning is not None and abs(beginning.factor - 1) > _OFF and not evidence.is_moved(beginning.factor)


def position_embeddings(evidence: Evidence) -> bool:
    """Whether the first block's input less the tokens' rows is something else than zero, alike in every prompt."""
    beginning = _beginning(evidence)
    return beginning is not None and beginning.positions


def embedding_norm(evidence: Evidence) -> bool:
    """Whether a norm outside the blocks returned what enters the first one."""
    return _norm_in_front(evidence) is not None


def logit_scale(evidence: Evidence) -> bool:
    """Whether the logits are a multiple of the head's output, or the head's input one of the final norm's output."""
    run, stack = evidence.run, evidence.structure.stack
    head = run.calls.get(stack.lm_head, [])
    if not head:
        return False
    pairs = [(head[-1].leaving, run.output.logits)]
    if stack.norm in run.calls:
        pairs.append((run.calls[stack.norm][-1].leaving, head[-1].entering))
    return any((factor := _factor(one, other)) is not None and abs(factor - 1) > _OFF and not evidence.is_moved(factor)
               for one, other in pairs)


def logit_softcap(evidence: Evidence) -> bool:
    """Whether the logits rise with the head's output, have its sign, and fall ever further behind it."""
    head = evidence.run.calls.get(evidence.structure.stack.lm_head, [])
    if not head or head[-1].leaving.shape != evidence.run.output.logits.shape:
        return False
    plain, logits = head[-1].leaving.double().flatten(), evidence.run.output.logits.double().flatten()
    order = plain.abs().argsort()
    ratio = (logits / plain)[order]
    large = ratio[len(ratio) // 2:]
    return bool((large > 0).all()) and bool((large.diff() <= _OFF * large[1:]).all()) \
        and bool(large[-1] < large[0] * (1 - _OFF / 10))


def per_layer_embeddings(evidence: Evidence) -> bool:
    """Whether the token ids enter a second embedding table."""
    ids = evidence.run.input_ids
    return any(_looks_up(call, ids) for path, calls in evidence.run.calls.items() for call in calls
               if isinstance(evidence.twin.get_submodule(path), nn.Embedding) and path != evidence.stack.embed_tokens)


def _looks_up(call: Call, ids: torch.Tensor) -> bool:
    """Whether a table was called on the token ids and answered otherwise for other tokens."""
    return any(tensor.shape == ids.shape and torch.equal(tensor, ids) for tensor in call.tensors) \
        and call.leaving.shape[0] == len(ids) and not torch.equal(call.leaving[0], call.leaving[1])


def _beginning(evidence: Evidence) -> _Beginning | None:
    stream, norm = evidence.first_stream, _norm_in_front(evidence)
    if norm is not None:
        stream = norm
    table = getattr(evidence.twin.get_submodule(evidence.stack.embed_tokens), "weight", None)
    if stream is None or table is None or table.shape[-1] != stream.shape[-1]:
        return None
    rows = table.detach()[evidence.run.input_ids].double()
    differences, wanted = rows - rows[:1], stream.double() - stream[:1].double()
    factor = float((differences * wanted).sum() / differences.square().sum())
    if (factor * differences - wanted).abs().max() > _OFF * wanted.abs().max():
        return None
    rest = stream.double() - factor * rows
    return _Beginning(factor, bool(rest.abs().max() > _OFF * stream.abs().max()), norm is not None)


def _norm_in_front(evidence: Evidence) -> torch.Tensor | None:
    """What entered the norm in front of the first block, ``[batch, seq, hidden_size]``."""
    stream = evidence.first_stream
    for path, calls in evidence.run.calls.items():
        if path.startswith(f"{evidence.stack.layers}.") or not is_norm(evidence.twin.get_submodule(path)):
            continue
        for call in calls:
            if isinstance(call.leaving, torch.Tensor) and same(call.leaving, stream):
                return call.entering
    return None


def _factor(one: torch.Tensor, other: torch.Tensor) -> float | None:
    """What ``one`` is multiplied by to give ``other``; ``None`` where it is no multiple."""
    if one.shape != other.shape:
        return None
    one, other = one.double(), other.double()
    factor = float((one * other).sum() / one.square().sum())
    return factor if (factor * one - other).abs().max() <= _OFF / 10 * other.abs().max() else None


DETECTORS: Mapping[str, Callable[[Evidence], bool]] = {
    "embedding-scale": embedding_scale,
    "position-embeddings": position_embeddings,
    "embedding-norm": embedding_norm,
    "per-layer-embeddings": per_layer_embeddings,
    "logit-scale": logit_scale,
    "logit-softcap": logit_softcap,
}
