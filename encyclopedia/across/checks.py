"""The site's page of checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from encyclopedia.across.page import render_page
from encyclopedia.facts import FamilyFacts
from encyclopedia.page.derived import title_of
from encyclopedia.page.tally import FAILED, Tally, failure_of, state_of, tally, total


@dataclass(frozen=True)
class FamilyLine:
    """A family in the table of checks."""

    model_type: str
    title: str
    annotated: bool
    #: What failed, in short, or ``None``.
    failed: str | None
    tally: Tally

    @property
    def checks_url(self) -> str:
        """Where its claims are listed, from the site's root; a family that failed says why on its own page."""
        return f"families/{self.model_type}/" + ("" if self.failed else "checks/")


@dataclass(frozen=True)
class SiteView:
    """Everything the page shows; families by title."""

    families: tuple[FamilyLine, ...]
    total: Tally

    @property
    def verified(self) -> int:
        """How many families are verified."""
        return sum(family.failed is None for family in self.families)

    @property
    def annotated(self) -> int:
        """For how many families people wrote a module and notes."""
        return sum(family.annotated for family in self.families)


def site_view(families: Sequence[FamilyFacts]) -> SiteView:
    """The view of all ``families``."""
    lines = tuple(sorted(map(_line, families), key=lambda line: line.title.lower()))
    return SiteView(lines, total(line.tally for line in lines))


def render_site_checks(families: Sequence[FamilyFacts], templates: Path) -> str:
    """The page of what was checked over the whole site, with a line per family."""
    return render_page("checks", templates, title="Checks", styles=["checks.css"], site=site_view(families))


def _line(family: FamilyFacts) -> FamilyLine:
    return FamilyLine(
        model_type=family.model_type,
        title=title_of(family),
        annotated=family.annotated and state_of(family) != FAILED,
        failed=failure_of(family),
        tally=tally(family),
    )
