"""Mixers other than softmax attention: which blocks have one, and what recurrence it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import nn

from encyclopedia.capture.quirks.evidence import Evidence

#: Flavours of the kernels by quirk.
_DELTA_RULES = ("delta", "grouped_delta", "key_delta")
_STATE_SPACES = ("scan", "head_scan", "ssd")


def hybrid(evidence: Evidence) -> bool:
    """Whether some blocks have a softmax attention and others mix positions without one."""
    return bool(_attending(evidence)) and any(_mixer(evidence, index) is not None and index not in _attending(evidence)
                                              for index in range(len(evidence.blocks)))


def attention_free(evidence: Evidence) -> bool:
    """Whether blocks mix positions and none by a softmax attention."""
    return not _attending(evidence) and any(_mixer(evidence, index) is not None
                                            for index in range(len(evidence.blocks)))


def delta_rule(evidence: Evidence) -> bool:
    """Whether a mixer's forward calls a kernel of the delta rule."""
    return not evidence.flavours.isdisjoint(_DELTA_RULES)


def state_space(evidence: Evidence) -> bool:
    """Whether a mixer's forward calls a kernel of a state-space scan."""
    return not evidence.flavours.isdisjoint(_STATE_SPACES)


def short_convolution(evidence: Evidence) -> bool:
    """Whether a block of the full model has a one-dimensional convolution longer than one position."""
    return any(isinstance(module, nn.Conv1d) and module.kernel_size[0] > 1
               for kind in evidence.structure.kinds for module in kind.block.modules())


def _attending(evidence: Evidence) -> set[int]:
    """The kinds with a softmax attention."""
    return {evidence.blocks.index(attention.block) for attention in evidence.attentions}


def _mixer(evidence: Evidence, index: int) -> nn.Module | None:
    sublayer = evidence.blocks[index].kind.sublayer("linear_attn")
    return None if sublayer is None else sublayer.module


DETECTORS: Mapping[str, Callable[[Evidence], bool]] = {
    "hybrid": hybrid,
    "attention-free": attention_free,
    "delta-rule": delta_rule,
    "state-space": state_space,
    "short-convolution": short_convolution,
}
