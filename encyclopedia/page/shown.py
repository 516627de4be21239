"""Which checkpoints of a family a page is about."""

from __future__ import annotations

from encyclopedia.facts import CheckpointFacts, FamilyFacts


def shown_of(family: FamilyFacts) -> list[CheckpointFacts]:
    """The checkpoints whose facts a page shows: none of a family that failed."""
    return [] if family.failure is not None else [entry for entry in family.checkpoints if entry.available]


def reference_of(family: FamilyFacts) -> CheckpointFacts | None:
    """The checkpoint that the page opens on, shown or not; ``None`` where it is not among the family's."""
    return next((entry for entry in family.checkpoints if entry.id == family.reference), None)


def reference_first(family: FamilyFacts) -> list[CheckpointFacts]:
    """Those of :func:`shown_of`, the reference before the others."""
    return sorted(shown_of(family), key=lambda entry: entry.id != family.reference)
