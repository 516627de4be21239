"""What the norms of the stream compute, measured by calling them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from encyclopedia.capture.quirks.evidence import Evidence
from encyclopedia.structure.stack import is_norm

#: Tokens that a norm is called on, and how exactly it has to answer as expected.
_TOKENS = 16
_CLOSE = 1e-3


def layer_norm(evidence: Evidence) -> bool:
    """Whether a norm of the stream returns the same when a constant is added to every channel of what enters it."""
    for norm, width in _stream_norms(evidence):
        tokens = _tokens(width)
        plain, moved = _answer(norm, tokens), _answer(norm, tokens + 3)
        if plain is not None and moved is not None and (plain - moved).abs().max() <= _CLOSE * plain.abs().max():
            return True
    return False


def plus_one_gain(evidence: Evidence) -> bool:
    """Whether a norm of the stream multiplies what it normalised by one more than its weight."""
    return any((gain := _gain(norm, width)) is not None and _near(gain, norm.weight + 1)
               and not _near(gain, norm.weight) for norm, width in _stream_norms(evidence))


def weightless_norms(evidence: Evidence) -> bool:
    """Whether a norm around a sublayer has no parameters."""
    return any(not list(norm.parameters()) for norm, _ in _sublayer_norms(evidence))


def _stream_norms(evidence: Evidence) -> Iterator[tuple[Any, int]]:
    """The norms around the sublayers and behind the last block, with the width of what they normalise."""
    yield from _sublayer_norms(evidence)
    last = evidence.structure.stack.norm
    if last is not None:
        yield from _if_norm(evidence.twin.get_submodule(last), evidence.twin.config.hidden_size)


def _sublayer_norms(evidence: Evidence) -> Iterator[tuple[Any, int]]:
    width = evidence.twin.config.hidden_size
    for block in evidence.blocks:
        for sublayer in block.sublayers:
            for name in (sublayer.norm, sublayer.post_norm):
                if name is not None:
                    yield from _if_norm(block.run.block.get_submodule(name), width)


def _if_norm(module: nn.Module, width: int) -> Iterator[tuple[nn.Module, int]]:
    if is_norm(module):
        yield module, width


def _tokens(width: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(_TOKENS, 1, width, generator=generator)


def _answer(norm: nn.Module, tokens: torch.Tensor) -> torch.Tensor | None:
    """What ``norm`` returns; ``None`` for one that wants more than a tensor, or another width."""
    try:
        with torch.no_grad():
            answer = norm(tokens)
    except Exception:
        return None
    return answer if isinstance(answer, torch.Tensor) and answer.shape == tokens.shape else None


def _gain(norm: Any, width: int) -> torch.Tensor | None:
    """What ``norm`` multiplies each channel by, where that is the same for every token."""
    tokens = _tokens(width)
    tokens = tokens - tokens.mean(-1, keepdim=True)
    answer = _answer(norm, tokens)
    if answer is None or not isinstance(getattr(norm, "weight", None), torch.Tensor) or norm.weight.shape != (width,):
        return None
    if isinstance(getattr(norm, "bias", None), torch.Tensor):
        answer = answer - norm.bias
    gains = answer / (tokens * tokens.square().mean(-1, keepdim=True).rsqrt())
    return gains.mean(dim=(0, 1)) if (gains - gains[:1]).abs().max() <= _CLOSE * gains.abs().max() else None


def _near(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool((one - other).abs().max() <= _CLOSE * other.abs().max())


DETECTORS: Mapping[str, Callable[[Evidence], bool]] = {
    "layer-norm": layer_norm,
    "plus-one-gain": plus_one_gain,
    "weightless-norms": weightless_norms,
}
