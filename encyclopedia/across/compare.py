"""The page that sets two checkpoints beside each other: what its script cannot read off the site's data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from encyclopedia.across.page import render_page
from encyclopedia.facts import FamilyFacts
from encyclopedia.page.derived import title_of
from encyclopedia.page.hero import Option, hero_view
from encyclopedia.page.shown import reference_of
from encyclopedia.page.tally import failure_of
from encyclopedia.quirks import QUIRKS

#: Quirks are departures from this family's block, so it is what a checkpoint is set beside where nothing is asked.
PLAIN = "llama"

#: Hue of what differs: far from every role's, so that a mark is not taken for one.
MARK_HUE = 5


@dataclass(frozen=True)
class Choices:
    """A family and those of its checkpoints that can be compared."""

    model_type: str
    title: str
    #: What failed, in short, or ``None``.
    failed: str | None
    options: tuple[Option, ...]


@dataclass(frozen=True)
class CompareView:
    """Everything ``compare.html.jinja`` shows."""

    families: tuple[Choices, ...]
    #: Ids of the two checkpoints that an address without any opens; empty where the site shows none.
    opening: tuple[str, ...]
    #: Label and sentence of every quirk by slug.
    quirks: dict[str, dict[str, str]]

    @property
    def count(self) -> int:
        """How many checkpoints there are to choose from."""
        return sum(len(family.options) for family in self.families)


def compare_view(families: Sequence[FamilyFacts]) -> CompareView:
    """The choices of all ``families``, by title."""
    chosen = (_choices(family) for family in families)
    return CompareView(
        families=tuple(sorted((family for family in chosen if family.options), key=lambda line: line.title.lower())),
        opening=_opening(families),
        quirks={slug: {"label": quirk.label, "sentence": quirk.sentence} for slug, quirk in QUIRKS.items()},
    )


def render_compare(families: Sequence[FamilyFacts], templates: Path) -> str:
    """The page; its script reads everything else from the data and the pages of the two families."""
    return render_page(
        "compare", templates, title="Compare", hue=MARK_HUE, scripts=["compare.js"],
        styles=["block.css", "diagram.css", "card.css", "compare.css"],
        description="Two checkpoints side by side: their blocks, their values and where those are read, their configs.",
        compare=compare_view(families))


def _choices(family: FamilyFacts) -> Choices:
    """A family that failed still has its config."""
    with_config = {checkpoint.id for checkpoint in family.checkpoints if checkpoint.available or checkpoint.config}
    return Choices(
        model_type=family.model_type,
        title=title_of(family),
        failed=failure_of(family),
        options=tuple(option for option in hero_view(family).options
                      if option.available or (family.failure is not None and option.id in with_config)),
    )


def _opening(families: Sequence[FamilyFacts]) -> tuple[str, ...]:
    """The plain family's reference, and the one that departs from it by the most quirks."""
    shown = [(family, checkpoint) for family in families
             if (checkpoint := reference_of(family)) is not None and checkpoint.available]
    ranked = sorted(shown, key=lambda entry: (entry[0].model_type != PLAIN, -len(entry[1].quirks), entry[1].id))
    return tuple(checkpoint.id for _, checkpoint in ranked[:2])
