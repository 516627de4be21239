"""With which versions the facts on a page were captured, as every page says."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from encyclopedia.facts import FamilyFacts


def versions_of(families: Sequence[FamilyFacts]) -> dict[str, tuple[str, ...]]:
    """By package, the versions that ``families`` were captured with, sorted; one each after a whole build."""
    found: dict[str, set[str]] = {}
    for family in families:
        for name, version in family.versions.model_dump().items():
            found.setdefault(name, set()).add(version)
    return {name: tuple(sorted(versions)) for name, versions in found.items()}


def signed(document: str, families: Sequence[FamilyFacts]) -> str:
    """``document``, a page's file, with a line at its end that says what ``families`` were captured with."""
    said = ", ".join(f"{name} {' and '.join(versions)}" for name, versions in versions_of(families).items())
    if not said:
        return document
    return f'{document}\n<p class="page-versions" data-search-exclude>Made with {escape(said)}.</p>\n'
