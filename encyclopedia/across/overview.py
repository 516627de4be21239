"""The front page and the site's page of checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from encyclopedia.across.page import render_page
from encyclopedia.facts import FamilyFacts, ParameterCounts
from encyclopedia.page.derived import subtitle_of, title_of
from encyclopedia.page.mixers import Group, by_group, mixers_of
from encyclopedia.page.tally import FAILED, Tally, state_of, tally, total


@dataclass(frozen=True)
class FamilyLine:
    """A family on the index or in the table of checks."""

    model_type: str
    title: str
    subtitle: str
    annotated: bool
    #: What failed, in short, or ``None``.
    failed: str | None
    tally: Tally

    @property
    def checks_url(self) -> str:
        """Where its claims are listed, from the site's root; a family that failed says why on its own page."""
        return f"families/{self.model_type}/" + ("" if self.failed else "checks/")


@dataclass(frozen=True)
class FamilyGroup:
    """Families of one sort."""

    group: Group
    families: tuple[FamilyLine, ...]


@dataclass(frozen=True)
class SiteView:
    """Everything the index and the site's page of checks show."""

    groups: tuple[FamilyGroup, ...]
    total: Tally

    @property
    def families(self) -> tuple[FamilyLine, ...]:
        """All families by title."""
        found = (family for group in self.groups for family in group.families)
        return tuple(sorted(found, key=lambda family: family.title.lower()))

    @property
    def verified(self) -> int:
        """How many families are verified."""
        return sum(family.failed is None for family in self.families)

    @property
    def annotated(self) -> int:
        """For how many families people wrote a module and notes."""
        return sum(family.annotated for family in self.families)


def site_view(families: Sequence[FamilyFacts]) -> SiteView:
    """The views of all ``families``."""
    groups = tuple(
        FamilyGroup(group, tuple(sorted((_line(family) for family in found), key=lambda line: line.title.lower())))
        for group, found in by_group(families))
    return SiteView(groups, total(family.tally for group in groups for family in group.families))


def render_index(families: Sequence[FamilyFacts], templates: Path) -> str:
    """The front page: every family with its sentence, sorted by how its blocks are made."""
    return render_page("index", templates, title="Overview", site=site_view(families))


def render_site_checks(families: Sequence[FamilyFacts], templates: Path) -> str:
    """The page of what was checked over the whole site, with a line per family."""
    return render_page("checks", templates, title="Checks", site=site_view(families))


def index_data(family: FamilyFacts) -> dict:
    """A family's entry in ``data/index.json``."""
    shown = [checkpoint for checkpoint in family.checkpoints if checkpoint.available]
    return {
        "model_type": family.model_type,
        "title": title_of(family),
        "subtitle": subtitle_of(family),
        "state": state_of(family),
        "annotated": family.annotated,
        "quirks": family.quirks,
        "mixers": list(dict.fromkeys(slug for checkpoint in shown for slug in mixers_of(checkpoint))),
        "checkpoints": [checkpoint.id for checkpoint in family.checkpoints],
        "parameters": _range([checkpoint.parameters for checkpoint in shown if checkpoint.parameters is not None]),
        "counts": tally(family).published(),
        "versions": family.versions.model_dump(),
    }


def _range(counts: Sequence[ParameterCounts]) -> dict[str, list[int]] | None:
    """Fewest and most parameters, in all and active; ``None`` where nothing was counted."""
    if not counts:
        return None
    totals, active = [count.total for count in counts], [count.active for count in counts]
    return {"total": [min(totals), max(totals)], "active": [min(active), max(active)]}


def _line(family: FamilyFacts) -> FamilyLine:
    return FamilyLine(
        model_type=family.model_type,
        title=title_of(family),
        subtitle=subtitle_of(family),
        annotated=family.annotated and state_of(family) != FAILED,
        failed=None if family.failure is None else f"{family.failure.step}: {family.failure.reason}",
        tally=tally(family),
    )
