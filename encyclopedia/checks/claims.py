"""What a check says: a claim that held, with its figure, or an error that says all about one that did not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from encyclopedia.facts import ClaimFacts

#: Largest error of a recomputation, in units of the expected tensor's largest magnitude.
TOLERANCE = 1e-5

#: Anything below counts as masked out.
MASKED = -1e30


class BrokenClaim(Exception):
    """A claim that a run did not confirm.

    Args:
        sort: ``location``, ``layout``, ``meaning``, ``writing``, ``identity``, ``availability`` or ``elsewhere``.
        value: the value's name, or ``None`` for a claim about the block.
        block: the block's index in the model that was run, or ``None`` at the root.
        expected: what the claim says.
        found: what the run gave.
        stands_for: the checkpoint's own block, where what was run is its twin.
    """

    def __init__(self, sort: str, value: str | None, block: int | None, expected: str, found: str,
                 stands_for: int | None = None) -> None:
        self.sort, self.value, self.block, self.expected, self.found = sort, value, block, expected, found
        place = "the root" if block is None else f"block {block}"
        if stands_for is not None:
            place = f"block {stands_for} ({place} of its small twin)"
        #: What was expected and what was found, without the place.
        self.short = f"expected {expected}, found {found}"
        super().__init__(f"{sort} of {value or 'the block'} on {place}: {self.short}")

    def on_twin_of(self, blocks: Sequence[int]) -> BrokenClaim:
        """The same, naming the checkpoint's own block; ``blocks`` are those the twin keeps, in order."""
        stands_for = None if self.block is None else blocks[self.block]
        return BrokenClaim(self.sort, self.value, self.block, self.expected, self.found, stands_for)


@dataclass
class Ledger:
    """Claims that held, gathered by sort, host, value and wording; one entry keeps its largest error."""

    entries: dict[tuple[str, str, str | None, str], ClaimFacts] = field(default_factory=dict)

    def held(self, sort: str, host: str, value: str | None, text: str, error: float | None = None) -> None:
        """Note that a claim held once more."""
        key = (sort, host, value, text)
        before = self.entries.get(key)
        errors = [known for known in (error, before.error if before else None) if known is not None]
        self.entries[key] = ClaimFacts(
            sort=sort, host=host, value=value, text=text, runs=1 + (before.runs if before else 0),
            error=max(errors) if errors else None)

    def claims(self) -> list[ClaimFacts]:
        """All claims that held, in the order they were first made."""
        return list(self.entries.values())


def difference(expected: torch.Tensor, found: torch.Tensor) -> float:
    """How far ``found`` is from ``expected``, in units of the largest magnitude expected.

    Masked entries have to be masked in both; whole numbers count as 0 where equal and infinitely far otherwise.

    Returns:
        ``inf`` where the shapes differ, a mask does, or whole numbers are compared with others; not a number where
        either has an entry that is not.
    """
    if expected.shape != found.shape or expected.is_floating_point() != found.is_floating_point():
        return float("inf")
    if not expected.is_floating_point():
        return 0.0 if torch.equal(expected, found.to(expected.dtype)) else float("inf")
    masked = expected < MASKED
    if not torch.equal(masked, found < MASKED):
        return float("inf")
    expected, found = expected.masked_fill(masked, 0).double(), found.masked_fill(masked, 0).double()
    gap = (expected - found).abs().max().item() if expected.numel() else 0.0
    return gap / max(expected.abs().max().item() if expected.numel() else 0.0, torch.finfo(torch.float32).tiny)


def said(error: BaseException) -> str:
    """An exception on one line, for what was found."""
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"


def describe(tensor: torch.Tensor) -> str:
    """A tensor in a few words, for an error."""
    size = "" if tensor.dtype == torch.bool or not tensor.numel() else f", largest {tensor.abs().max().item():.4g}"
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}{size}"
