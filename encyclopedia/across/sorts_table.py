"""The table of families by sort, as Markdown for a README."""

from __future__ import annotations

from collections.abc import Sequence

from encyclopedia.facts import FamilyFacts
from encyclopedia.page.mixers import by_group


def sorts_table(families: Sequence[FamilyFacts]) -> str:
    """A row per sort of family, with how many there are and their ``model_type``; ends in a newline."""
    rows = [f"| {group.title} | {len(found)} | {', '.join(f'`{name}`' for name in _names(found))} |"
            for group, found in by_group(families)]
    return "\n".join(("| sort | families | `model_type` |", "|---|---|---|", *rows)) + "\n"


def _names(families: Sequence[FamilyFacts]) -> list[str]:
    return sorted(family.model_type for family in families)
