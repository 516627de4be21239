"""How an attention tells positions apart, measured on equal tokens: there, only a position can make a difference."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from encyclopedia.capture.quirks.evidence import Attention, Evidence
from encyclopedia.structure.stack import blocks_of

#: The first positions, on which a short convolution in front of the product may still see the sequence's beginning.
_BEGINNING = 5

#: Smallest change, in units of the largest entry, that is no rounding; slow channels turn little in a short prompt.
_TURNED = 1e-8

#: Changes of a length or of a pattern from here on are no rounding.
_CHANGED = 1e-4


#: Names of flags that say whether to rotate.
_ROTATES = re.compile(r"(^|_)(rope|rotary)$")


@dataclass(frozen=True)
class _Turning:
    """How the queries of equal tokens differ by position.

    Attributes:
        channels: ``[width]``, whether a channel changes.
        neighbours: whether channels that are side by side turn together.
    """

    channels: torch.Tensor
    neighbours: bool

    @property
    def none(self) -> bool:
        return not self.channels.any()

    @property
    def part(self) -> bool:
        return bool(self.channels.any() and not self.channels.all())


def partial_rotary(evidence: Evidence) -> bool:
    """Whether, on equal tokens, some channels of the queries change by position and others do not."""
    return any(turning.part for turning in _turnings(evidence))


def no_rotary(evidence: Evidence) -> bool:
    """Whether, on equal tokens, the queries of every softmax attention are equal at all positions."""
    found = _turnings(evidence)
    return bool(found) and all(turning.none for turning in found)


def rotary_free_blocks(evidence: Evidence) -> bool:
    """Whether the queries of some attentions change by position and those of others do not.

    Where the blocks are told apart by a number only, the twin may lack one of the kinds; then the full model's
    attentions are looked at for a flag that says whether to rotate.
    """
    if len({turning.none for turning in _turnings(evidence)}) > 1:
        return True
    flags: dict[str, set[bool]] = {}
    for block in blocks_of(evidence.model, evidence.structure.stack):
        for module in block.modules():
            for name, value in vars(module).items():
                if _ROTATES.search(name) and value in (0, 1):
                    flags.setdefault(name, set()).add(bool(value))
    return any(len(values) > 1 for values in flags.values())


def interleaved_rotary(evidence: Evidence) -> bool:
    """Whether pairs of neighbouring channels keep their length over positions, and channels alone do not."""
    return any(turning.neighbours for turning in _turnings(evidence))


def position_bias(evidence: Evidence) -> bool:
    """Whether equal tokens whose queries and keys do not change by position still get unequal shares of attention."""
    return any(_is_biased(attention) for attention in evidence.attentions)


def _turnings(evidence: Evidence) -> list[_Turning]:
    return [turning for attention in evidence.attentions if (turning := _turning(attention)) is not None]


def _turning(attention: Attention) -> _Turning | None:
    probe = attention.on_equal_tokens
    if probe is None:
        return None
    late = probe.queries[:, :, _BEGINNING:].double()
    lengths = late.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    if (lengths - lengths[:, :, -1:]).abs().max() > _CHANGED * lengths.max():
        # A factor that grows with the position lengthens every channel alike and turns none.
        late = late / lengths
    change = (late - late[:, :, -1:]).abs().amax(dim=(0, 1, 2)) / late.abs().max()
    channels = change > _TURNED
    return _Turning(channels, bool(channels.any()) and _pairs(late, channels))


def _pairs(late: torch.Tensor, channels: torch.Tensor) -> bool:
    """Whether channels ``2i`` and ``2i + 1`` turn together, taken from the first that turns."""
    turned = late[..., channels]
    if turned.shape[-1] % 2 or turned.shape[-1] < 4:
        return False
    lengths = turned.unflatten(-1, (-1, 2)).norm(dim=-1)
    return bool((lengths - lengths[:, :, -1:]).abs().max() <= _CHANGED * lengths.max())


def _is_biased(attention: Attention) -> bool:
    probe, turning = attention.on_equal_tokens, _turning(attention)
    if probe is None or turning is None or not turning.none:
        return False
    late = probe.keys[:, :, _BEGINNING:]
    if (late - late[:, :, -1:]).abs().max() > _CHANGED * late.abs().max():
        return False
    pattern = probe.pattern[:, :, _BEGINNING:, _BEGINNING:probe.keys.shape[2]]
    largest = pattern.amax(dim=-1, keepdim=True)
    return bool(((pattern > 0) & (pattern < (1 - 100 * _CHANGED) * largest)).any())


DETECTORS: Mapping[str, Callable[[Evidence], bool]] = {
    "partial-rotary": partial_rotary,
    "no-rotary": no_rotary,
    "rotary-free-blocks": rotary_free_blocks,
    "interleaved-rotary": interleaved_rotary,
    "position-bias": position_bias,
}
