"""The page of what each release changed, from the comparisons that the project keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from encyclopedia.across.page import render_page
from encyclopedia.diff import Change, Difference, FamilyChanges, read_records
from encyclopedia.diff.records import SORTS
from encyclopedia.diff.text import change_lines
from encyclopedia.facts import FamilyFacts


@dataclass(frozen=True)
class SortLines:
    """The changes of one sort in a family, as text."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class FamilyLines:
    """What changed in a family."""

    model_type: str
    #: Whether the site has a page of it.
    shown: bool
    count: int
    sorts: tuple[SortLines, ...]


@dataclass(frozen=True)
class ReleaseView:
    """One comparison."""

    id: str
    old: str
    new: str
    difference: Difference
    families: tuple[FamilyLines, ...]
    #: How many families have a change of each sort, by its title, the most first.
    totals: tuple[tuple[str, int], ...]


def release_view(difference: Difference, shown: Sequence[str]) -> ReleaseView:
    """The view of one comparison, for a site with pages of the families ``shown``."""
    counts = {title: sum(any(change.sort == sort for change in family.changes) for family in difference.changed)
              for sort, title in SORTS.items()}
    return ReleaseView(
        id=f"{difference.old.transformers}-to-{difference.new.transformers}",
        old=difference.old.transformers,
        new=difference.new.transformers,
        difference=difference,
        families=tuple(_family(family, shown) for family in difference.changed),
        totals=tuple(sorted(((title, count) for title, count in counts.items() if count), key=lambda item: -item[1])),
    )


def _family(family: FamilyChanges, shown: Sequence[str]) -> FamilyLines:
    return FamilyLines(family.model_type, family.model_type in shown, len(family.changes), tuple(
        SortLines(title, tuple(line for change in family.changes if change.sort == sort for line in _told(change)))
        for sort, title in SORTS.items() if any(change.sort == sort for change in family.changes)))


def _told(change: Change) -> Iterator[str]:
    """A change without the word for its sort, which the page says above it."""
    for line in change_lines(change):
        yield line.removeprefix(f"{SORTS[change.sort].lower()}: ")


def write_releases(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    """The page; none where no comparison is kept."""
    shown = [family.model_type for family in families]
    views = [release_view(difference, shown) for difference in read_records()]
    if views:
        yield "releases/index.md", render_page(
            "releases", templates, title="Releases", styles=["checks.css", "releases.css"], releases=views,
            description="What each release of transformers changed in the families shown here.")
