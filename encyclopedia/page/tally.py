"""What was checked of a family, in numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from encyclopedia.facts import FamilyFacts
from encyclopedia.page.claims import claims_checked
from encyclopedia.page.shown import shown_of

#: What a family's page can be: its claims held, or something failed and the page says what.
VERIFIED, FAILED = "verified", "failed"


@dataclass(frozen=True)
class Tally:
    """Counts over the checkpoints that are shown.

    Attributes:
        checkpoints: how many are shown.
        values: how many values they serve, each checkpoint's own counted.
        values_checked: how many of those a run confirmed.
        values_left_out: how many more had a place that no run confirmed.
        kinds: how many kinds of blocks they have.
        identities: on how many of those kinds an exact sum was found, and held.
        snippets: how many blocks of code the notes have.
        snippets_run: how many of those ran somewhere.
        claims: how many claims held, snippets among them.
    """

    checkpoints: int = 0
    values: int = 0
    values_checked: int = 0
    values_left_out: int = 0
    kinds: int = 0
    identities: int = 0
    snippets: int = 0
    snippets_run: int = 0
    claims: int = 0

    def published(self) -> dict[str, int]:
        """The counts as plain data."""
        return asdict(self)


def state_of(family: FamilyFacts) -> str:
    """:data:`VERIFIED` or :data:`FAILED`."""
    return VERIFIED if family.failure is None else FAILED


def failure_of(family: FamilyFacts) -> str | None:
    """What failed, in short: the step and what it said; ``None`` where the family is verified."""
    return None if family.failure is None else f"{family.failure.step}: {family.failure.reason}"


def tally(family: FamilyFacts) -> Tally:
    """The counts of ``family``; nothing counts as checked where the family failed."""
    shown = shown_of(family)
    values = [value for checkpoint in shown for host in checkpoint.hosts for value in host.values]
    kinds = [kind for checkpoint in shown for kind in checkpoint.kinds]
    return Tally(
        checkpoints=len(shown),
        values=len(values),
        values_checked=sum(value.checked for value in values),
        values_left_out=sum(len(checkpoint.unconfirmed) for checkpoint in shown),
        kinds=len(kinds),
        identities=sum(kind.identity is not None for kind in kinds),
        snippets=len(family.notes.snippets),
        snippets_run=sum(bool(snippet.ran_on) for snippet in family.notes.snippets),
        claims=sum(claims_checked(family, checkpoint) for checkpoint in shown),
    )


def total(tallies: Iterable[Tally]) -> Tally:
    """The sums of ``tallies``."""
    found = [asdict(entry) for entry in tallies]
    return Tally(**{name: sum(entry[name] for entry in found) for name in asdict(Tally())})
