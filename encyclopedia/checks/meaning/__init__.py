"""Meaning: each value equals a recomputation that does not share its read path.

A recomputation takes what :mod:`encyclopedia.native` recorded with plain hooks, or other values through the
model's own modules. A value may have several; all have to hold. They stand in a module per part of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from encyclopedia.checks.claims import TOLERANCE, BrokenClaim, Ledger, describe, difference, said
from encyclopedia.checks.meaning import attention, mlp, recurrence, stream
from encyclopedia.checks.meaning.here import Expected, Here, Key, NotRead, Recomputation, Root
from encyclopedia.checks.meaning.root import at_root
from encyclopedia.families import Family
from encyclopedia.model.readings import Reading

__all__ = ["Root", "check_meaning", "check_value"]

#: By host and value, what recomputes it on a block.
RECOMPUTED: Mapping[str, Mapping[str, Recomputation]] = {
    "layer": stream.RECOMPUTED,
    "self_attn": attention.RECOMPUTED,
    "linear_attn": recurrence.RECOMPUTED,
    "mlp": mlp.RECOMPUTED,
}


def check_meaning(root: Root, family: Family, readings: list[Reading], ledger: Ledger) -> None:
    """Check every reading against its recomputations.

    Raises:
        BrokenClaim: for one that is not equal, or a value that has no recomputation at all. A wrong value also breaks
            what is recomputed from it, so of several the first is raised whose recomputation took none of the others.
    """
    broken: dict[Key, tuple[set[Key], BrokenClaim]] = {}
    for reading in readings:
        try:
            check_value(root, family, reading, ledger)
        except BrokenClaim as claim:
            key = (reading.layer, reading.host, reading.name)
            broken[key] = (root.taken - {key}, claim)
    if broken:
        claims = [claim for _, claim in broken.values()]
        raise next((claim for taken, claim in broken.values() if not taken & broken.keys()), claims[0])


@torch.no_grad()
def check_value(root: Root, family: Family, reading: Reading, ledger: Ledger) -> None:
    """Check one reading against its recomputations.

    Raises:
        BrokenClaim: where one is not equal or cannot be made, or there is none.
    """
    layer, host, name, found = reading.layer, reading.host, reading.name, reading.result
    held = 0
    root.taken.clear()
    for text, expected in _recomputed(root, family, layer, host, name):
        error = difference(_unflattened(expected, found), found)
        if not error <= TOLERANCE and held and root.lenient:
            continue
        if not error <= TOLERANCE:
            raise BrokenClaim("meaning", name, layer, f"{text} ({describe(expected)})",
                              f"{describe(found)}, off by {error:.2e} of the largest magnitude")
        ledger.held("meaning", host, name, text, error)
        held += 1
        root.taken.clear()
    if not held:
        raise BrokenClaim("meaning", name, layer, "an independent recomputation", "none")


def _unflattened(expected: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
    """``expected`` in the shape of ``found``, where it is the same but flat over tokens."""
    flat = expected.ndim == found.ndim - 1 and expected.shape == (found.shape[0] * found.shape[1], *found.shape[2:])
    return expected.reshape(found.shape) if flat else expected


def _recomputed(root: Root, family: Family, layer: int | None, host: str, name: str) -> Iterator[Expected]:
    """The recomputations of a value for which everything they need was read."""
    try:
        if layer is None:
            yield from at_root(root, name)
        else:
            kind = root.structure.kind_of(layer)
            yield from _at_block(Here(root, layer, kind.sublayer(host), kind, family), host, name)
    except NotRead:
        return
    except (AttributeError, LookupError, NameError, RuntimeError, TypeError, ValueError, AssertionError) as error:
        raise BrokenClaim("meaning", name, layer, "a recomputation of it", said(error)) from error


def _at_block(here: Here, host: str, name: str) -> Iterator[Expected]:
    found = RECOMPUTED.get(host, {}).get(name)
    if found is not None:
        yield from found(here)
