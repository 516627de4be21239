"""Which keys a query sees, measured by how far a score lies below the largest of its row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch

from encyclopedia.capture.quirks.evidence import Evidence

#: How far below the largest score a masked one lies at least.
_MASKED = 5000.0

#: A row of a pattern that sums to less than one by more than this gave attention to no position.
_MISSING = 1e-3


def sliding_window(evidence: Evidence) -> bool:
    """Whether an attention's queries see one unbroken run of keys up to themselves, whose start moves on with them."""
    return any(steps and set(steps) == {1} for steps in _starts(evidence))


def chunked_window(evidence: Evidence) -> bool:
    """Whether that run's start stays where it is for several queries and then jumps to the query itself."""
    return any(steps and 0 in steps and max(steps) > 1 for steps in _starts(evidence))


def sparse_attention(evidence: Evidence) -> bool:
    """Whether which keys a query sees differs from prompt to prompt."""
    return any(not torch.equal(seen, seen[:1].expand_as(seen)) for seen in _seen(evidence))


def sees_later_positions(evidence: Evidence) -> bool:
    """Whether a query sees a key behind it."""
    return any(bool(seen.triu(1).any()) for seen in _seen(evidence))


def attention_sinks(evidence: Evidence) -> bool:
    """Whether the shares of attention that a query gives to positions sum to less than one."""
    for attention in evidence.attentions:
        probe = attention.as_recorded
        if probe is None:
            continue
        given = probe.pattern[..., : probe.keys.shape[2]].sum(-1)
        pattern = None if attention.interface is None else attention.interface.pattern
        if (given < 1 - _MISSING).any() or (pattern is not None and (pattern.sum(-1) < 1 - _MISSING).any()):
            return True
    return False


def _seen(evidence: Evidence) -> Iterator[torch.Tensor]:
    """``[batch, heads, seq, seq]`` of each attention."""
    seq = evidence.run.input_ids.shape[1]
    for attention in evidence.attentions:
        probe = attention.as_recorded
        if probe is not None and probe.scores.shape[-1] >= seq:
            scores = probe.scores[..., :seq]
            yield scores > scores.amax(dim=-1, keepdim=True) - _MASKED


def _starts(evidence: Evidence) -> Iterator[list[int]]:
    """By how much the first key moves from query to query, once it has moved; empty where it never does."""
    for seen in _seen(evidence):
        if seen.triu(1).any() or not torch.equal(seen, seen[:1, :1].expand_as(seen)):
            continue
        first = seen[0, 0].int().argmax(dim=-1)
        unbroken = seen[0, 0].sum(dim=-1) == torch.arange(len(first)) - first + 1
        if unbroken.all():
            yield first[int((first > 0).int().argmax()):].diff().tolist() if first.any() else []


DETECTORS: Mapping[str, Callable[[Evidence], bool]] = {
    "sliding-window": sliding_window,
    "chunked-window": chunked_window,
    "sparse-attention": sparse_attention,
    "bidirectional": sees_later_positions,
    "attention-sinks": attention_sinks,
}
